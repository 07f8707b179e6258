"""tnc_loss.npz: the positive-unlabelled loss on logits and its gradients."""

import torch

from dicot.methods.tnc import positive_unlabelled
from tests.golden.compare import GRADIENT_ABSOLUTE, LOSS_RELATIVE, Comparison, Vectors, cases


def check_tnc_loss(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        close, distant = (torch.from_numpy(case[name]).requires_grad_() for name in ("d_pos", "d_neg"))
        loss = positive_unlabelled(close, distant, float(case["w"]))
        loss.backward()
        out.close(f"{label} loss", loss.item(), case["loss"], relative=LOSS_RELATIVE)
        out.close(f"{label} gradient close", close.grad, case["grad_d_pos"], absolute=GRADIENT_ABSOLUTE)
        out.close(f"{label} gradient distant", distant.grad, case["grad_d_neg"], absolute=GRADIENT_ABSOLUTE)
    return out
