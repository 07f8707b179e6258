"""python -m bench prepare as it is typed."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import bench

from bench.paper.raw.movement import WISDM2_ACTIVITIES as ACTIVITIES
from dicot.core.errors import InputError, MissingDataError
from dicot.data.datasets import archive


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small WISDM2 log; DICOT_DATA is empty, and nothing else of this machine can be seen."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DICOT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive, "find_spec", lambda name: None)
    monkeypatch.setattr(archive, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "raw").mkdir()
    lines = [f"{user},{ACTIVITIES[user % 6]},17,{i},{-i},{i % 7};" for user in range(1, 26) for i in range(50)]
    (tmp_path / "raw" / "WISDM_at_v2.0_raw.txt").write_text("\n".join([*lines, "stray"]))
    return tmp_path / "raw"


def test_prepare_show_check_list(raw: Path, tmp_path: Path) -> None:
    assert "wisdm2                           large      not here" in bench("list", "datasets")
    said = bench("prepare", "WISDM2", "--raw", raw)
    assert "wisdm2: 6 + 54 cases, 3 channel(s), 40 time steps, 6 classes (fingerprint " in said
    assert "Note: 1 of 1251 lines" in said
    assert "Note: The raw files give 6 training cases instead of 134614, 54 test cases instead of 14421" in said
    shown = bench("list", "datasets", "wisdm2")
    for word in ("fingerprint", "Lockhart", "borders", "0, 1, 2", "n_train 134614, n_test 14421"):
        assert word in shown
    assert "paper_transfer_channels" not in shown  # nothing is shown where there is nothing
    assert "6 + 54 cases" in bench("list", "datasets", "wisdm2", "--check")
    listed = bench("list", "datasets")
    assert "wisdm2                           large      6 + 54 cases" in listed
    assert "GunPoint                         ucr        not here" in listed


def test_settings_and_another_folder(raw: Path, tmp_path: Path) -> None:
    said = bench("prepare", "wisdm2", "--raw", raw, "--out", tmp_path / "other", "--set", "borders=cut")
    assert "3 + 22 cases" in said and f"set DICOT_DATA={tmp_path / 'other'}" in said
    assert not (tmp_path / "data" / "large").exists()
    with pytest.raises(InputError, match="borders.*cross, cut.*'none'"):
        bench("prepare", "wisdm2", "--raw", raw, "--set", "borders=none")
    with pytest.raises(InputError, match="'wisdm'.*'wisdm2'"):
        bench("prepare", "wisdm", "--raw", raw)


def test_damage_is_found(raw: Path, tmp_path: Path) -> None:
    bench("prepare", "wisdm2", "--raw", raw)
    path = tmp_path / "data" / "large" / "wisdm2" / "y_test.npy"
    np.save(path, 1 - np.minimum(np.load(path), 1))
    with pytest.raises(InputError, match="wisdm2"):
        bench("list", "datasets", "wisdm2", "--check")
    with pytest.raises(InputError, match="1 of 2 data sets are not as they should be"):
        bench("list", "datasets", "--check")


def test_one_damaged_set_is_one_line_among_the_others(raw: Path, tmp_path: Path) -> None:
    bench("prepare", "wisdm2", "--raw", raw)
    folder = tmp_path / "data"
    for family in ("ucr", "uea", "Coffee", "Meat", "large/toy"):
        (folder / family).mkdir()
    (folder / "ucr" / "GunPoint.npz").write_bytes(b"no zip")
    np.savez(folder / "uea" / "Libras.npz", X_train=3.0, y_train=[1], X_test=3.0, y_test=[1])
    for part in ("TRAIN", "TEST"):
        (folder / "Coffee" / f"Coffee_{part}.ts").write_bytes(bytes(range(256)))
        (folder / "Meat" / f"Meat_{part}.arff").write_text("@relation x\n@attribute a {1}\n@data\n1,x,1\n")
    (folder / "large" / "toy" / "card.json").write_text("{")
    listed = bench("list", "datasets")
    assert f"{'toy':32} {'large':10} damaged: " in listed and "6 + 54 cases" in listed
    assert f"{'GunPoint':32} ucr        50 + 150 cases" in listed  # files of published sets are not opened
    with pytest.raises(InputError, match="5 of 7 data sets are not as they should be"):
        bench("list", "datasets", "--check")
    with pytest.raises(InputError, match=r"GunPoint\.npz"):
        bench("list", "datasets", "GunPoint", "--check")


def test_how_to_get_what_is_missing(raw: Path) -> None:
    with pytest.raises(MissingDataError, match=r"archive\.ics\.uci\.edu.*python -m bench prepare pamap2 --raw DIR"):
        bench("list", "datasets", "pamap2")
    with pytest.raises(MissingDataError, match="GunPoint"):
        bench("list", "datasets", "gunpoint")
