"""Arrays: .npy, and .npz with labels and groups or with a split."""

import ast
import io
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from dicot.data import Split, Windows
from dicot.data.files import read_split, read_windows
from tests.survival.kind import Kind, UnreadableError
from tests.survival.mutations import NPY, ZIP
from tests.survival.verdicts import windows_are

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2, 16)).astype(np.float32)
Y = np.array(["left", "right", "up"] * 4)
GROUP = np.arange(12) // 3
LARGEST_MEMBER = 10**7  # bytes of a member that no damage explains
Names = tuple[str, ...]
PARTS = ("train", "test")
CASE_NAMES = ("x", "data", "values")
LABEL_NAMES = ("y", "label", "labels", "target", "targets", "class")
TRAIN_NAMES, TEST_NAMES = (
    [tuple(f"{name}_{part}" for name in known) for known in (CASE_NAMES, LABEL_NAMES)] for part in PARTS
)
GROUP_NAMES = ("group", "groups", "user", "users", "subject", "subjects", "person", "patient", "participant", "record")


def parse_npy(data: bytes) -> np.ndarray:
    """An array from its bytes, without numpy's reader."""
    versions = {b"\x01\x00": ("<H", 10), b"\x02\x00": ("<I", 12), b"\x03\x00": ("<I", 12)}
    if data[:6] != b"\x93NUMPY" or data[6:8] not in versions:
        raise UnreadableError("no header of an array")
    form, start = versions[data[6:8]]
    try:
        (length,) = struct.unpack(form, data[start - struct.calcsize(form) : start])
        head = ast.literal_eval(data[start : start + length].decode("latin-1").strip())
        dtype, shape = np.dtype(head["descr"]), head["shape"]
        order = "F" if head["fortran_order"] else "C"
        if dtype.hasobject or dtype.names or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise UnreadableError(f"{dtype} of shape {shape}")
        body = data[start + length :]
        count = int(np.prod([int(n) for n in shape], dtype=object)) if shape else 1
        if count * dtype.itemsize > len(body):
            raise UnreadableError("fewer values than the header says")
        return np.frombuffer(body, dtype, count).reshape(shape, order=order)
    except (SyntaxError, ValueError, TypeError, KeyError, struct.error, RecursionError, MemoryError) as error:
        raise UnreadableError(f"header: {error}") from error


def parse_npz(path: Path) -> dict[str, list[np.ndarray]]:
    """All arrays by name; of a name that comes twice, both."""
    held: dict[str, list[np.ndarray]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as file:
            for info in file.infolist():
                held.setdefault(info.filename.removesuffix(".npy"), []).append(_member(file, info))
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise UnreadableError(str(error)) from error
    return held


def _member(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    """A damaged member is nothing: it may be one that is not asked for."""
    try:
        with file.open(info) as member:
            data = member.read(LARGEST_MEMBER + 1)
        return parse_npy(data) if len(data) <= LARGEST_MEMBER else None
    except (UnreadableError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError):
        return None


def _numbers(array: Any) -> list[np.ndarray]:
    if array is None or array.dtype.kind not in "biuf" or array.ndim not in (2, 3) or not array.size:
        raise UnreadableError("X is damaged or holds no cases of numbers")
    return list((array[:, None] if array.ndim == 2 else array).astype(float))


def _labels(array: Any) -> list[Any]:
    if array is None or array.ndim != 1 or array.dtype.kind not in "biufUS":
        raise UnreadableError("labels are damaged or of another kind")
    if array.dtype.kind == "U" and array.size:
        native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
        if native.view(np.uint32).max(initial=0) > sys.maxunicode:  # strings of which every use fails
            raise UnreadableError("labels that are no text")
    return list(array.tolist())


def _any_of(
    windows: Windows, held: dict[str, list[np.ndarray]], x: Names, y: Names = LABEL_NAMES, group: Names = ()
) -> str:
    """Right if one of the arrays of each name, in any case of letters, is what was read."""
    xs, ys, groups = (
        [array for name in held if name.lower() in names for array in held[name]] for names in (x, y, group)
    )
    if not xs:
        raise UnreadableError(f"there is no {x[0]}")
    ways = [(a, b, c) for a in xs for b in ys or ["none"] for c in groups or ["none"]]
    complaints = []
    for a, b, c in ways:
        cells = [None if isinstance(part, str) else _labels(part) for part in (b, c)]
        complaints.append(windows_are(windows, _numbers(a), *cells))
    return "" if "" in complaints else complaints[0]


def judge_npy(folder: Path, windows: Windows, sound: Any) -> str:
    return windows_are(windows, _numbers(parse_npy((folder / "a.npy").read_bytes())), None, None)


def judge_npz(folder: Path, windows: Windows, sound: Any) -> str:
    held = parse_npz(folder / "a.npz")
    if any(name.lower() in TRAIN_NAMES[0] for name in held):  # a split without its test part
        return _any_of(windows, held, *TRAIN_NAMES)
    return _any_of(windows, held, CASE_NAMES, LABEL_NAMES, GROUP_NAMES)


def judge_split(folder: Path, split: Split, sound: Any) -> str:
    held = parse_npz(folder / "a.npz")
    names = {name.lower() for name in held}
    if not names & set(TRAIN_NAMES[0]):
        return judge_npz(folder, split.train, sound)
    if split.test is None and names & set(TEST_NAMES[0]):
        return "the test part is lost"
    wrong = _any_of(split.test, held, *TEST_NAMES) if split.test is not None else ""
    return wrong or _any_of(split.train, held, *TRAIN_NAMES)


def _save(folder: Path, compressed: bool, **arrays: np.ndarray) -> None:
    (np.savez_compressed if compressed else np.savez)(folder / "a.npz", **arrays)


KINDS = [
    Kind(
        "npy",
        lambda folder: np.save(folder / "a.npy", X),
        {"a.npy": NPY},
        lambda folder: read_windows(folder / "a.npy"),
        judge_npy,
    ),
    Kind(
        "npz",
        lambda folder: _save(folder, False, X=X, y=Y, group=GROUP),
        {"a.npz": ZIP},
        lambda folder: read_windows(folder / "a.npz"),
        judge_npz,
    ),
    Kind(
        "npz-split",
        lambda folder: _save(
            folder, True, X_train=X[:8], y_train=GROUP[:8], X_test=X[8:, :1].repeat(2, 1), y_test=GROUP[8:]
        ),
        {"a.npz": ZIP},
        lambda folder: read_split(folder / "a.npz"),
        judge_split,
    ),
]
