"""An index in a folder: index.json, the vectors as .npy to be mapped into memory, all else as .npz; never pickle.

index.json names the other files, whose names hold their hash, and is put in place last: a save that is cut off leaves
the index that was there before, whole. What else it leaves is removed by the next save.
"""

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from dicot import __version__
from dicot.core.errors import InputError, ModelFileError, brief
from dicot.core.storage import atomic_file, check_format, write_atomic, writing
from dicot.data.npyfile import load_npz, map_npy
from dicot.data.pieces import pieces, release
from dicot.data.policies import Array
from dicot.store.search.rows import Rows
from dicot.store.vectors import write_vectors

FORMAT, FORMAT_VERSION = "dicot-index", 1
CONFIG = "index.json"
LARGEST_CONFIG = 2**16  # bytes
NAMES = {"vectors": r"vectors-[0-9a-f]{16}\.npy", "columns": r"columns-[0-9a-f]{16}\.npz"}
# What a save that was cut off may leave behind; the last letters are mkstemp's.
LEFT = re.compile(
    rf"{NAMES['vectors']}|{NAMES['columns']}|\.columns\.npz|\.vectors\.npy|"
    rf"\.(index\.json|{NAMES['vectors']}|\.columns\.npz|\.vectors\.npy)\.[a-z0-9_]{{8}}"
)
State = tuple[int, int, bytes]
AGAIN = "Copy the folder or save the index again."


class SavedIndex(NamedTuple):
    """What a folder holds."""

    metric: str
    x: Array  # (N, F) float32, mapped
    columns: dict[str, Array]


