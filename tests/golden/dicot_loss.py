"""dicot_loss.npz: Di-COT's loss and gradient for the three targets the authors name."""

import torch

from dicot.nets.losses import adjacent_block
from tests.golden.compare import GRADIENT_ABSOLUTE, LOSS_RELATIVE, Comparison, Vectors, cases

POSITIVE = {"preceding": "previous", "next": "next", "both": "both"}  # their word: ours


def check_dicot_loss(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        for theirs, ours in POSITIVE.items():
            z = torch.from_numpy(case["z"]).requires_grad_()
            loss = adjacent_block(z, float(case["tau"]), ours)
            loss.backward()
            # The case with a single block has loss 0, which a relative tolerance alone cannot meet.
            tolerance = {"relative": LOSS_RELATIVE, "absolute": 1e-14}
            out.close(f"{label} loss {theirs}", loss.item(), case[f"loss_{theirs}"], **tolerance)
            out.close(f"{label} gradient {theirs}", z.grad, case[f"grad_{theirs}"], absolute=GRADIENT_ABSOLUTE)
    return out
