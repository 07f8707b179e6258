"""Arrays in .npy and .npz files: never by pickle, never more memory than a file is worth."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.npyfile import load_npz, map_npy, open_npz


class Harm:
    """An object that runs code where it is unpickled."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("harm"),)


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_objects_are_refused_and_no_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.chdir(tmp_path)
    harm = np.array([Harm()], dtype=object)
    np.save("a.npy", harm, allow_pickle=True)
    np.savez("a.npz", x=harm, y=np.zeros(3))
    read: Any = {"npy": [map_npy], "npz": [load_npz]}[suffix]
    for function in read:
        with pytest.raises(InputError, match=rf"a\.{suffix}.*bject"):
            function(tmp_path / f"a.{suffix}")
    assert not Path("harm").exists()
    assert load_npz(tmp_path / "a.npz", ["y"])["y"].tolist() == [0, 0, 0], "what nobody asks for may be anything"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_come_as_they_were_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Any, compressed: bool
) -> None:
    x = np.asarray(np.arange(24.0).reshape(2, 3, 4), order=order)
    np.save(tmp_path / "a.npy", x)
    assert isinstance(map_npy(tmp_path / "a.npy"), np.memmap)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "a.npz", x=x, t=["a", "bc"], e=np.empty((0, 3)))
    for most in (1 << 26, 10):
        monkeypatch.setattr("dicot.data.npyfile._MAPPED_FROM", most)
        found = load_npz(tmp_path / "a.npz")
        assert isinstance(found["x"], np.memmap) == (most == 10 and not compressed)
        for y in (found["x"], map_npy(tmp_path / "a.npy")):
            np.testing.assert_array_equal(y, x)
        assert found["t"].tolist() == ["a", "bc"] and found["e"].shape == (0, 3)
    with open_npz(tmp_path / "a.npz") as file:
        assert file.names == ["x", "t", "e"] and file.array_header("x").shape == (2, 3, 4)


def test_damaged_files_are_refused_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", np.arange(100.0))
    whole = (tmp_path / "whole.npy").read_bytes()
    nested = whole.replace(b"(100,)", b"((((((")
    for content in (b"", b"<html>", whole[:-8], whole[:50], whole.replace(b"(100,)", b"(999,)"), nested):
        (tmp_path / "a.npy").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.npy"):
            map_npy(tmp_path / "a.npy")
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("x.npy", content)
        with pytest.raises(InputError, match=r"a\.npz"):
            load_npz(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes(whole)
    with pytest.raises(InputError, match=r"a\.npz"):
        load_npz(tmp_path / "a.npz")


def test_what_unpacks_to_very_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dicot.data.npyfile._SMALL", 1000)
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(10**6))
    with pytest.raises(InputError, match=r"a\.npz.*100 times"):
        load_npz(tmp_path / "a.npz")