def save_folder(folder: Path, metric: str, rows: Rows, columns: Mapping[str, Array]) -> None:
    """Write the folder, in place of an index that is there; other files in it stay."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the name of a folder to save an index in.")
    vectors = folder / f"vectors-{_hash_of_rows(rows)[:16]}.npy"
    with atomic_file(vectors) as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(rows), rows.n_features)}
        np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
        for block in _pieces_of(rows):
            file.write(block)
    names = {"vectors": vectors.name}
    aside = folder / ".columns.npz"
    if columns:
        write_vectors(aside, {"": dict(columns)})
        with writing(folder):
            names["columns"] = f"columns-{_hash_of_file(aside)[:16]}.npz"
            aside.replace(folder / names["columns"])
    _finish(folder, metric, (len(rows), rows.n_features), names)


@final
class IndexWriter:
    """Writes an index whose vectors and columns come block by block; the folder is an index once it has finished."""

    def __init__(self, folder: Path, metric: str, shape: tuple[int, int], source: str = "") -> None:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; give the name of a folder to save an index in.")
        self.folder, self.metric, self.shape, self.source = folder, metric, shape, source
        self.names: dict[str, str] = {}

    def vectors(self, blocks: Iterable[Array]) -> None:
        """Write all vectors, in blocks (n, F)."""
        aside, digest, count = self.folder / ".vectors.npy", _digest_of_shape(self.shape), 0
        with atomic_file(aside) as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": self.shape}
            np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
            for block in blocks:
                data = np.ascontiguousarray(block, "<f4").tobytes()
                digest.update(data)
                file.write(data)
                count += len(block)
        if count != self.shape[0]:
            raise InputError(f"{count} vectors came, and {self.shape[0]} were announced. Embed them again.")
        self._place(aside, "vectors", f"vectors-{digest.hexdigest()[:16]}.npy")

    def columns(self, columns: Mapping[str, tuple[np.dtype[Any], Iterable[Array]]]) -> None:
        """Write what is known of the vectors: for each column its type and its values, in blocks."""
        aside = self.folder / ".columns.npz"
        with atomic_file(aside) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, (dtype, blocks) in columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    header = {"descr": dtype.str, "fortran_order": False, "shape": self.shape[:1]}
                    np.lib.format.write_array_header_1_0(member, header)  # type: ignore[no-untyped-call]
                    for block in blocks:
                        member.write(np.ascontiguousarray(block, dtype).tobytes())
        self._place(aside, "columns", f"columns-{_hash_of_file(aside)[:16]}.npz")

    def _place(self, aside: Path, kind: str, name: str) -> None:
        with writing(self.folder):
            aside.replace(self.folder / name)
        self.names[kind] = name

    def finish(self) -> Path:
        """Put index.json in place, and remove what an earlier index left."""
        _finish(self.folder, self.metric, self.shape, self.names, self.source)
        return self.folder


def _finish(folder: Path, metric: str, shape: tuple[int, int], names: Mapping[str, str], source: str = "") -> None:
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "metric": metric,
        "shape": list(shape),
        "files": dict(names),
        **({"source": source} if source else {}),
    }
    write_atomic(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())
    with writing(folder):
        for path in folder.iterdir():
            if LEFT.fullmatch(path.name) and path.name not in names.values():
                path.unlink(missing_ok=True)


def state_of(folder: Path) -> State | None:
    """Return what tells one save of an index from any other; None where there is none."""
    try:
        facts = (folder / CONFIG).stat()
        return facts.st_ino, facts.st_mtime_ns, (folder / CONFIG).read_bytes()
    except OSError:
        return None


def source_of_index(folder: Path) -> str | None:
    """Return what an index says it was made of; None where there is no index, or a damaged one."""
    try:
        return str(_config(folder).get("source", ""))
    except ModelFileError:
        return None


def load_folder(folder: Path) -> SavedIndex:
    """Read what `save_folder` wrote; every byte is checked once."""
    config = _config(folder)
    try:
        metric, files, shape = config["metric"], config["files"], config["shape"]
        if metric not in ("cosine", "euclidean") or not set(files) <= set(NAMES) or "vectors" not in files:
            raise ValueError(f"it names the metric {metric!r} and the files {files!r}")
        # Only names as they are written: a path must not lead out of the folder.
        if not all(isinstance(name, str) and re.fullmatch(NAMES[kind], name) for kind, name in files.items()):
            raise ValueError(f"it names the files {files!r}")
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{folder / CONFIG} is damaged ({brief(error)}). {AGAIN}") from error
    for name in files.values():
        if not (folder / name).is_file():
            raise ModelFileError(f"{folder} has no {name}, which its {CONFIG} names. {AGAIN}")
    try:
        x = map_npy(folder / files["vectors"])
        columns = load_npz(folder / files["columns"]) if "columns" in files else {}
    except InputError as error:
        raise ModelFileError(f"{brief(error)} {AGAIN}") from error
    if x.dtype != np.dtype("<f4") or not x.flags.c_contiguous or list(x.shape) != shape or x.ndim != 2:
        raise ModelFileError(
            f"{folder / files['vectors']} holds {x.dtype} {x.shape}, {CONFIG} says float32 {shape}. {AGAIN}"
        )
    hashes = {"vectors": _hash_of_rows(Rows([x], np.empty(0)))}
    try:
        if "columns" in files:
            hashes["columns"] = _hash_of_file(folder / files["columns"])
    except OSError as error:  # removed just now
        raise ModelFileError(f"{folder / files['columns']} cannot be read ({error}). {AGAIN}") from error
    for kind, digest in hashes.items():
        if digest[:16] not in files[kind]:
            raise ModelFileError(f"{folder / files[kind]} was changed or damaged after it was saved. {AGAIN}")
    return SavedIndex(metric, x, columns)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.is_file():
        raise ModelFileError(f"{folder} is not a saved index: it has no {CONFIG}. EmbeddingIndex.save makes one.")
    try:
        if path.stat().st_size > LARGEST_CONFIG:
            raise ValueError(f"{path.stat().st_size:,} bytes are more than it has")
        config = json.loads(path.read_bytes().decode())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged ({brief(error)}). {AGAIN}") from error
    return check_format(path, config, FORMAT, FORMAT_VERSION)


def _pieces_of(rows: Rows) -> Iterator[bytes]:
    """Yield the bytes of all rows, little-endian, piece by piece."""
    for part in rows.parts:
        for some in pieces((len(part), 1, part.shape[1])):
            yield np.ascontiguousarray(part[some], "<f4").tobytes()
            release(part[some])


def _digest_of_shape(shape: tuple[int, int]) -> Any:
    return hashlib.sha256(f"{shape[0]} {shape[1]}".encode())


def _hash_of_rows(rows: Rows) -> str:
    """Hash the values and the shape."""
    digest = _digest_of_shape((len(rows), rows.n_features))
    for block in _pieces_of(rows):
        digest.update(block)
    return str(digest.hexdigest())


def _hash_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
