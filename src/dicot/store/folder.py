"""Store: rows of numbers in a folder, with what is known of each. A Corpus, its vectors and an index are stores.

The folder holds `shards/NAME.npy`, numbers (n, ...) of float32, `shards/NAME.npz`, what is known of these n rows, and
`manifest.json`, which says what there is. A shard is written under another name and renamed: it is whole or not there.
The manifest is written last, so a folder without one is no store.

An unfinished store has a folder `.unfinished`: a plan, and a note for each unit of work that is done. The same plan
takes it up again and does only the units without a note. The bytes do not depend on how often that happens.
"""

import hashlib
import json
import math
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, final

import numpy as np

from dicot.core import storage
from dicot.core.errors import InputError, ModelFileError, brief, is_whole
from dicot.data import Windows
from dicot.data.cases import Array, Cases, FloatArray
from dicot.data.labels import check_channel_names, check_rate, join_column
from dicot.data.npyfile import load_npz
from dicot.data.reading import Reading

MANIFEST, PLAN, SHARDS, UNFINISHED = "manifest.json", "plan.json", "shards", ".unfinished"
FORMAT, FORMAT_VERSION = "dicot-store", 1
WINDOWS, VECTORS = "windows", "vectors"
COLUMNS = ("recording", "start", "end", "start_time", "end_time", "group", "label")  # what may be known of a row
TIMES = ("start_time", "end_time")  # of these in UTC
LARGEST = 2**30  # bytes of a manifest: some millions of shards
NAME = re.compile(r"[0-9a-f]{6,64}(-\d{3,})?")  # of a shard; it must not lead out of the folder
THREADS = 4  # that read rows from all over a store: a disk answers several questions at once
FEWEST_RUNS = 16  # for which threads pay
SCHEME = "://"  # of a URL
AGAIN = "Make the folder again."


@dataclass(frozen=True)
class Shard:
    """Some rows: NAME.npy holds their numbers, and NAME.npz what is known of them."""

    name: str
    rows: int
    bytes: int
    sha256: str
    about_bytes: int
    about_sha256: str

    def files(self, folder: Path) -> dict[Path, tuple[int, str]]:
        """Return the size and the hash of both files."""
        place = folder / SHARDS / self.name
        return {
            place.with_name(f"{self.name}.npy"): (self.bytes, self.sha256),
            place.with_name(f"{self.name}.npz"): (self.about_bytes, self.about_sha256),
        }


