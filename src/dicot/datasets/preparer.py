"""How a large data set is made from its publisher's raw files."""

import hashlib
import io
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dicot import __version__
from dicot.data.npyfile import load_npz
from dicot.data.policies import Array
from dicot.datasets.base import Card, Sizes, differences
from dicot.datasets.folders import data_folders
from dicot.datasets.prepared import FAMILY, Prepared, write_prepared
from dicot.errors import InputError, MissingDataError, lookup
from dicot.storage import write_atomic

__all__ = ["OnProgress", "Preparer", "SizeWarning", "Sizes", "Work", "prepare_set", "raw_files", "read_each"]
OnProgress = Callable[[float, str], None]  # share done from 0 to 1, and what is being read


class SizeWarning(UserWarning):
    """The raw files give other sizes than the publisher's do."""


def _silent(share: float, note: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class Work:
    """What a preparer is given beside the raw folder."""

    settings: Mapping[str, Any]
    partial: Path  # finished files are kept here until the set is whole
    on_progress: OnProgress = _silent


@dataclass(frozen=True)
class Preparer:
    """One large data set: where its raw files come from, and the function that turns them into windows."""

    name: str
    source: str  # the publisher's page
    licence: str
    citation: str
    download: str  # what to fetch there and what the raw folder must hold
    prepare: Callable[[Path, Work], Prepared]
    expected: Sizes  # what the publisher's files give with the settings left alone
    paper: Sizes | None = None  # what the Di-COT paper states, where it is something else
    settings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # name -> allowed values, the default first
    transfer_channels: tuple[int, ...] = ()
    paper_transfer_channels: tuple[int, ...] = ()
    shared_groups: bool = False  # True: the split is not by group, and card and report must say so

    def missing(self) -> MissingDataError:
        """The error for a set that is not here: what to download, where to put it, which commands follow."""
        places = " or ".join(str(folder / FAMILY / self.name) for folder in data_folders())
        return MissingDataError(
            f"The data set {self.name} is not on this machine (looked for {places}). Download it from {self.source}: "
            f"{self.download} Put that into a folder DIR of your choice, then run: "
            f"dicot data prepare {self.name} --raw DIR. To check the result: dicot data check {self.name}"
        )

    def chosen(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """All settings: the given ones, checked, and defaults for the rest."""
        for name, value in (given or {}).items():
            allowed = lookup(self.settings, name, f"setting of {self.name}")
            if value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(map(str, allowed))}; got {value!r}.")
        return {name: allowed[0] for name, allowed in self.settings.items()} | dict(given or {})


def prepare_set(
    preparer: Preparer,
    raw: Path,
    *,
    out: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    on_progress: OnProgress = _silent,
) -> Card:
    """Reads `raw` and writes `out`/large/NAME; the same call goes on where a killed one stopped.

    `out` is a data folder, by default the first of data_folders(). Warns where the raw files give other sizes than the
    publisher's do; the card keeps the warning.
    """
    if not raw.is_dir():
        raise InputError(f"There is no folder {raw}. {preparer.missing()}")
    chosen = preparer.chosen(settings)
    folder = (out or data_folders()[0]) / FAMILY / preparer.name
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        partial.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"Nothing can be written to {folder.parent} ({error}). Name another data folder with --out."
        ) from error
    prepared = preparer.prepare(raw, Work(chosen, partial, on_progress))
    surprise = _surprise(preparer, prepared) if chosen == preparer.chosen(None) else []
    notes = (*prepared.notes, *surprise, *_shared(preparer, prepared))
    for text in surprise:
        warnings.warn(f"{preparer.name}: {text}", SizeWarning, stacklevel=2)
    train, test = prepared.train, prepared.test
    card = Card(
        name=preparer.name,
        family=FAMILY,
        n_train=len(train),
        n_test=len(test),
        n_channels=train.n_channels,
        n_times=train.n_times,
        n_classes=len(prepared.labels),
        source=preparer.source,
        licence=preparer.licence,
        citation=preparer.citation,
        labels=prepared.labels,
        stride=prepared.stride,
        transfer_channels=preparer.transfer_channels,
        paper_transfer_channels=preparer.paper_transfer_channels,
        settings=chosen,
        notes=notes,
        version=__version__,
    )
    card = write_prepared(folder, prepared, card)
    shutil.rmtree(partial, ignore_errors=True)
    return card


def _surprise(preparer: Preparer, prepared: Prepared) -> list[str]:
    """A sentence where the sizes are not the expected ones."""
    train = prepared.train
    found = Sizes(len(train), len(prepared.test), train.n_channels, train.n_times, len(prepared.labels))
    wrong = differences(found, preparer.expected)
    return [f"The raw files give {', '.join(wrong)}. Some may be missing or of another version."] if wrong else []


def _shared(preparer: Preparer, prepared: Prepared) -> list[str]:
    """A group in both parts is a fault, unless the set is known to be split otherwise; then the card says so."""
    groups = [set(np.unique(part.group).tolist()) for part in (prepared.train, prepared.test) if part.group is not None]
    both = sorted(set.intersection(*groups))
    if both and not preparer.shared_groups:
        raise InputError(f"{preparer.name}: groups {both[:5]} are in both parts. This is a fault of the preparer.")
    return ["Training and test windows come from the same groups."] if both else []


def raw_files(raw: Path, pattern: str, what: str) -> list[Path]:
    """The files below the raw folder that fit the pattern, sorted by path."""
    files = sorted(path for path in raw.rglob(pattern) if path.is_file())
    if not files:
        raise MissingDataError(f"{raw} holds no {pattern}. Expected {what}.")
    return files


def _alone(path: Path) -> Sequence[Path]:
    """Nothing is read beside the file."""
    return ()


def read_each(
    files: Sequence[Path],
    read: Callable[[Path], dict[str, Array]],
    work: Work,
    until: float = 1.0,
    *,
    beside: Callable[[Path], Sequence[Path]] = _alone,
) -> Iterator[dict[str, Array]]:
    """What `read` gives for each file, in order; from the partial folder where an earlier run has read it.

    `beside` names all other files that `read` opens for a file, such as its labels: where one of them has changed, it
    is read again. `until` is the share of the whole work that this is, for the progress bar.
    """
    for done, path in enumerate(files):
        work.on_progress(until * done / len(files), path.name)
        kept = work.partial / f"{path.stem}-{_stamp([path, *beside(path)])}.npz"
        yield _kept(kept) or _read_and_keep(path, read, kept)
    work.on_progress(until, "")


def _kept(path: Path) -> dict[str, Array] | None:
    """What an earlier run has kept, if it is there and whole."""
    try:
        return load_npz(path) if path.is_file() else None
    except InputError:
        return None


def _read_and_keep(path: Path, read: Callable[[Path], dict[str, Array]], kept: Path) -> dict[str, Array]:
    buffer, arrays = io.BytesIO(), read(path)
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_atomic(kept, buffer.getvalue())
    return arrays


def _stamp(paths: Sequence[Path]) -> str:
    """Changes with each of the files and with the version that reads them, so that no stale part is taken up."""
    try:
        facts = [(path, path.stat()) for path in paths]
    except OSError as error:
        raise InputError(f"A raw file cannot be read ({error}). Fetch it again.") from error
    # The time of change as well: a copy may bring its time of modification along.
    text = " ".join(f"{path} {at.st_size} {at.st_mtime_ns} {at.st_ctime_ns}" for path, at in facts)
    return hashlib.sha256(f"{text} {__version__}".encode()).hexdigest()[:12]
