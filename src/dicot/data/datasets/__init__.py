"""Data sets by name or path: `load` one, see what is `on_hand`; DATASETS is where a new one is registered."""

from pathlib import Path
from typing import Any

from dicot.core.errors import InputError, UnlabelledDataError
from dicot.data import Split as Split
from dicot.data.datasets.archive import archive_sets, discovered_archives
from dicot.data.datasets.base import Card as Card
from dicot.data.datasets.base import DataSet as DataSet
from dicot.data.datasets.base import OnHand as OnHand
from dicot.data.datasets.base import Registry, Synthetic
from dicot.data.datasets.base import fingerprint as fingerprint
from dicot.data.readers import Content
from dicot.data.splits import read_parts, read_split

DATASETS = Registry([Synthetic(), *archive_sets()], discover=[discovered_archives])


def load(name_or_path: str | Path, **options: Any) -> Split:
    """Load a data set by its name, or a file by its path.

    `options` are the policies unequal, missing, scale and length, and for a name `channels`, the numbers of those to
    keep; a file also takes the options of read_split.
    """
    if is_path(name_or_path):
        return read_split(name_or_path, **options)
    return DATASETS.find(str(name_or_path)).load(**options)


def card(name: str) -> Card:
    """Return the facts about one data set on this machine, without reading its values."""
    return DATASETS.find(name).card()


def check(name: str) -> Card:
    """Read a whole data set and return its card with the fingerprint; an InputError says what is wrong with it."""
    return DATASETS.find(name).check()


def is_path(name_or_path: str | Path) -> bool:
    """Tell a file from a name: a Path, text with a suffix or a folder, or a file that no data set is named like."""
    path = Path(name_or_path)
    if isinstance(name_or_path, Path) or path.suffix or path.parent != Path("."):
        return True
    return path.exists() and name_or_path not in DATASETS


def load_parts(name_or_path: str | Path, **columns: Any) -> dict[str, Content]:
    """Return the cases of a data set as they are, by part; for a model that brings its own policies."""
    if is_path(name_or_path):
        return read_parts(name_or_path, **columns)
    if columns:
        raise InputError(f"{name_or_path!r} is a data set by name; {', '.join(columns)} are options of files.")
    split = load(name_or_path)
    parts = {"train": split.train, "test": split.test}
    return {part: Content(w.x, w.y, w.group) for part, w in parts.items() if w is not None}


def on_hand() -> OnHand:
    """List what is on this machine; a set that cannot be read is among the damaged ones and stops nothing."""
    cards: list[Card] = []
    damaged: dict[str, str] = {}
    for one in sorted(DATASETS.values(), key=lambda one: one.name.lower()):
        if not one.is_here():
            continue
        try:
            cards.append(one.card())
        except UnlabelledDataError:  # a regression problem, which nothing here can be done with
            continue
        except InputError as error:
            damaged[one.name] = str(error)
    return OnHand(cards, damaged)


def family_of(name: str) -> str | None:
    """Return the family whose recipe a registered set is trained by; it does not depend on the files of a machine."""
    return known.family if (known := DATASETS.registered(name)) else None


def is_here(name: str) -> bool:
    return (known := DATASETS.get(name)) is not None and known.is_here()


def spelled(name: str) -> str:
    """Return the usual spelling of a registered name in any capitalisation; anything else as it is."""
    return known.name if (known := DATASETS.registered(name)) else name


def paper_subset_seed(name: str) -> int | None:
    """Return the seed of the authors' draw of labelled cases where a registered set has one of its own (D-40)."""
    return known.paper_subset_seed if (known := DATASETS.registered(name)) else None


def benchmark_policies(name_or_path: str | Path) -> dict[str, Any]:
    """Return the policies that a benchmark loads a data set with; none for a file or an unknown name."""
    known = None if is_path(name_or_path) else DATASETS.get(str(name_or_path))
    return dict(known.benchmark_policies) if known else {}
