"""The raw files of the paper's large sets: READERS says how each is read, `prepare_by_name` makes a set of them."""

from functools import partial
from pathlib import Path
from typing import Any

from dicot.core.errors import InputError
from dicot.data.datasets import DATASETS, Card
from dicot.data.datasets.large import ECG, ECG_FIXED, ECG_FULL, LargeSet
from dicot.paper.preparation import Raw, prepare
from dicot.paper.raw import ecg, harth, pamap2, skoda, sleep, wisdm2

READERS: dict[str, Raw] = {
    "harth": Raw(harth.read),
    "pamap2": Raw(pamap2.read, pamap2.SETTINGS),
    "pamap2-paper": Raw(pamap2.read_arrays),
    "skoda-paper": Raw(skoda.read_shuffled, shared_groups=True),  # there is one worker only
    "skoda-blocked": Raw(skoda.read_blocked, shared_groups=True),
    "wisdm2": Raw(wisdm2.read, wisdm2.SETTINGS),
    "sleep": Raw(sleep.read),
    **{one.name: Raw(partial(ecg.read, dataset=one)) for one in (ECG, ECG_FIXED, ECG_FULL)},
}


def prepare_by_name(name: str, raw: Path, **options: Any) -> Card:
    """Make a large set from its publisher's files in the folder `raw`; see `prepare` for the options."""
    dataset = DATASETS.registered(name) or DATASETS.find(name)
    if not isinstance(dataset, LargeSet) or dataset.name not in READERS:
        raise InputError(
            f"{dataset.name} is not made from raw files. `dicot list datasets {dataset.name}` says where it is from."
        )
    return prepare(dataset, READERS[dataset.name], raw, **options)
