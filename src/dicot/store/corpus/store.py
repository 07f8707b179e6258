"""Corpus: the windows of a folder, read by row where they lie. Nothing is mapped, so that what was read is not kept."""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, final

import numpy as np

from dicot.core.errors import InputError, ModelFileError
from dicot.data import Windows
from dicot.data.labels import join_column
from dicot.data.npyfile import read_array_header
from dicot.data.pieces import Cases
from dicot.data.policies import Array, FloatArray
from dicot.store.corpus.manifest import AGAIN, SHARDS, Shard, Source, read_manifest
from dicot.store.corpus.shards import COLUMNS, read_about

OPEN_FILES = 256  # shards that are open at once
THREADS = 4  # that read rows from all over the corpus: a disk answers several questions at once
FEWEST_ROWS = 16  # for which threads pay


@final
class Corpus(Cases):
    """Windows of recordings in a folder that `dicot corpus build` wrote, as many as the disk holds.

    `fit` and `transform` of an estimator and `pretrain` take a corpus as they take Windows: batches are read from disk
    ahead of their step, and the weights are those of the same cases in memory. `corpus[rows]`, by a slice or an array
    of positions, reads some windows (n, C, T) as float32; `corpus.about(number)` is what is known of those of a shard.

    Attributes
    ----------
    path : the folder
    manifest : what manifest.json says: shards, sources and options
    shape, dtype : (N, C, T) and float32 or float16, as the windows are stored
    channels, rate : the names of the channels, and time steps per second where they are known
    """

    def __init__(self, path: str | Path, verify: bool = False) -> None:
        self.path = Path(path)
        self.name = str(path)
        self.manifest = read_manifest(self.path)
        self.channels, self.rate = self.manifest.channels, self.manifest.rate
        self.shards = self.manifest.shards
        self.starts = np.cumsum([0, *(shard.windows for shard in self.shards)])
        self.shape = (int(self.starts[-1]), *self.manifest.shape)
        self.dtype = np.dtype(self.manifest.dtype).newbyteorder("<")
        self._offset = [self._checked(shard, verify) for shard in self.shards]  # of the first value
        self._files: OrderedDict[int, int] = OrderedDict()  # number of a shard -> open file, the latest used last
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> "Corpus":
        """Open a corpus; sizes and headers of its files are checked, and with `verify` every byte by its hash."""
        return cls(path, verify)

    def __repr__(self) -> str:
        n, c, t = self.shape
        return f"Corpus({str(self.path)!r}, {n} windows, {c} channels, {t} time steps, {len(self.shards)} shards)"

    def _file(self, shard: Shard, suffix: str = ".npy") -> Path:
        return self.path / SHARDS / f"{shard.name}{suffix}"

    def _checked(self, shard: Shard, verify: bool) -> int:
        """Check the files of a shard by their sizes and the array's header; return where its values begin."""
        path = self._file(shard)
        try:
            for file, size, digest in (
                (path, shard.bytes, shard.sha256),
                (self._file(shard, ".npz"), shard.about_bytes, shard.about_sha256),
            ):
                found = file.stat().st_size
                if found != size:
                    raise ModelFileError(f"{file} has {found:,} bytes, and the manifest says {size:,}. {AGAIN}")
                if verify:
                    with file.open("rb") as opened:
                        if hashlib.file_digest(opened, "sha256").hexdigest() != digest:
                            raise ModelFileError(f"{file} was changed or damaged after it was written. {AGAIN}")
            with path.open("rb") as opened:
                header = read_array_header(opened, shard.bytes)
        except ModelFileError:
            raise
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{path} cannot be read ({error}). {AGAIN}") from error
        wanted = (shard.windows, *self.manifest.shape)
        if header.shape != wanted or header.dtype != self.dtype or header.by_columns:
            raise ModelFileError(f"{path} holds {header.dtype} {header.shape}, not {self.dtype} {wanted}. {AGAIN}")
        return header.start

    def __getitem__(self, rows: slice | Array, /) -> FloatArray:
        """Read a slice of the windows, or those at these positions, as float32."""
        rows = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows, np.int64)
        out = np.empty((len(rows), *self.shape[1:]), np.float32)
        self._read_rows(rows, out)
        return out

    def _read_rows(self, rows: Array, out: FloatArray) -> None:
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise InputError(f"The corpus has the rows 0 to {len(self) - 1}; got {rows.min()} to {rows.max()}.")
        with self._lock:
            runs = list(self._runs(rows))
            if len(runs) < FEWEST_ROWS:
                for run in runs:
                    self._open(run[0])
                    self._read(out, *run)
                return
            if self._pool is None:
                self._pool = ThreadPoolExecutor(THREADS, "corpus")
            for start in range(0, len(runs), OPEN_FILES):  # so that no file that is read from is closed
                some = runs[start : start + OPEN_FILES]
                for shard in {run[0] for run in some}:
                    self._open(shard)
                share = -(-len(some) // THREADS)
                parts = [some[at : at + share] for at in range(0, len(some), share)]
                for done in [self._pool.submit(self._read_all, out, part) for part in parts]:
                    done.result()

    def _runs(self, rows: Array) -> Iterator[tuple[int, int, int, int]]:
        """Yield what lies in one piece on disk and goes to one piece of memory: shard, first row there, place, rows."""
        shards = np.searchsorted(self.starts, rows, side="right") - 1
        new = np.flatnonzero((np.diff(rows) != 1) | (np.diff(shards) != 0)) + 1
        edges = [0, *new.tolist(), len(rows)] if len(rows) else [0]
        for at, stop in pairwise(edges):
            shard = int(shards[at])
            yield shard, int(rows[at] - self.starts[shard]), at, stop - at

    def _read_all(self, out: FloatArray, runs: list[tuple[int, int, int, int]]) -> None:
        for run in runs:
            self._read(out, *run)

    def _read(self, out: FloatArray, shard: int, row: int, at: int, count: int) -> None:
        """Read `count` windows of a shard, from its `row` on, to `out` from `at` on."""
        target = out[at : at + count]
        direct = self.dtype == out.dtype and target.flags.c_contiguous
        block: Any = target if direct else np.empty(target.shape, self.dtype)
        left = memoryview(block).cast("B")
        offset = self._offset[shard] + row * (block[:1].nbytes)
        while left.nbytes:
            read = os.preadv(self._files[shard], [left], offset)
            if not read:
                raise ModelFileError(f"{self._file(self.shards[shard])} has become shorter while it was read. {AGAIN}")
            left, offset = left[read:], offset + read
        if not direct:
            target[...] = block

    def _open(self, shard: int) -> None:
        """Open the file of a shard, and close the one that was not used for longest where too many are open."""
        if shard in self._files:
            self._files.move_to_end(shard)
            return
        while len(self._files) >= OPEN_FILES:
            os.close(self._files.popitem(last=False)[1])
        path = self._file(self.shards[shard])
        try:
            self._files[shard] = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise ModelFileError(f"{path} cannot be read ({error.strerror}). {AGAIN}") from error

    def close(self) -> None:
        """Close all files; reading opens them again."""
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None
            while self._files:
                os.close(self._files.popitem()[1])

    def __del__(self) -> None:
        for handle in getattr(self, "_files", {}).values():
            os.close(handle)

    def about(self, number: int) -> dict[str, Array]:
        """Return what is known of the windows of a shard: recording, start, end, and perhaps group and label."""
        shard = self.shards[number]
        return read_about(self._file(shard, ".npz"), shard.windows)

    def source(self, number: int) -> Source:
        """Return the source of a shard."""
        return self.manifest.sources[int(self.shards[number].name.partition("-")[0])]

    def shard(self, number: int) -> Windows:
        """Return the windows of one shard in memory, with all that is known of them."""
        about = {COLUMNS[name]: values for name, values in self.about(number).items()}
        x = self[int(self.starts[number]) : int(self.starts[number + 1])]
        return Windows(x, name=self.name, channels=self.channels, rate=self.rate, **about)

    def columns(self) -> dict[str, Array]:
        """Return what is known of all windows, by column; of very many this takes memory."""
        counts = [shard.windows for shard in self.shards]
        parts = [self.about(number) for number in range(len(counts))]
        joined = {name: join_column([part.get(name) for part in parts], counts) for name in COLUMNS}
        return {name: values for name, values in joined.items() if values is not None}

    def labels(self) -> Array | None:
        """Return the labels (N,) of all windows, or None where there are none."""
        counts = [shard.windows for shard in self.shards]
        return join_column([self.about(number).get("label") for number in range(len(counts))], counts)

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value; made of the hashes in the manifest."""
        said = [repr(self.shape), str(self.dtype), *(shard.sha256 for shard in self.shards)]
        return hashlib.sha256(" ".join(said).encode()).hexdigest()[:16]
