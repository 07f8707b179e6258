"""ts2vec_loss.npz: the hierarchical loss with gradients, and both losses of its first level."""

import torch

from dicot.nets.hierarchy import hierarchical_contrast, paired_contrast
from tests.golden.compare import GRADIENT_ABSOLUTE, LOSS_RELATIVE, Comparison, Vectors, cases


def check_ts2vec_loss(vectors: Vectors) -> Comparison:
    out = Comparison()
    tolerance = {"relative": LOSS_RELATIVE, "absolute": 1e-14}  # B = 1 and T = 1 have losses of exactly 0
    for label, case in cases(vectors):
        z1, z2 = (torch.from_numpy(case[name]).requires_grad_() for name in ("z1", "z2"))  # (B, T, F)
        loss = hierarchical_contrast(
            z1.transpose(1, 2), z2.transpose(1, 2), alpha=float(case["alpha"]), temporal_unit=int(case["temporal_unit"])
        )
        loss.backward()
        out.close(f"{label} loss", loss.item(), case["loss"], **tolerance)
        for name, z in (("grad_z1", z1), ("grad_z2", z2)):
            out.close(f"{label} {name}", z.grad, case[name], absolute=GRADIENT_ABSOLUTE)
        instance = paired_contrast(z1.transpose(0, 1), z2.transpose(0, 1)).item()
        out.close(f"{label} instance_loss", instance, case["instance_loss"], **tolerance)
        out.close(f"{label} temporal_loss", paired_contrast(z1, z2).item(), case["temporal_loss"], **tolerance)
    return out
