"""A large data set that is made from its publisher's raw files, again where it was killed."""

import hashlib
import io
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack, final

import numpy as np

from dicot import __version__
from dicot.core.errors import InputError, MissingDataError, lookup
from dicot.core.storage import data_folders, write_atomic
from dicot.data import Split
from dicot.data.datasets.base import Card, DataSet, OnProgress, Sizes, differences, silent
from dicot.data.datasets.prepared import (
    FAMILY,
    PreparedParts,
    check_prepared,
    find_prepared,
    load_prepared,
    read_card,
    write_prepared,
)
from dicot.data.npyfile import load_npz
from dicot.data.policies import Array, Policies

__all__ = ["OnProgress", "PreparedSet", "SizeWarning", "Sizes", "Workspace", "raw_files", "read_each"]


class SizeWarning(UserWarning):
    """The raw files give other sizes than the publisher's do."""


@dataclass(frozen=True)
class Workspace:
    """What the function that reads raw files is given beside their folder."""

    settings: Mapping[str, Any]
    partial: Path  # the folder of what was read already, until the set is complete
    on_progress: OnProgress = silent


@final
@dataclass(frozen=True)
class PreparedSet(DataSet):
    """One large data set: where its raw files come from, and the function that turns them into windows."""

    name: str
    source: str  # the publisher's page
    licence: str
    citation: str
    download: str  # what to fetch there and what the raw folder must hold
    read: Callable[[Path, Workspace], PreparedParts]
    expected: Sizes  # what the publisher's files give with the settings left alone
    paper: Sizes | None = None  # what the Di-COT paper states, where it differs
    settings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # name -> allowed values, the default first
    transfer_channels: tuple[int, ...] = ()
    paper_transfer_channels: tuple[int, ...] = ()
    drawn: bool = False  # True: training draws its windows from segments, which the folder must hold
    shared_groups: bool = False  # True: the split is not by group, and card and report must say so
    family: str | None = FAMILY
    paper_subset_seed: int | None = None

    @property
    def paper_sizes(self) -> Sizes:  # type: ignore[override]
        return self.paper or self.expected

    @property
    def sizes(self) -> Sizes:
        return self.expected

    def is_here(self) -> bool:
        return find_prepared(self.name) is not None

    def card(self) -> Card:
        return read_card(self._folder())

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        split = load_prepared(self._folder(), channels, **policies)
        if self.drawn and split.train.segments is None:
            raise InputError(
                f"{self._folder()} was prepared by an earlier release and holds no segments to draw windows from. "
                f"Prepare {self.name} again: dicot data prepare {self.name} --raw DIR."
            )
        return split

    def check(self) -> Card:
        return check_prepared(self._folder())

    def prepare(
        self,
        raw: Path,
        *,
        out: Path | None = None,
        settings: Mapping[str, Any] | None = None,
        on_progress: OnProgress = silent,
    ) -> Card:
        """Read `raw` and write `out`/large/NAME; the same call continues where a killed one stopped.

        `out` is a data folder, by default the first of data_folders(). Warns where the raw files give other sizes than
        the publisher's do; the warning is also among the card's notes.
        """
        if not raw.is_dir():
            raise InputError(f"There is no folder {raw}. {self._missing()}")
        chosen = self._chosen(settings)
        folder = (out or data_folders()[0]) / FAMILY / self.name
        partial = folder.with_name(f"{folder.name}.partial")
        try:
            partial.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"Nothing can be written to {folder.parent} ({error}). Name another data folder with --out."
            ) from error
        parts = self.read(raw, Workspace(chosen, partial, on_progress))
        other_sizes = self._other_sizes(parts) if chosen == self._chosen(None) else []
        notes = (*parts.notes, *other_sizes, *self._groups_in_both(parts))
        for text in other_sizes:
            warnings.warn(f"{self.name}: {text}", SizeWarning, stacklevel=2)
        card = Card(
            name=self.name,
            family=FAMILY,
            n_train=len(parts.train),
            n_test=len(parts.test),
            n_channels=parts.train.n_channels,
            n_times=parts.train.n_times,
            n_classes=len(parts.labels),
            source=self.source,
            licence=self.licence,
            citation=self.citation,
            labels=parts.labels,
            stride=parts.stride,
            segment=None if parts.train.segments is None else parts.train.segments.shape[2],
            transfer_channels=self.transfer_channels,
            paper_transfer_channels=self.paper_transfer_channels,
            settings=chosen,
            notes=notes,
            version=__version__,
        )
        card = write_prepared(folder, parts, card)
        shutil.rmtree(partial, ignore_errors=True)
        return card

    def _folder(self) -> Path:
        folder = find_prepared(self.name)
        if folder is None:
            raise self._missing()
        return folder

    def _missing(self) -> MissingDataError:
        """Return the error for a set that is not here: what to download, where to put it, which commands follow."""
        places = " or ".join(str(folder / FAMILY / self.name) for folder in data_folders())
        return MissingDataError(
            f"The data set {self.name} is not on this machine (looked for {places}). Download it from {self.source}: "
            f"{self.download} Put that into a folder DIR of your choice, then run: "
            f"dicot data prepare {self.name} --raw DIR. To check the result: dicot list datasets {self.name} --check"
        )

    def _chosen(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return all settings: the given ones, checked, and defaults for the rest."""
        for name, value in (given or {}).items():
            allowed = lookup(self.settings, name, f"setting of {self.name}")
            if value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(map(str, allowed))}; got {value!r}.")
        return {name: allowed[0] for name, allowed in self.settings.items()} | dict(given or {})

    def _other_sizes(self, parts: PreparedParts) -> list[str]:
        """Return a sentence where the sizes are not the expected ones."""
        train = parts.train
        actual = Sizes(len(train), len(parts.test), train.n_channels, train.n_times, len(parts.labels))
        wrong = differences(actual, self.expected)
        return [f"The raw files give {', '.join(wrong)}. Some may be missing or of another version."] if wrong else []

    def _groups_in_both(self, parts: PreparedParts) -> list[str]:
        """Refuse a group in both parts, unless the set is known to be split otherwise; then the card says so."""
        groups = [set(np.unique(part.group).tolist()) for part in (parts.train, parts.test) if part.group is not None]
        both = sorted(set.intersection(*groups))
        if both and not self.shared_groups:
            raise InputError(f"{self.name}: groups {both[:5]} are in both parts. This is a fault of its reader.")
        return ["Training and test windows come from the same groups."] if both else []


def raw_files(raw: Path, pattern: str, what: str) -> list[Path]:
    """List the files below the raw folder that match the pattern, sorted by path."""
    files = sorted(path for path in raw.rglob(pattern) if path.is_file())
    if not files:
        raise MissingDataError(f"{raw} has no {pattern}. Expected {what}.")
    return files


def _alone(path: Path) -> Sequence[Path]:
    """Name no other file: the default of read_each."""
    return ()


def read_each(
    files: Sequence[Path],
    read: Callable[[Path], dict[str, Array]],
    workspace: Workspace,
    until: float = 1.0,
    *,
    beside: Callable[[Path], Sequence[Path]] = _alone,
) -> Iterator[dict[str, Array]]:
    """Yield what `read` returns for each file, in order; from the partial folder where an earlier run has read it.

    `beside` names all other files that `read` opens for a file, such as its labels: where one of them has changed, it
    is read again. `until` is the share of all work that this is, for the progress bar.
    """
    for done, path in enumerate(files):
        workspace.on_progress(until * done / len(files), path.name)
        copy = workspace.partial / f"{path.stem}-{_stamp([path, *beside(path)])}.npz"
        yield _saved(copy) or _read_and_save(path, read, copy)
    workspace.on_progress(until, "")


def _saved(path: Path) -> dict[str, Array] | None:
    """Load what an earlier run has saved, if it is there and complete."""
    try:
        return load_npz(path) if path.is_file() else None
    except InputError:
        return None


def _read_and_save(path: Path, read: Callable[[Path], dict[str, Array]], copy: Path) -> dict[str, Array]:
    buffer, arrays = io.BytesIO(), read(path)
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_atomic(copy, buffer.getvalue())
    return arrays


def _stamp(paths: Sequence[Path]) -> str:
    """Return 12 hex digits that change with any of the files and with our version, so that no stale copy is used."""
    try:
        facts = [(path, path.stat()) for path in paths]
    except OSError as error:
        raise InputError(f"A raw file cannot be read ({error}). Fetch it again.") from error
    # The time of change as well: a copy may bring its time of modification along.
    text = " ".join(f"{path} {at.st_size} {at.st_mtime_ns} {at.st_ctime_ns}" for path, at in facts)
    return hashlib.sha256(f"{text} {__version__}".encode()).hexdigest()[:12]
