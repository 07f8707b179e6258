"""Arrays in .mat, .npy and .npz files: values as they were saved, and no code of a file is run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data import read_recording
from dicot.data.npyfile import load_npz, map_npy


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", ["int16", "uint8", "int64", "float32", "float64"])
def test_matrices_keep_their_values(tmp_path: Path, kind: str, compressed: bool) -> None:
    matrix = np.arange(12).reshape(3, 4).astype(kind)
    savemat(tmp_path / "a.mat", {"X": matrix, "note": "text", "z": np.array([1j])}, do_compression=compressed)
    with pytest.warns(UnusedKeysWarning, match="note, z"):
        found = read_recording(tmp_path / "a.mat")
    assert found.values.tolist() == matrix.tolist()


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
    read: Any = {"npy": map_npy, "npz": load_npz}[suffix]
    with pytest.raises(InputError, match=rf"a\.{suffix}.*bject"):
        read(tmp_path / f"a.{suffix}")
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
