"""Matrices of MATLAB files, as scipy writes them."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data import read_recording


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", ["int16", "uint8", "int64", "float32", "float64"])
def test_matrices_keep_their_values(tmp_path: Path, kind: str, compressed: bool) -> None:
    matrix = np.arange(12).reshape(3, 4).astype(kind)
    savemat(tmp_path / "a.mat", {"X": matrix, "note": "text", "z": np.array([1j])}, do_compression=compressed)
    with pytest.warns(UnusedKeysWarning, match="note, z"):
        found = read_recording(tmp_path / "a.mat")
    assert found.values.tolist() == matrix.tolist()


@pytest.mark.parametrize("content", [b"", b"<html>no matrix here</html>" * 20, b"MATLAB 5.0 MAT-file".ljust(128)])
def test_what_is_no_matlab_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.mat"):
        read_recording(tmp_path / "a.mat")
