"""Embeddings in a .parquet or .npz: written row by row, and read with what the file says about them. Tables of results.

A .parquet is a plain table, one row per case, that any other program reads: pandas.read_parquet shows it. Both keep
what their vectors were made of, as JSON under SOURCE. The folder that `dicot embed` writes is read likewise.
"""

import json
import tempfile
import weakref
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
import pandas as pd

from dicot.core.errors import InputError, ModelFileError, brief, is_whole, listed, naming, quoted
from dicot.core.storage import arrow, atomic_file, check_writable, writing
from dicot.data.cases import Array, blocks
from dicot.data.datasets import is_path
from dicot.data.folders import SOURCE as SOURCE
from dicot.data.labels import as_text, check_groups, join_column, labelled, name_of_groups
from dicot.data.npyfile import PARTS, load_npz, npz_names
from dicot.data.reading import Reading
from dicot.data.stream import are_facts
from dicot.data.tables import open_parquet
from dicot.store.folder import COLUMNS as KNOWN
from dicot.store.folder import MANIFEST, TIMES, VECTORS, Store

# Column of a .parquet, in this order -> its array in an .npz. The vector comes last, "part" first where there are two.
COLUMNS = {name: "y" if name == "label" else name for name in KNOWN}
SECONDS = ("start", "end")
SUFFIXES = (".parquet", ".npz")
TABLES = (".csv", ".parquet")  # of what is said of vectors, for other programs
# "train" and "test", or "" for the only part -> its arrays: X (N, F) and, where known, those of COLUMNS' values (N,)
Parts = Mapping[str, Mapping[str, Array]]
AGAIN = "Write the file again by `dicot embed`."


@final
@dataclass(frozen=True)
class MadeOf:
    """What vectors were made of, by which model and how: to find their series again and to tell later what is new."""

    kind: str  # "recordings"; or cases of a "file", or of a data set by "name"
    data: tuple[str, ...]  # paths, or the name of the data set
    options: dict[str, Any]  # of recordings those of a Reading; of cases those of `load`
    model: str = ""  # its hash
    channels: tuple[str, ...] | None = None
    rate: float | None = None  # time steps per second
    n_times: int | None = None  # of a window
    stride: int | None = None  # in time steps
    # Name of each file of recordings -> what it held: `facts_of` tells it, "file" and "bytes" at least.
    recordings: dict[str, dict[str, Any]] = field(default_factory=dict)
    at: str = ""  # where the model was: a name in the box, or a path

    @classmethod
    def of_cases(cls, data: str, options: Mapping[str, Any], channels: Sequence[str] | None, model: str) -> "MadeOf":
        """Say that vectors were made of a file of cases or a data set by name, read with these options."""
        place = str(Path(data).expanduser().absolute()) if is_path(data) else data
        names = None if channels is None else tuple(channels)
        return cls("file" if is_path(data) else "name", (place,), dict(options), model, names)

    def is_of(self, data: str) -> bool:
        """Tell whether they were made of this folder, pattern, file or data set, as a command names it."""
        return self.data in ((data,), (str(Path(data).expanduser().absolute()),))

    @property
    def files(self) -> dict[str, Path]:
        return {name: Path(entry["file"]) for name, entry in self.recordings.items()}

    def to_dict(self) -> dict[str, Any]:
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        own = () if self.kind == "recordings" else ("n_times", "stride", "recordings")
        return {key: value for key, value in plain.items() if key not in own}

    @classmethod
    def from_dict(cls, said: Any) -> "MadeOf":
        """Take what a file says, checked: anybody may have written it."""
        try:
            given = {one.name: said[one.name] for one in fields(cls) if said.get(one.name) is not None}
            given |= {key: tuple(given[key]) for key in ("data", "channels") if key in given}
            made = cls(**{"options": {}, **given})
            Reading(rate=made.rate)
            if made.kind == "recordings":
                Reading.from_dict(made.options)
            sound = (
                made.kind in ("recordings", "file", "name")
                and len(made.data) > 0
                and all(isinstance(text, str) for text in (*made.data, *(made.channels or ()), made.model, made.at))
                and all(is_whole(count, 1) for count in (made.n_times, made.stride) if count is not None)
                and isinstance(made.options, dict)
                and all(map(are_facts, made.recordings.values()))
            )
            if not sound:
                raise ValueError(quoted(said))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"its entry {SOURCE!r} cannot be used ({brief(error)}). {AGAIN}") from error
        return made


