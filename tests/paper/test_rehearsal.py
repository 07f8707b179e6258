"""A rehearsal for whoever has the six large sets: raw files as their publishers lay them out, then two commands."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from tests.commands import bench
from tests.paper import test_harth, test_pamap2_arrays, test_skoda, test_sleep, test_wisdm2
from tests.paper.test_paper_page import section, table
from tests.signal_files import write_marks, write_wfdb

from bench.paper.numbers import LARGE
from bench.paper.preparation import Raw
from bench.paper.raw import READERS, movement, physiology
from bench.suites import SUITES

NAMES = ("ecg", "harth", "pamap2-paper", "skoda-paper", "sleep", "wisdm2")
CHUNKS = 2  # of an ECG record, whose 72 are many for a rehearsal


def ecg(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for record in physiology.RECORDS:
        write_wfdb(folder / record, rng.integers(-300, 300, (CHUNKS * 2500 + 40, 2)))
        write_marks(folder / f"{record}.atr", [(0, 28, "(N"), (2600, 28, "(AFIB")])


def harth(folder: Path) -> None:
    for person in ("S006", "S008", "S026"):
        test_harth.write(folder, person, [1] * 1000 + [7] * 1000)


def pamap2(folder: Path) -> None:
    np.savez(folder / "PAMAP2.npz", **test_pamap2_arrays.arrays())


def skoda(folder: Path) -> None:
    savemat(folder / f"{test_skoda.VARIABLE}.mat", {test_skoda.VARIABLE: test_skoda.table()})


def sleep(folder: Path) -> None:
    stages = test_sleep.sleep_stages((2, "1"), (1, "R"))
    for subject in range(20):
        test_sleep.write_night(folder, f"SC4{subject:02d}1", stages, 3, 100 * subject)


def wisdm2(folder: Path) -> None:
    rows = test_wisdm2.rows_of(list(range(1, 26)), 90)
    test_wisdm2.write(folder, [test_wisdm2.line(row) for row in rows])


RAW = {"ecg": ecg, "harth": harth, "pamap2-paper": pamap2, "skoda-paper": skoda, "sleep": sleep, "wisdm2": wisdm2}


@pytest.mark.slow
def test_from_the_publishers_files_to_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DICOT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(physiology, "N_CHUNKS", CHUNKS)
    small = partial(movement.read_pamap2_arrays, sizes=test_pamap2_arrays.SMALL)
    monkeypatch.setitem(READERS, "pamap2-paper", Raw(small))
    for name in NAMES:
        raw = tmp_path / "raw" / name
        raw.mkdir(parents=True)
        RAW[name](raw)
        said = bench("prepare", name, "--raw", raw)
        assert "instead of" in said  # the sizes are not the publisher's
    for name in ("large", "transfer"):
        make = SUITES[name]
        few = lambda options, make=make: make(replace(options, contenders=("dicot",)))  # noqa: E731
        monkeypatch.setitem(SUITES, name, few)
    shown = "table1,table5,table8"
    settings = [word for one in ("steps=1", "seeds=1", "workers=1") for word in ("--set", one)]
    said = bench("paper", "--run", "--only", shown, "--device", "cpu", *settings)
    assert " 0 no data" in said and " 0 failed" in said and "wisdm2: " in said and "out/paper/report.html" in said
    text = Path("out/paper/report.md").read_text(encoding="utf-8")
    assert "6 of the paper's 6 large sets." in section(text, "table1") and "stand-in" not in section(text, "table1")
    row = table(section(text, "table1"))["Di-COT"]
    assert set(LARGE) < set(row) and all(cell[0].isdigit() for cell in (row[name].strip("*") for name in LARGE))
    assert "4 of the paper's 4 transfers." in section(text, "table5")
    assert "Not a result: 1 step," in text
    assert " 0 to run" in bench("paper", "--run", "--only", shown, "--device", "cpu", "--dry-run", *settings)
