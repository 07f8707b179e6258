"""infots_loss.npz: InfoTS's global loss, and its local loss of the first case and of each case."""

import torch
from torch import Tensor

from dicot.methods.infots import pooled_contrast, segment_contrast
from tests.golden.compare import GRADIENT_ABSOLUTE, LOSS_RELATIVE, Comparison, Vectors, cases

# A batch of one case has global loss 0, which a relative tolerance alone cannot meet.
LOSS = {"relative": LOSS_RELATIVE, "absolute": 1e-14}


def check_infots_loss(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        z1, z2 = (torch.from_numpy(case[name]).requires_grad_() for name in ("z1", "z2"))  # theirs are (B, T, F)
        loss = pooled_contrast(z1.transpose(1, 2), z2.transpose(1, 2))
        loss.backward()
        out.close(f"{label} global", loss.item(), case["loss_global"], **LOSS)
        out.close(f"{label} global gradient 1", z1.grad, case["grad_global_z1"], absolute=GRADIENT_ABSOLUTE)
        out.close(f"{label} global gradient 2", z2.grad, case["grad_global_z2"], absolute=GRADIENT_ABSOLUTE)

        k, start = int(case["k"]), int(case["start"])

        def local(z: Tensor, k: int = k, start: int = start) -> Tensor:
            return segment_contrast(z.transpose(1, 2), k, start)

        z1.grad = None
        first = local(z1[:1])
        first.backward()
        out.close(f"{label} local first", first.item(), case["loss_local_first_instance"], **LOSS)
        out.close(f"{label} local gradient", z1.grad, case["grad_local_z1"], absolute=GRADIENT_ABSOLUTE)
        each = case["loss_local_each_instance"]
        ours = [local(z1[i : i + 1]).item() for i in range(len(z1))]
        out.close(f"{label} local each", ours, each, **LOSS)
        out.close(f"{label} local mean", local(z1).item(), each.mean(), **LOSS)
    return out
