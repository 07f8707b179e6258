"""The paper's large sets and what stands in for them; importing this adds them to the library's registry."""

from bench.datasets.large import LARGE_SETS, prepared_folders
from bench.datasets.standins import STAND_INS
from dicot.data.datasets import DATASETS

for dataset in (*LARGE_SETS, *STAND_INS):
    DATASETS[dataset.name] = dataset
if prepared_folders not in DATASETS.discover:
    DATASETS.discover.insert(0, prepared_folders)


def stand_ins(name: str) -> list[str]:
    """Name the data sets on this machine that stand in for this one, or for the set that it is a version of."""
    return [one.name for one in STAND_INS if f"{name}-".startswith(f"{one.stands_in_for}-") and one.is_here()]


def stands_in_for(name: str) -> str:
    """Name the set of the paper in whose place a registered set is used; empty for any other."""
    return known.stands_in_for if (known := DATASETS.registered(name)) else ""


def transfer_channels(name: str, authors: bool = False) -> tuple[int, ...]:
    """Return the channels of the sensor that a registered set shares with others; empty where none are known.

    `authors` takes those of the authors' code where they differ (D-50).
    """
    known = DATASETS.registered(name)
    theirs: tuple[int, ...] = getattr(known, "paper_transfer_channels", ()) if authors else ()
    return theirs or (known.transfer_channels if known else ())
