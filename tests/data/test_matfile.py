"""Matrices of MATLAB files beside scipy, which wrote them, and files that are damaged."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from dicot.core.errors import InputError
from dicot.data.matfile import read_matrix


def element(kind: int, content: bytes, order: str = "<", size: int | None = None) -> bytes:
    return struct.pack(f"{order}II", kind, len(content) if size is None else size) + content + bytes(-len(content) % 8)


def matrix(
    shape: tuple[int, ...], values: bytes, order: str = "<", *, flags: int = 6, kind: int = 9, size: int | None = None
) -> bytes:
    """A matrix `a` by hand, with whatever its header is to state."""
    return element(
        14,
        element(6, struct.pack(f"{order}II", flags, 0), order)
        + element(5, struct.pack(f"{order}{len(shape)}i", *shape), order)
        + element(1, b"a", order)
        + element(kind, values, order, size),
        order,
    )


def mat(*elements: bytes, order: str = "<") -> bytes:
    head = b"MATLAB 5.0 MAT-file".ljust(124)
    return head + (b"\0\1IM" if order == "<" else b"\1\0MI") + b"".join(elements)


def packed(data: bytes) -> bytes:
    small = zlib.compress(data)
    return struct.pack("<II", 15, len(small)) + small  # the only kind that is not filled up to eight bytes


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_as_scipy(tmp_path: Path, dtype: str, compress: bool) -> None:
    path = tmp_path / "a.mat"
    for shape in ((3, 5), (1, 1), (0, 4), (1, 3)):
        a = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
        savemat(path, {"before": "text", "a": a, "after": {"b": [1, 2]}}, do_compression=compress)
        found = read_matrix(path, "a")
        np.testing.assert_array_equal(found, a)
        assert found.dtype == loadmat(path)["a"].dtype == a.dtype


def test_the_other_order_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(mat(matrix((2, 3), np.arange(6, dtype=">f8").tobytes(), ">"), order=">"))
    np.testing.assert_array_equal(read_matrix(path, "a"), loadmat(path)["a"])
    assert read_matrix(path, "a").tolist() == [[0, 2, 4], [1, 3, 5]]


SIX = np.arange(6.0).tobytes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (matrix((2, 4), SIX), "2 x 4 numbers and holds 6"),
        (matrix((-2, -3), SIX), "-2 x -3"),
        (matrix((2**31 - 1, 2**31 - 1), SIX), "holds 6"),
        (matrix((1, 2, 3), SIX), "3 axes"),
        (matrix((2, 3), SIX, size=2**32 - 1), "states 4294967295 bytes"),
        (matrix((2, 3), SIX, flags=4), "real numbers"),  # text
        (matrix((2, 3), SIX, flags=6 | 0x0800), "real numbers"),  # complex
        (matrix((2, 3), SIX, kind=77), "kind 77"),
        (matrix((2, 3), SIX)[:-9], "more than are there"),
        (matrix((2, 3), SIX) * 2, "two variables a"),
        (matrix((2, 3), SIX) + b"\0\0\0", "Fetch it again"),
        (element(9, SIX), "kind 9, not a matrix"),
        (element(14, b""), "lacks its header"),
        (packed(matrix((2, 3), SIX))[:-3], "more than are there"),
        (element(15, zlib.compress(matrix((2, 3), SIX))[:-3]), "does not end where it should"),
        (element(15, zlib.compress(matrix((2, 3), SIX)) + b"more"), "does not end where it should"),
        (packed(matrix((2, 3), SIX) * 2), "Fetch it again"),
        (packed(b""), "Fetch it again"),
    ],
)
def test_damage_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.mat").write_bytes(mat(content))
    with pytest.raises(InputError, match=said) as caught:
        read_matrix(tmp_path / "a.mat", "a")
    assert "Fetch it again" in str(caught.value)


def test_files_of_matlab_4_are_told_by_their_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.mat").write_bytes(b"M\0" + mat(matrix((2, 3), SIX))[2:])
    with pytest.raises(InputError, match=r"MATLAB 4.*Fetch it again"):
        read_matrix(tmp_path / "a.mat", "a")
