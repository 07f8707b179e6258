"""infots_augs.npz: four of InfoTS's augmentations for given draws."""

import torch

from dicot.methods.infots import cutout, subsequence, window_slice, window_warp
from tests.golden.compare import Comparison, Vectors, cases

TOLERANCE = 1e-9


def check_infots_augs(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        x = torch.from_numpy(case["x"]).transpose(1, 2)  # theirs is (B, T, C)
        slice_starts, warp_starts, scales = (
            torch.from_numpy(case[name]) for name in ("slice_start", "warp_start", "warp_scale")
        )
        ours = {
            "slice": window_slice(x, slice_starts, int(case["slice_len"])),
            "warp": window_warp(x, warp_starts, scales, int(case["warp_len"])),
            "sub": subsequence(x, int(case["sub_start"]), int(case["sub_len"])),
            "cut": cutout(x, int(case["cut_start"]), int(case["cut_len"])),
        }
        for name, value in ours.items():
            out.close(f"{label} {name}", value.transpose(1, 2), case[f"{name}_out"], absolute=TOLERANCE)
    return out