@dataclass(frozen=True, eq=False)
class Vectors:
    """Hold N vectors that were read from a file, and what the file says about them; None where it says nothing.

    Text that is not known is empty, and a number that is not known is NaN, as in the labels of Windows.
    """

    x: Array  # (N, F) float32; a read-only memory map where a large .npz has one
    recording: Array | None = None  # (N,) text
    start: Array | None = None  # (N,) float64, in seconds
    end: Array | None = None  # (N,) float64, in seconds
    start_time: Array | None = None  # (N,) datetime64[us] in UTC, NaT where it is not known
    end_time: Array | None = None
    group: Array | None = None  # (N,) numbers or text
    label: Array | None = None  # (N,) numbers or text
    part: Array | None = None  # (N,) "train" or "test", where the file holds both
    source: MadeOf | None = None  # files that others wrote do not say

    def __len__(self) -> int:
        return len(self.x)

    def at(self, rows: Array) -> "Vectors":
        """Return the vectors in some rows, with all that is known about them."""
        columns = {name: values[rows] for name, values in self.columns().items()}
        part = None if self.part is None else self.part[rows]
        return replace(self, x=self.x[rows], part=part, **columns)

    def columns(self) -> dict[str, Any]:
        """Return what the file says about the vectors by name, in the order of the file: recording, start and so on."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        return {name: values for name, values in columns.items() if values is not None}

    @property
    def placed(self) -> bool:
        """Tell whether it is known where in which recording each vector lies."""
        return {"recording", *SECONDS} <= self.columns().keys()

    def places(self) -> tuple[Array, Array, Array]:
        """Return recording, start and end, or an error where the file does not say them."""
        if self.recording is None or self.start is None or self.end is None:
            said = "it does not say recording, start and end of its vectors. Embed recordings"
            raise InputError(f"{said}: dicot embed MODEL FOLDER --window ... --out vectors.parquet.")
        return self.recording, self.start, self.end

    def begun(self) -> dict[str, float]:
        """Return when each recording began, in seconds since 1970, where it is known."""
        if self.recording is None or self.start is None or self.start_time is None:
            return {}
        dated = ~np.isnat(self.start_time)
        zero = self.start_time[dated].astype("M8[us]").astype(np.int64) / 1e6 - self.start[dated]
        return {str(name): float(time) for name, time in zip(self.recording[dated], zero, strict=True)}

    @property
    def model(self) -> str | None:
        """Return the hash of the model that made them, where the file says it."""
        return None if self.source is None else self.source.model or None

    def held_together(self, least: int, rows: Any = slice(None)) -> tuple[str, Array] | None:
        """Return the name and values (N,) of what holds vectors together: groups, or else recordings.

        What has fewer than `least` different values among these rows does not count; None where neither has as many.
        """
        for name, values in (("group", self.group), ("recording", self.recording)):
            if values is not None and len(np.unique(check_groups(values, len(self), name, "vectors")[rows])) >= least:
                options = {} if self.source is None else self.source.options
                column = options.get("group") if name == "group" else name
                return name_of_groups(values, self.recording, column if isinstance(column, str) else None), values
        return None


def read_vectors(path: str | Path, *, finite: bool = False, make: Callable[[int, int], Any] | None = None) -> Vectors:
    """Read a .parquet, an .npz or a folder as `dicot embed` writes them.

    Of a training and a test part, one comes after the other. A .parquet's column "vector" may also hold lists of equal
    length, as pandas writes them; columns of other names are left alone. With `finite`, a vector that holds NaN or inf
    is an error. With `make`, such as one of a RowFile, the vectors of a .parquet go there and need not fit into memory.
    """
    path = Path(path)
    if not path.is_dir() and path.suffix not in SUFFIXES:
        raise InputError(f"{path} has the suffix {path.suffix!r}; vectors are read from {' and '.join(SUFFIXES)}.")
    if not path.exists():
        raise InputError(f"There is no file {path}. `dicot embed DATA --out {path}` writes one.")
    with naming(path):
        vectors = (
            _of_store(path) if path.is_dir() else _of_npz(path) if path.suffix == ".npz" else _of_parquet(path, make)
        )
        for rows, block in blocks(vectors.x) if finite else ():
            if len(lost := np.flatnonzero(~np.isfinite(block).all(axis=1))):
                raise InputError(f"the vector of row {rows.start + lost[0]} holds NaN or inf. Leave this row out.")
    return vectors


def read_source(path: Path) -> MadeOf | None:
    """Read what vectors were made of, without the vectors themselves; None where the file does not say it."""
    with naming(path):
        if path.is_dir():
            return made_of(Store(path))
        if path.suffix == ".parquet":
            with open_parquet(path) as file:
                text = (file.schema_arrow.metadata or {}).get(SOURCE.encode())
            return None if text is None else _source(text.decode("utf-8", "replace"))
        arrays = load_npz(path, [SOURCE])
        return _source(str(arrays[SOURCE])) if SOURCE in arrays else None


def other_columns(path: Path) -> list[str]:
    """List the columns of a .parquet that are neither vectors nor what dicot says about them, such as predictions."""
    if path.suffix != ".parquet":
        return []
    with naming(path), open_parquet(path) as file:
        names: list[str] = file.schema_arrow.names
    return [name for name in names if name not in {"vector", "part", *COLUMNS}]


def source_of(path: Path) -> MadeOf | None:
    """Return what vectors say they were made of; None too where it is no such file, or a damaged one."""
    try:
        return read_source(path)
    except (InputError, ModelFileError):
        return None


def are_vectors(path: str | Path) -> bool:
    """Tell vectors from series: by what wrote the file, or by a column or array that looks like vectors."""
    path = Path(path)
    if path.is_dir():
        return (path / MANIFEST).is_file() and Store(path).kind == VECTORS
    if not path.is_file():
        return path.suffix in SUFFIXES
    if path.suffix == ".parquet":
        with open_parquet(path) as file:
            return "vector" in file.schema_arrow.names
    if path.suffix != ".npz":
        return False
    names = npz_names(path)
    told = [name for name in ("X", *(f"X_{part}" for part in PARTS)) if name in names]
    return SOURCE in names or any(array.ndim == 2 for array in load_npz(path, told).values())


def _of_store(folder: Path) -> Vectors:
    store = Store(folder, verify=True)
    if store.kind != VECTORS:
        raise InputError(f"it holds {store.kind}, not vectors. Embed them: dicot embed MODEL CORPUS --out FOLDER.")
    return Vectors(store[:], **store.columns(), source=made_of(store))


def made_of(store: Store) -> MadeOf | None:
    """Return what the vectors of a store were made of, where it says so."""
    return None if store.about.get("source") is None else MadeOf.from_dict(store.about["source"])


def _refuse_bomb(path: Path, unpacked: int) -> None:
    """Refuse a file that unpacks to far more than it holds: it may be a stranger's."""
    if unpacked > max(2**30, 100 * path.stat().st_size):
        raise InputError(f"it unpacks to {unpacked:,} bytes, which may be made to fill the memory. {AGAIN}")


