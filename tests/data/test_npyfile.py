"""Headers of .npy and .npz files against the bytes there are, before memory is taken."""

import mmap
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.files import read_parts, read_windows
from dicot.data.policies import Array

X = np.arange(12, dtype=np.float32).reshape(3, 2, 2)


def npy(shape: str, kind: str = "'<f4'", order: str = "False", version: int = 1, body: bytes = X.tobytes()) -> bytes:
    """The bytes of a .npy file whose header says what it is told to say."""
    header = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 if version == 1 else 4, "little") + header + body


def npz(path: Path, compression: int = zipfile.ZIP_STORED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def is_mapped(array: Array) -> bool:
    """Whether the values lie in a file."""
    base: object = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "base", None)
    return base is not None


LYING = {
    "10^12": npy("(1000000000000, 1, 1)"),
    "10^20": npy("(100000000000000000000, 1, 1)"),
    "axes that overflow": npy("(4294967296, 4294967296, 3)"),
    "empty and too large": npy("(0, 9000000000000000000, 9000000000000000000)", body=b""),
    "negative": npy("(-3, -2, 2)"),
    "truth": npy("(True, 6, 2)"),
    "no tuple": npy("[3, 2, 2]"),
    "more than announced": npy("(2, 2, 2)"),
    "less than announced": npy("(4, 2, 2)"),
    "text of no width": npy("(1000000000000,)", "'<U0'", body=b""),
    "no order": npy("(3, 2, 2)", order="0"),
    "objects": npy("(12,)", "'|O'"),
    "fields": npy("(12,)", "[('a', '<f4')]"),
    "fields in short": npy("(6,)", "'<f4,<f4'"),
    "raw bytes": npy("(12,)", "'|V4'"),
    "no kind": npy("(16,)", "'<f3'"),
    "nested": npy("(" * 1500),
    "signs": npy("-" * 3000 + "1"),
    "a hundred axes": npy(f"({'1, ' * 100}12)"),
    "unknown version": npy("(3, 2, 2)", version=9),
    "endless header": b"\x93NUMPY\x02\x00" + (1 << 31).to_bytes(4, "little") + b"{" * 50,
    "ends in the header": npy("(3, 2, 2)", body=b"")[:-9],
}


@pytest.mark.parametrize("content", LYING.values(), ids=list(LYING))
def test_headers_that_cannot_be_true(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    for path in (tmp_path / "a.npy", npz(tmp_path / "a.npz", X=content)):
        with pytest.raises(InputError, match=rf"a\{path.suffix}") as caught:
            read_windows(path)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("version", [1, 2, 3])
def test_headers_that_numpy_writes_or_wrote(tmp_path: Path, version: int) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy("(3L, 2L, 2L)", version=version))  # as Python 2 wrote whole numbers
    np.testing.assert_array_equal(read_windows(path).x, X)
    path.write_bytes(npy("(2, 2, 3)", order="True", version=version))
    np.testing.assert_array_equal(read_windows(path).x, X.T)
    np.testing.assert_array_equal(read_windows(npz(tmp_path / "a.npz", X=path.read_bytes())).x, X.T)
    for dtype in (">f8", "i2", "?", "f2"):
        np.save(path, X.astype(dtype))
        np.testing.assert_array_equal(read_windows(path).x, X.astype(dtype))


def test_npy_files_are_mapped_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    assert is_mapped(read_parts(tmp_path / "a.npy")[""].X)  # type: ignore[arg-type]
    assert is_mapped(read_windows(tmp_path / "a.npy").x)


def test_a_small_file_that_unpacks_to_a_large_one(tmp_path: Path) -> None:
    n_values, chunk = 1 << 26, bytes(1 << 20)
    path = tmp_path / "bomb.npz"
    packed = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with packed, packed.open("X.npy", "w") as member:
        member.write(npy(f"(1, 1, {n_values})", body=b""))
        for _ in range(4 * n_values // len(chunk)):
            member.write(chunk)
    assert path.stat().st_size < 2 << 20
    with pytest.raises(InputError, match=r"bomb\.npz.*268435\d+.*uncompressed, as \.npy"):
        read_windows(path)


def test_zeros_may_be_compressed(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "zeros.npz", X=np.zeros((50, 2, 1000)))
    assert not read_windows(tmp_path / "zeros.npz").x.any()


def test_archives_that_numpy_does_not_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.npz.*'X'"):
        read_windows(npz(tmp_path / "a.npz", zipfile.ZIP_BZIP2, X=npy("(3, 2, 2)")))
    path = npz(tmp_path / "b.npz", X=npy("(3, 2, 2)"), Z=npy("(3, 2, 2)"))
    path.write_bytes(path.read_bytes().replace(b"Z.npy", b"X.npy"))
    with pytest.raises(InputError, match=r"b\.npz"):
        read_windows(path)


def test_text_that_is_no_text(tmp_path: Path) -> None:
    labels = npy("(3,)", "'<U1'", body=np.array([97, 98, 0x110000], "<u4").tobytes())
    with pytest.raises(InputError, match=r"a\.npz.*text"):
        read_windows(npz(tmp_path / "a.npz", X=npy("(3, 2, 2)"), y=labels))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_array_of_an_uncompressed_archive_is_mapped(tmp_path, monkeypatch, order):
    from dicot.data import npyfile

    monkeypatch.setattr(npyfile, "_MAPPED_FROM", 1000)
    x = np.asarray(np.random.default_rng(0).normal(size=(30, 2, 40)), np.float32, order=order)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", y=np.arange(30), X=x)
        arrays = npyfile.load_npz(tmp_path / "a.npz")
        assert isinstance(arrays["X"], np.memmap) == (save is np.savez)
        assert np.array_equal(arrays["X"], x) and arrays["y"].tolist() == [*range(30)]