@final
class Store:
    """Rows (N, ...) of float32 in a folder; `about` is what is known of all together, `seal` a hash of the manifest."""

    def __init__(self, path: str | Path, verify: bool = False) -> None:
        self.path = Path(path)
        config = _read_manifest(self.path)
        self.kind: str = config["kind"]
        self.about: dict[str, Any] = config["about"]
        self.shards = tuple(Shard(**entry) for entry in config["shards"])
        self.seal: str = config["content_sha256"]
        self.starts = np.cumsum([0, *(shard.rows for shard in self.shards)])
        self.shape = (int(self.starts[-1]), *config["shape"])
        self._width = 4 * int(np.prod(self.shape[1:]))  # bytes of a row
        for file, (size, digest) in (item for shard in self.shards for item in shard.files(self.path).items()):
            found = file.stat().st_size if file.exists() else 0
            if found != size or (verify and _hash_of(file) != digest):
                raise ModelFileError(f"{file} is missing, damaged or changed: {found:,} of {size:,} bytes. {AGAIN}")

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def bytes(self) -> int:
        return sum(shard.bytes + shard.about_bytes for shard in self.shards)

    def _file(self, shard: Shard, suffix: str = ".npy") -> Path:
        return self.path / SHARDS / f"{shard.name}{suffix}"

    def __getitem__(self, rows: slice | Array, /) -> FloatArray:
        """Read a slice of the rows, or those at these positions; a memory map would keep every page that it touched."""
        rows = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows, np.int64)
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise InputError(f"{self.path} has the rows 0 to {len(self) - 1}; got {rows.min()} to {rows.max()}.")
        out = np.empty((len(rows), *self.shape[1:]), np.float32)
        runs = list(self._runs(rows))
        if len(runs) < FEWEST_RUNS:
            self._read(out, runs)
        else:
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(partial(self._read, out), [runs[part::THREADS] for part in range(THREADS)]))
        return out

    def _runs(self, rows: Array) -> Iterator[tuple[Shard, int, int, int]]:
        """Yield what lies in one piece on disk and goes to one piece of memory: shard, first row there, place, rows."""
        numbers = np.searchsorted(self.starts, rows, side="right") - 1
        new = np.flatnonzero((np.diff(rows) != 1) | (np.diff(numbers) != 0)) + 1
        for at, stop in pairwise([0, *new.tolist(), len(rows)] if len(rows) else [0]):
            number = int(numbers[at])
            yield self.shards[number], int(rows[at] - self.starts[number]), at, stop - at

    def _read(self, out: FloatArray, runs: Iterable[tuple[Shard, int, int, int]]) -> None:
        for shard, row, at, count in runs:
            place = memoryview(cast(Any, out[at : at + count])).cast("B")
            with self._file(shard).open("rb") as file:
                file.seek(shard.bytes - (shard.rows - row) * self._width)
                if file.readinto(place) != place.nbytes:
                    raise ModelFileError(f"{file.name} has become shorter while it was read. {AGAIN}")

    def maps(self) -> list[Array]:
        """Map the numbers of each shard into memory, read-only. They stay readable when another store replaces them."""
        return [np.load(self._file(shard), mmap_mode="r") for shard in self.shards]

    def shard_columns(self, number: int) -> dict[str, Array]:
        """Return what is known of the rows of one shard, by column."""
        shard = self.shards[number]
        path = self._file(shard, ".npz")
        try:
            arrays = load_npz(path)
            columns = {name: arrays[name] for name in COLUMNS if name in arrays}
            for name in columns:
                if f"{name}.values" in arrays:  # each text once, and its number for every row
                    columns[name] = arrays[f"{name}.values"][columns[name]]
            if wrong := [name for name, values in columns.items() if values.shape != (shard.rows,)]:
                raise ValueError(f"its column {wrong[0]!r} does not fit to {shard.rows} rows")
        except (InputError, ValueError, IndexError, OSError) as error:
            said = str(error) if str(path) in str(error) else f"{path} is damaged: {brief(error)}."
            raise ModelFileError(f"{said} {AGAIN}") from error
        return columns

    def columns(self) -> dict[str, Array]:
        """Return what is known of all rows, by column; of very many this takes memory."""
        counts = [shard.rows for shard in self.shards]
        return join_columns([self.shard_columns(number) for number in range(len(counts))], counts)

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any number, and not with the place."""
        said = [repr(self.shape), "float32", *(shard.sha256 for shard in self.shards)]
        return hashlib.sha256(" ".join(said).encode()).hexdigest()[:16]


def join_columns(parts: Sequence[Mapping[str, Array]], counts: Sequence[int]) -> dict[str, Array]:
    """Join what is known of parts that have so many rows each."""
    joined = {name: join_column([part.get(name) for part in parts], counts) for name in COLUMNS}
    return {name: values for name, values in joined.items() if values is not None}


def known_of(windows: Windows) -> dict[str, Array]:
    """Return what is known of windows, by the columns of a store."""
    keys = {column: "y" if column == "label" else column for column in COLUMNS}
    return {column: values for column, key in keys.items() if (values := getattr(windows, key)) is not None}


def write_shard(folder: Path, name: str, x: Array, columns: Mapping[str, Array]) -> Shard:
    """Write numbers (n, ...) and what is known of them, each file whole or not at all."""
    packed: dict[str, Any] = dict(columns)
    for column, values in columns.items():
        if values.dtype.kind == "U":  # names of recordings repeat
            packed[f"{column}.values"], codes = np.unique(values, return_inverse=True)
            packed[column] = codes.astype(np.int32)
    place = folder / SHARDS / name
    numbers = _written(place.with_name(f"{name}.npy"), lambda file: np.save(file, np.ascontiguousarray(x, "<f4")))
    about = _written(place.with_name(f"{name}.npz"), lambda file: np.savez(file, **packed))
    return Shard(name, len(x), *numbers, *about)


def _written(path: Path, write: Callable[[Any], None]) -> tuple[int, str]:
    """Write a file and return its size and hash."""
    with storage.atomic_file(path) as file:
        write(file)
    return path.stat().st_size, _hash_of(path)


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(
    folder: Path, kind: str, shape: Sequence[int], shards: Sequence[Shard], about: Mapping[str, Any]
) -> Store:
    """Put the manifest in place and remove files that it does not name: now it is a store of rows of `shape`."""
    if not shards:
        raise InputError(f"{folder} would be a store without a row. Name something that gives one.")
    config = {
        **storage.format_of(FORMAT, FORMAT_VERSION),
        "kind": kind,
        "shape": list(shape),
        "shards": [asdict(shard) for shard in shards],
        "about": json.loads(json.dumps(about, allow_nan=False)),
    }
    storage.write_atomic(folder / MANIFEST, (json.dumps(storage.sealed(config), indent=1) + "\n").encode())
    named = {file for shard in shards for file in shard.files(folder)}
    with storage.writing(folder):
        for path in (folder / SHARDS).iterdir():
            if path not in named:
                path.unlink(missing_ok=True)
        if (folder / UNFINISHED).exists():
            shutil.rmtree(folder / UNFINISHED)
    return Store(folder)


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Read a manifest and check what is used of it: anybody may have written it."""
    path = folder / MANIFEST
    if not path.is_file():
        raise ModelFileError(f"{folder} has no {MANIFEST}: it is unfinished, or of an older dicot. {AGAIN}")
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path.stat().st_size:,} bytes are more than it can have")
        config = storage.check_format(path, json.loads(path.read_bytes().decode()), FORMAT, FORMAT_VERSION)
        storage.check_seal(config)
        if not _describes_store(config):
            raise ValueError("it does not describe a store")
    except (OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged ({brief(error)}). {AGAIN}") from error
    return config


def _describes_store(config: Mapping[str, Any]) -> bool:
    """Tell whether kind, shape and shards fit to each other."""
    shape, shards = config["shape"], [Shard(**entry) for entry in config["shards"]]
    n_axes = {WINDOWS: 2, VECTORS: 1}[config["kind"]]
    if len(shape) != n_axes or not all(is_whole(size, 1) for size in shape):
        return False
    names = {shard.name for shard in shards}
    if not shards or len(names) != len(shards):
        return False
    width = 4 * math.prod(shape)  # bytes of a row
    return isinstance(config["about"], dict) and all(_is_sound(shard, width) for shard in shards)


def _is_sound(shard: Shard, width: int) -> bool:
    """Tell whether a shard has a name that stays inside the folder, and room for its rows of so many bytes."""
    counts = (shard.rows, shard.bytes, shard.about_bytes)
    if not all(is_whole(count, 1) for count in counts):
        return False
    return NAME.fullmatch(shard.name) is not None and shard.bytes > shard.rows * width


@final
class UnfinishedStore:
    """The work on a store, in units: each gives any number of shards and a note in plain values.

    One process makes this object, and holds the lock of the folder. Any process may do a unit, even twice. `plan` is
    all that the content depends on; another plan, or something damaged, is refused unless it may `overwrite`.
    `finished` is the store, where it is there already.
    """

    def __init__(self, folder: Path, plan: Mapping[str, Any], *, overwrite: bool = False) -> None:
        storage.check_writable(folder, folder=True)
        self.folder, self.plan = folder, plan
        self.finished: Store | None = None
        text = json.dumps(plan, sort_keys=True, allow_nan=False).encode()
        self._take_up(json.loads(text), overwrite)
        if self.finished is None:
            storage.write_atomic(self._plan_file, text)
        elif self._plan_file.is_file():  # killed behind its manifest
            shutil.rmtree(folder / UNFINISHED)

    @property
    def _plan_file(self) -> Path:
        return self.folder / UNFINISHED / PLAN

    def _take_up(self, plan: Mapping[str, Any], overwrite: bool) -> None:
        """Keep what is in the folder by this plan; anything else is refused, or removed."""
        try:
            plan_there = self._plan_there()
        except (ModelFileError, ValueError):
            if not overwrite:
                raise
            plan_there = {}
        if plan_there is None or plan_there == plan:
            return
        if not overwrite:
            keys = plan.keys() | plan_there.keys()
            differing = sorted(key for key in keys if plan_there.get(key) != plan.get(key))
            raise InputError(
                f"{self.folder} was made otherwise: its {', '.join(differing)} differ. Choose another folder, or "
                "replace it (--overwrite)."
            )
        self.finished = None
        with storage.writing(self.folder):
            (self.folder / MANIFEST).unlink(missing_ok=True)  # first: what is left is no store
            for inner in (self.folder / SHARDS, self.folder / UNFINISHED):
                if inner.exists():
                    shutil.rmtree(inner)

    def _plan_there(self) -> dict[str, Any] | None:
        """Return the plan of what is in the folder, finished or not; None where nothing is there yet."""
        if (self.folder / MANIFEST).exists():
            self.finished = Store(self.folder)
            return dict(self.finished.about.get("plan", {}))
        try:
            return dict(json.loads(self._plan_file.read_bytes()))
        except FileNotFoundError:
            return {} if (self.folder / SHARDS).exists() else None

    def note(self, unit: str) -> dict[str, Any] | None:
        """Return the note of a unit that is done, with its "shards"; None where it has to be done."""
        try:
            note = json.loads((self.folder / UNFINISHED / f"{unit}.json").read_bytes())
            files = [item for one in note["shards"] for item in Shard(**one).files(self.folder).items()]
            return dict(note) if all(file.stat().st_size == size for file, (size, _) in files) else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None  # not done, or damaged by another program: the work is done again

    def finish(
        self, kind: str, shape: Sequence[int], notes: Iterable[Mapping[str, Any]], about: Mapping[str, Any]
    ) -> Store:
        """Make a store of the shards that these notes name."""
        shards = [Shard(**one) for note in notes for one in note.get("shards", ())]
        return write_manifest(self.folder, kind, shape, shards, {"plan": self.plan, **about})


def finish_unit(folder: Path, unit: str, shards: Sequence[Shard], note: Mapping[str, Any]) -> dict[str, Any]:
    """Note that a unit is done; its shards were written before."""
    path = folder / UNFINISHED / f"{unit}.json"
    whole = {**note, "shards": [asdict(shard) for shard in shards]}
    storage.write_atomic(path, json.dumps(whole, allow_nan=False).encode())
    return whole


@dataclass(frozen=True)
class Source:
    """A file that a corpus was built of, and what became of it."""

    file: str  # a path, or a URL
    name: str  # of its recording; where it has several groups, ":" and the group follow it
    bytes: int
    changed: str  # when, as its file system says it
    windows: int = 0
    recordings: int = 0
    damaged: str = ""  # why it was left out

    @property
    def is_url(self) -> bool:
        """Tell whether the file has to be fetched."""
        return SCHEME in self.file


@final
class Corpus(Cases):
    """Windows of recordings in a folder that `dicot corpus build` wrote, as many as the disk holds.

    `fit` and `transform` of an estimator and `pretrain` take a corpus as they take Windows: batches are read from disk
    ahead of their step, and the weights are those of the same cases in memory. `corpus[rows]`, by a slice or an array
    of positions, reads some windows (n, C, T) as float32.

    Attributes
    ----------
    path : the folder
    store : its shards, and `store.about`: what the manifest says of all windows
    shape : (N, C, T)
    channels, rate, stride : the names of the channels; time steps per second, where they are known; in time steps
    reading : how recordings became windows
    sources : the files that the corpus was built of, and what became of each
    """

    def __init__(self, path: str | Path, verify: bool = False) -> None:
        self.store = Store(path, verify)
        if self.store.kind != WINDOWS:
            raise ModelFileError(f"{path} holds {self.store.kind}, not windows. `dicot corpus build` makes a corpus.")
        self.path, self.name = Path(path), str(path)
        _, n_channels, _ = self.shape = self.store.shape
        try:
            about = self.store.about
            self.channels: tuple[str, ...] = check_channel_names(about["channels"], n_channels)
            self.rate: float | None = None if about["rate"] is None else check_rate(about["rate"])
            self.stride = int(about["stride"])
            self.reading = Reading.from_dict(about["reading"])  # how recordings became windows
            self.sources = tuple(Source(**entry) for entry in about["sources"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{path} is damaged: it says of its windows {error}. {AGAIN}") from error

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> "Corpus":
        """Open a corpus; the sizes of its files are checked, and with `verify` every byte by its hash."""
        return cls(path, verify)

    def __repr__(self) -> str:
        n, c, t = self.shape
        return f"Corpus({str(self.path)!r}, {n} windows, {c} channels, {t} time steps, {len(self.shards)} shards)"

    @property
    def shards(self) -> tuple[Shard, ...]:
        """List the shards."""
        return self.store.shards

    @property
    def damaged(self) -> list[Source]:
        """List the files that were left out."""
        return [source for source in self.sources if source.damaged]

    def __getitem__(self, rows: slice | Array, /) -> FloatArray:
        """Read a slice of the windows, or those at these positions, as float32."""
        return self.store[rows]

    def shard(self, number: int) -> Windows:
        """Return the windows of one shard in memory, with all that is known of them."""
        about = {("y" if name == "label" else name): v for name, v in self.store.shard_columns(number).items()}
        x = self[int(self.store.starts[number]) : int(self.store.starts[number + 1])]
        return Windows(x, name=self.name, channels=self.channels, rate=self.rate, **about)

    def columns(self) -> dict[str, Array]:
        """Return what is known of all windows, by column; of very many this takes memory."""
        return self.store.columns()

    def labels(self) -> Array | None:
        """Return the labels (N,) of all windows, or None where there are none."""
        counts = [shard.rows for shard in self.shards]
        return join_column([self.store.shard_columns(number).get("label") for number in range(len(counts))], counts)

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value; made of the hashes in the manifest."""
        return self.store.fingerprint()