def _of_npz(path: Path) -> Vectors:
    with zipfile.ZipFile(path) as archive:
        _refuse_bomb(path, sum(entry.file_size for entry in archive.infolist()))
    arrays = load_npz(path)
    parts = [part for part in PARTS if f"X_{part}" in arrays]
    endings = [""] if "X" in arrays else [f"_{part}" for part in parts]
    vectors = [arrays[f"X{ending}"] for ending in endings]
    if not vectors or not all(x.ndim == 2 and x.dtype.kind == "f" and x.size for x in vectors):
        raise InputError(f"it must have an array 'X' of numbers (cases, features); it has {listed([*arrays])}. {AGAIN}")

    counts = [len(x) for x in vectors]
    columns = {}
    for name, key in COLUMNS.items():
        values = _column_of_npz(name, [arrays.get(f"{key}{ending}") for ending in endings], counts)
        if values is not None:
            columns[name] = values
    part = np.repeat(np.array(parts), counts) if len(endings) > 1 else None
    source = _source(str(arrays[SOURCE])) if SOURCE in arrays else None
    whole = vectors[0] if len(vectors) == 1 else np.concatenate(vectors)
    return Vectors(whole.astype(np.float32, copy=False), **columns, part=part, source=source)


def _column_of_npz(name: str, arrays: Sequence[Array | None], counts: Sequence[int]) -> Array | None:
    """Join what each part says of its vectors; None where none says anything."""
    for array, count in zip(arrays, counts, strict=True):
        if array is not None and (array.shape != (count,) or array.dtype.kind not in "biufUM"):
            raise InputError(f"{name!r} holds {array.dtype} {array.shape} beside {count} vectors. {AGAIN}")
    values = arrays[0] if len(arrays) == 1 else join_column(arrays, counts)
    return None if values is None else _as_read(name, values)


