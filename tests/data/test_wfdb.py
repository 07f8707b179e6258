"""WFDB records that the tests write byte by byte."""

from pathlib import Path

import numpy as np
import pytest
from tests.signal_files import pack_212, write_marks, write_wfdb

from bench.paper.raw.annotations import RHYTHM, Mark, read_wfdb_marks
from dicot.core.errors import InputError
from dicot.data.wfdb import read_wfdb_header, read_wfdb_signals


@pytest.mark.parametrize(("form", "extreme"), [(212, 2047), (16, 32767)])
@pytest.mark.parametrize("shape", [(4, 2), (5, 1), (3, 3)], ids=["even", "odd", "odd-of-three"])
def test_signals(tmp_path: Path, form: int, extreme: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    stored = rng.integers(-extreme, extreme + 1, shape)
    stored[:2, 0] = -extreme, extreme
    write_wfdb(tmp_path / "100", stored, form, gain="200(10)/mV")
    read = read_wfdb_signals(tmp_path / "100")
    assert read.dtype == np.float32
    np.testing.assert_allclose(read, (stored.T - 10) / 200, rtol=1e-6)


def test_two_numbers_in_three_bytes(tmp_path: Path) -> None:
    # The layout of the format's definition: 0x123 and 0xABC = -1348.
    assert pack_212(np.array([0x123, -1348])) == bytes([0x23, 0xA1, 0xBC])
    write_wfdb(tmp_path / "r", np.zeros((1, 2), int), gain="1")
    (tmp_path / "r.dat").write_bytes(bytes([0x23, 0xA1, 0xBC]))
    assert read_wfdb_signals(tmp_path / "r").tolist() == [[0x123], [-1348]]


def test_what_is_marked_as_invalid_is_missing(tmp_path: Path) -> None:
    write_wfdb(tmp_path / "a", np.array([[-2048, 1], [3, 4]]), 212, gain="1")
    np.testing.assert_array_equal(read_wfdb_signals(tmp_path / "a"), [[np.nan, 3], [1, 4]])
    write_wfdb(tmp_path / "b", np.array([[-2048, -32768]]), 16, gain="1")
    np.testing.assert_array_equal(read_wfdb_signals(tmp_path / "b"), [[-2048], [np.nan]])


def test_header(tmp_path: Path) -> None:
    path = tmp_path / "04015.hea"
    path.write_text("#c\n04015 2 250/360(0) 9205760 9:00:00\n04015.dat 212 200.5(-3)/uV 12 7 -50 1 0 ECG1 left\nx 16\n")
    header = read_wfdb_header(path.with_suffix(""))
    assert (header.record, header.rate, header.n_times) == ("04015", 250.0, 9205760)
    first, second = header.leads
    assert (first.file, first.form, first.gain, first.baseline) == ("04015.dat", "212", 200.5, -3)
    assert (first.unit, first.name) == ("uV", "ECG1 left")
    assert (second.gain, second.baseline, second.unit) == (200.0, 0, "mV")  # the format's defaults
    path.write_text("a 1 250\na.dat 212 0 12 1024 0 0 0 MLII\n")
    header = read_wfdb_header(path.with_suffix(""))
    assert (header.n_times, header.leads[0].gain, header.leads[0].baseline) == (None, 200.0, 1024)
    path.write_text("00735 0 250 9661440\n")  # a record without signals
    assert read_wfdb_header(path.with_suffix("")).leads == ()


def test_without_a_length_all_of_the_file_is_read(tmp_path: Path) -> None:
    write_wfdb(tmp_path / "a", np.arange(8).reshape(4, 2), 212)
    head = tmp_path / "a.hea"
    head.write_text(head.read_text().replace(" 250 4 10:00:00", " 250"))
    assert read_wfdb_signals(tmp_path / "a").shape == (2, 4)


def test_marks(tmp_path: Path) -> None:
    path = tmp_path / "a.atr"
    write_marks(path, [(18, 28, "(N"), (77, 1, ""), (1100, 5, ""), (2124, 28, "(AFIB"), (9_000_000, 41, "")])
    assert read_wfdb_marks(path) == [
        Mark(18, RHYTHM, "(N"),
        Mark(77, "N"),
        Mark(1100, "V"),
        Mark(2124, "+", "(AFIB"),  # 1024 samples after the one before: the first step that needs a skip
        Mark(9_000_000, "r"),
    ]


def test_marks_with_steps_back_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.atr"
    write_marks(path, [(5000, 1, ""), (4000, 14, "")])
    assert [mark.sample for mark in read_wfdb_marks(path)] == [5000, 4000]
    modifiers = [60 << 10 | 3, 61 << 10 | 1, 62 << 10 | 1]  # of the annotation before them, not annotations
    words = np.array([1 << 10 | 5, *modifiers, 42 << 10 | 7, 0], dtype="<u2")
    path.write_bytes(words.tobytes())
    assert read_wfdb_marks(path) == [Mark(5, "N"), Mark(12, " ")]  # code 42 has no symbol


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a 2 250", "a 2 0"),
        ("a 2 250", "a 2 nan"),
        ("250 4 ", "250 -4 "),
        ("200 12", "1e999 12"),
        ("200 12", f"200({'9' * 400}) 12"),
    ],
)
def test_headers_that_no_recording_has(tmp_path: Path, old: str, new: str) -> None:
    write_wfdb(tmp_path / "a", np.arange(8).reshape(4, 2), 212)
    head = tmp_path / "a.hea"
    head.write_text(head.read_text().replace(old, new))
    with pytest.raises(InputError, match=r"a\.hea"):
        read_wfdb_signals(tmp_path / "a")


@pytest.mark.parametrize("place", ["absolute", "../secret.dat", "b/../../secret.dat", "..\\secret.dat", ".."])
def test_a_header_names_files_of_its_own_folder_only(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "records"
    (folder / "b").mkdir(parents=True)
    write_wfdb(folder / "a", np.arange(8).reshape(4, 2), 16)
    (folder / "a.dat").rename(tmp_path / "secret.dat")
    named = str(tmp_path / "secret.dat") if place == "absolute" else place
    head = folder / "a.hea"
    head.write_text(head.read_text().replace("a.dat", named))
    with pytest.raises(InputError, match=r"a\.hea"):
        read_wfdb_signals(folder / "a")


@pytest.mark.parametrize("gain", ["+2.5e1", "25.", "2.5E1(0)/mV", "-25"])
def test_gains_in_every_form_of_a_number(tmp_path: Path, gain: str) -> None:
    write_wfdb(tmp_path / "a", np.array([[25, 50]]), 16, gain=gain)
    assert np.abs(read_wfdb_signals(tmp_path / "a")).tolist() == [[1], [2]]
