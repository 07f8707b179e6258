"""Matrices of a MATLAB file by scipy."""

import warnings
from pathlib import Path

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data.naming import listed
from dicot.data.policies import Array
from dicot.data.reading import Reading
from dicot.data.recording import Parts
from dicot.data.roles import parts_of_arrays


def read_matrices(path: Path) -> dict[str, Array | None]:
    """Read all variables; None for what is no matrix of real numbers."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        found = loadmat(path, spmatrix=False)
    except NotImplementedError as error:
        raise InputError("It is a file of MATLAB 7.3, which is not read. Save it in MATLAB with -v7.") from error
    except (MatReadError, TypeError, IndexError, KeyError) as error:  # scipy trusts what a damaged file says
        raise ValueError(f"it is no sound MATLAB file: {error}") from error
    arrays = {name: value for name, value in found.items() if not name.startswith("__")}
    return {
        name: a if getattr(a, "dtype", None) is not None and a.dtype.kind in "biuf" else None
        for name, a in arrays.items()
    }


def read_matrix(path: Path, name: str) -> Array:
    """Read the variable `name`, a matrix of real numbers."""
    found = read_matrices(path)
    if (matrix := found.get(name)) is None:
        raise InputError(f"There is no matrix {name}; the file holds {listed(list(found))}.")
    return matrix


def read_mat(path: Path, reading: Reading) -> Parts:
    """Read a matrix X (channels, time), or one vector for each channel."""
    matrices = read_matrices(path)
    held = {name: matrix for name, matrix in matrices.items() if matrix is not None and matrix.size}
    if left := [name for name in matrices if name not in held]:
        warnings.warn(f"{path}: not used, no matrix of numbers: {listed(left)}.", UnusedKeysWarning, stacklevel=2)
    # MATLAB has neither scalars nor vectors: they are matrices with one row or column.
    arrays = {name: matrix.reshape([n for n in matrix.shape if n > 1][:2]) for name, matrix in held.items()}
    return parts_of_arrays(arrays, reading)
