"""ts2vec_crops.npz: the crop geometry, drawn with the authors' generator, and what the two views then hold."""

import numpy as np
import torch

from dicot.methods.cropping import Crops, cut_crops, draw_crops, shared_part
from tests.golden.compare import Comparison, Vectors, cases

NAMES = {"crop_l": "overlap", "crop_left": "left", "crop_right": "right", "crop_eleft": "outer_left"}
NAMES["crop_eright"] = "outer_right"


def check_ts2vec_crops(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        n_times, n_cases = int(case["T"]), int(case["B"])
        legacy = np.random.RandomState(int(case["numpy_seed"]))
        crops = draw_crops(n_times, legacy.randint)
        for theirs, ours in NAMES.items():
            out.equal(f"{label} {theirs}", getattr(crops, ours), case[theirs])
        out.equal(f"{label} offset", legacy.randint(*crops.shifts, size=n_cases), case["offset"])
        _check_views(out, label, crops, case)
    return out


def _check_views(out: Comparison, label: str, crops: Crops, case: dict[str, np.ndarray]) -> None:
    """On cases that hold their own time axis the views must be the slices of the formula."""
    time = np.arange(int(case["T"]))
    shifts = torch.from_numpy(case["offset"])
    views = cut_crops(torch.from_numpy(time).expand(len(shifts), 1, -1), crops, shifts)
    ends = (("crop_eleft", "crop_right"), ("crop_left", "crop_eright"))
    for number, (view, (begin, end)) in enumerate(zip(views, ends, strict=True), start=1):
        expected = [time[int(o + case[begin]) : int(o + case[end])] for o in case["offset"]]
        out.equal(f"{label} view {number}", view[:, 0], np.stack(expected))
    first, second = shared_part(*views, crops)
    expected = [time[int(o + case["crop_left"]) :][: int(case["crop_l"])] for o in case["offset"]]
    for name, part in (("view 1", first), ("view 2", second)):
        out.equal(f"{label} shared part of {name}", part[:, 0], np.stack(expected))
