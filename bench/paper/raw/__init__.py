"""The raw files of the paper's large sets: READERS says how each is read, `prepare_by_name` makes a set of them."""

from functools import partial
from pathlib import Path
from typing import Any

from bench.datasets.large import ECG, ECG_FIXED, ECG_FULL, LargeSet
from bench.paper.preparation import Raw, prepare
from bench.paper.raw import movement, physiology
from dicot.core.errors import InputError
from dicot.data.datasets import DATASETS, Card

BORDERS = ("cross", "cut")  # whether windows cross people and activities, as the paper's do
READERS: dict[str, Raw] = {
    "harth": Raw(movement.read_harth),
    "pamap2": Raw(movement.read_pamap2, {"scaling": ("test", "train"), "borders": BORDERS}),
    "pamap2-paper": Raw(movement.read_pamap2_arrays),
    "skoda-paper": Raw(partial(movement.read_skoda, in_time=False), shared_groups=True),
    "skoda-blocked": Raw(partial(movement.read_skoda, in_time=True), shared_groups=True),
    "wisdm2": Raw(movement.read_wisdm2, {"borders": BORDERS}),
    "sleep": Raw(physiology.read_sleep),
    **{one.name: Raw(partial(physiology.read_ecg, dataset=one)) for one in (ECG, ECG_FIXED, ECG_FULL)},
}


def prepare_by_name(name: str, raw: Path, **options: Any) -> Card:
    """Make a large set from its publisher's files in the folder `raw`; see `prepare` for the options."""
    dataset = DATASETS.registered(name) or DATASETS.find(name)
    if not isinstance(dataset, LargeSet) or dataset.name not in READERS:
        raise InputError(
            f"{dataset.name} is not made from raw files. "
            f"`python -m bench list datasets {dataset.name}` says where it is from."
        )
    return prepare(dataset, READERS[dataset.name], raw, **options)
