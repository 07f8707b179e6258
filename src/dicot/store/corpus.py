"""Corpus: windows of recordings in a folder, more of them than memory holds."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from dicot.core.errors import ModelFileError
from dicot.data import Windows
from dicot.data.cases import Array, Cases, FloatArray
from dicot.data.labels import check_channel_names, check_rate, join_column
from dicot.data.reading import Reading
from dicot.store.folder import AGAIN, WINDOWS, Shard, Store

SCHEME = "://"  # of a URL


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
            raise ModelFileError(
                f"{path} is damaged: what it says of its windows is wrong ({error}). {AGAIN}"
            ) from error

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
