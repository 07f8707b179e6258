"""catt_loss.npz: CaTT's loss and gradient in both forms, in one block and in blocks of a few rows."""

import torch

from dicot.methods.catt import MAX_ENTRIES, adjacent_step
from tests.golden.compare import GRADIENT_ABSOLUTE, LOSS_RELATIVE, Comparison, Vectors, cases

FORM = {"ls": "two_sided", "next": "next"}  # their word: ours


def check_catt_loss(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        for theirs, form in FORM.items():
            for max_entries in (MAX_ENTRIES, 7 * len(case["features"])):
                z = torch.from_numpy(case["features"]).requires_grad_()  # (N, F): one window of N steps
                loss = adjacent_step(z[None], float(case["tau"]), form, max_entries=max_entries)
                loss.backward()
                what = f"{label} {theirs}, blocks of {max_entries}"
                out.close(what, loss.item(), case[f"loss_{theirs}"], relative=LOSS_RELATIVE)
                out.close(f"{what}, gradient", z.grad, case[f"grad_{theirs}"], absolute=GRADIENT_ABSOLUTE)
    return out