def _as_read(name: str, values: Array) -> Array:
    """Return a column as Vectors has it: recordings as text, seconds as float64, UTC times as datetime64[us]."""
    if (values.dtype.kind == "M") != (name in TIMES):
        wanted = "UTC times" if name in TIMES else "numbers or text"
        raise InputError(f"{name!r} must hold {wanted}; got {values.dtype}. {AGAIN}")
    if name in TIMES:
        return values.astype("M8[us]")
    if name in SECONDS and values.dtype.kind == "U":
        raise InputError(f"{name!r} must hold seconds as numbers; got text. {AGAIN}")
    return values.astype(np.float64) if name in SECONDS else as_text(values) if name == "recording" else values


def _source(text: str) -> MadeOf:
    try:
        return MadeOf.from_dict(json.loads(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"its entry {SOURCE!r} cannot be read ({brief(error)}). {AGAIN}") from error


def _of_parquet(path: Path, make: Callable[[int, int], Any] | None) -> Vectors:
    with open_parquet(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        _refuse_bomb(path, 4 * n_rows * getattr(_kind_of_vectors(schema), "list_size", 1))
        names = [name for name in ("part", *COLUMNS) if name in schema.names]
        table = file.read(columns=names, use_threads=False)
        columns = {name: _as_read(name, _values(name, table.column(name))) for name in names}
        x = _read_vectors(path, file, make or _in_memory)
    metadata = (schema.metadata or {}).get(SOURCE.encode())
    source = None if metadata is None else _source(metadata.decode("utf-8", "replace"))
    return Vectors(x, **columns, source=source)


def _kind_of_vectors(schema: Any) -> Any:
    """Return the type of the column of vectors, which must be one of lists of numbers."""
    pa, _ = arrow()
    kind: Any = schema.field("vector").type if schema.names.count("vector") == 1 else None
    list_types = (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list)
    is_list = kind is not None and any(is_type(kind) for is_type in list_types)
    if not is_list or not pa.types.is_floating(kind.value_type):
        raise InputError(f"it must have one column 'vector' of lists of numbers; got {schema.names}. {AGAIN}")
    return kind


def _in_memory(n_rows: int, n_features: int) -> Array:
    return np.empty((n_rows, n_features), np.float32)


def _read_vectors(path: Path, file: Any, make: Callable[[int, int], Any]) -> Array:
    """Read the column of vectors batch by batch into what `make` returns."""
    n_rows = file.metadata.num_rows
    x: Any = None
    at = 0
    for number in range(file.num_row_groups):
        for batch in file.read_row_group(number, columns=["vector"], use_threads=False).to_batches():
            cells = batch.column("vector")
            values = cells.flatten()
            lengths = np.unique(np.asarray(cells.value_lengths()))  # NaN for an empty cell
            width = lengths[0] if x is None else x.shape[1]
            if cells.null_count or values.null_count or set(lengths) != {width} or not width:
                raise InputError(f"column 'vector' holds no whole vectors of one length from row {at} on. {AGAIN}")
            if x is None:
                _refuse_bomb(path, 4 * n_rows * int(width))
                x = make(n_rows, int(width))
            block = np.asarray(values.to_numpy(zero_copy_only=False), np.float32)
            x[at : at + len(cells)] = block.reshape(len(cells), -1)
            at += len(cells)
    if x is None:
        raise InputError(f"it holds no vector. {AGAIN}")
    return x.read() if isinstance(x, RowFile) else x


def _values(column: str, cells: Any) -> Array:
    """Return a column as numbers or text, with NaN or "" for what is empty."""
    pa, _ = arrow()
    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    cells = cells.cast(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.array(cells.fill_null("").to_pylist(), dtype=np.str_)
    if pa.types.is_timestamp(kind):  # in UTC, or without a zone
        return np.asarray(cells.cast(pa.timestamp("us"), safe=False).to_numpy())
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise InputError(f"column {column!r} must hold numbers or text; got {kind}. {AGAIN}")
    if cells.null_count:
        cells = cells.cast(pa.float64())  # refuses whole numbers that float64 does not hold
    return np.asarray(cells.to_numpy())


@final
class RowFile:
    """Takes an array (N, F) of float32 row by row, `rows[a:b] = values`, into a nameless file beside `path`."""

    def __init__(self, path: Path, n_rows: int, n_columns: int) -> None:
        self.path, self.shape = path, (n_rows, n_columns)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = tempfile.TemporaryFile(dir=path.parent)  # noqa: SIM115
        weakref.finalize(self, self.file.close)  # where an error keeps `read` from being called

    def __setitem__(self, rows: slice, values: Array) -> None:
        with writing(self.path):
            self.file.seek(rows.start * self.shape[1] * 4)
            self.file.write(np.ascontiguousarray(values, "<f4").tobytes())

    def read(self) -> Array:
        with writing(self.path), self.file as file:
            file.flush()
            return np.memmap(file, "<f4", "r", shape=self.shape) if self.shape[0] else np.empty(self.shape, "<f4")


def check_out(path: Path, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix not in suffixes:
        raise InputError(f"{path} has an unknown suffix {path.suffix!r}; write {' or '.join(suffixes)}.")
    if path.suffix == ".parquet":
        arrow()
    check_writable(path)


def write_vectors(
    path: Path, parts: Parts, made_of: MadeOf | None = None, more: Mapping[str, Array] | None = None
) -> None:
    """Write all parts into one .parquet or .npz, with what the vectors were made of; a .parquet has `more` columns."""
    check_out(path)
    for arrays in parts.values():
        for key, array in arrays.items():
            if array.dtype.kind not in "biufUM" or len(array) != len(arrays["X"]):
                wanted = f"numbers, text or times, one for each of the {len(arrays['X'])} vectors"
                raise InputError(f"{key} must be {wanted}; got {array.dtype} {array.shape}.")
    said = None if made_of is None else json.dumps(made_of.to_dict(), sort_keys=True, allow_nan=False)
    with atomic_file(path) as file:
        _write_npz(file, parts, said) if path.suffix == ".npz" else _write_parquet(file, parts, said, more or {})


def _write_npz(file: BinaryIO, parts: Parts, source: str | None) -> None:
    arrays = {f"{key}_{part}" if part else key: array for part, held in parts.items() for key, array in held.items()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in (arrays if source is None else {**arrays, SOURCE: np.array(source)}).items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                descr = np.lib.format.dtype_to_descr(array.dtype)  # type: ignore[no-untyped-call]
                header = {"descr": descr, "fortran_order": False, "shape": array.shape}
                np.lib.format.write_array_header_1_0(member, header)  # type: ignore[no-untyped-call]
                for _, block in blocks(np.atleast_1d(array)):
                    member.write(np.ascontiguousarray(block).tobytes())


def _write_parquet(file: BinaryIO, parts: Parts, source: str | None, more: Mapping[str, Array]) -> None:
    """Write one row per case: what is known of it, and its vector as a list of fixed length."""
    pa, pq = arrow()
    counts, n_features = [len(arrays["X"]) for arrays in parts.values()], next(iter(parts.values()))["X"].shape[1]
    cells = {"part": pa.array(np.repeat([*parts], counts))} if len(parts) > 1 else {}
    for name, key in COLUMNS.items():
        values = join_column([arrays.get(key) for arrays in parts.values()], counts)
        if values is not None and (known := labelled(values)).any():
            values = as_text(values) if name == "recording" else values
            wide = name in SECONDS or values.dtype.kind == "f"
            kind = pa.timestamp("us", "UTC") if name in TIMES else None
            cells[name] = pa.array(values.astype(np.float64) if wide else values, kind, mask=~known)
    cells |= {name: pa.array(values) for name, values in more.items()}
    kinds = {name: column.type for name, column in cells.items()}
    schema = pa.schema({**kinds, "vector": pa.list_(pa.float32(), n_features)})
    if source is not None:
        schema = schema.with_metadata({SOURCE: source})
    names = [name for name, kind in kinds.items() if kind == pa.string()]
    # Numbers of vectors do not shrink. Checksums tell a damaged page from a sound one.
    compression = {**dict.fromkeys(kinds, "zstd"), "vector.list.element": "none"}
    how = {"compression": compression, "use_dictionary": names, "write_page_checksum": True}
    with pq.ParquetWriter(file, schema, **how) as writer:
        at = 0
        for arrays in parts.values():
            for _, block in blocks(arrays["X"]):
                flat = pa.array(np.ascontiguousarray(block, np.float32).reshape(-1))
                vectors = pa.FixedSizeListArray.from_arrays(flat, n_features)
                about = [column.slice(at, len(block)) for column in cells.values()]
                writer.write_table(pa.Table.from_arrays([*about, vectors], schema=schema))
                at += len(block)


def write_columns(path: Path, columns: Mapping[str, Array]) -> None:
    """Write columns (N,) of numbers or text to a .csv or .parquet; what is masked, NaN or "" is an empty cell."""
    check_out(path, TABLES)
    series = {}
    for name, values in columns.items():
        plain = np.asarray(values)
        if plain.dtype.kind == "M":  # UTC
            series[name] = pd.Series(as_text(plain) if path.suffix == ".csv" else pd.DatetimeIndex(plain, tz="UTC"))
            continue
        known = labelled(plain) & ~np.broadcast_to(getattr(values, "mask", False), plain.shape)
        kind = {"b": "boolean", "i": "Int64", "u": "UInt64"}.get(plain.dtype.kind)  # these can be empty
        series[name] = pd.Series(plain, dtype=kind).where(known)
    table = pd.DataFrame(series)
    with atomic_file(path) as file:
        try:
            if path.suffix == ".csv":
                table.to_csv(file, index=False, lineterminator="\n")
            else:
                table.to_parquet(file, index=False, compression="zstd", write_page_checksum=True)
        except UnicodeEncodeError as error:  # as of a recording whose file name is not UTF-8
            raise InputError(f"{path}: {error.object!r} cannot be written as UTF-8. Rename it.") from error
