"""ntxent.npz: NT-Xent, plain (TS-TCC) and with TF-C's polynomial term."""

import torch

from dicot.nets.losses import nt_xent, poly_nt_xent
from tests.golden.compare import GRADIENT_ABSOLUTE, LOSS_RELATIVE, Comparison, Vectors, cases


def check_ntxent(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        for form, loss_of in (("plain", nt_xent), ("poly", poly_nt_xent)):
            zi, zj = (torch.from_numpy(case[name]).requires_grad_() for name in ("zi", "zj"))
            loss = loss_of(zi, zj, float(case["tau"]), cosine=bool(case["use_cosine"]))
            loss.backward()
            out.close(f"{label} {form}", loss.item(), case[f"loss_{form}"], relative=LOSS_RELATIVE)
            out.close(f"{label} {form} gradient i", zi.grad, case[f"grad_zi_{form}"], absolute=GRADIENT_ABSOLUTE)
            out.close(f"{label} {form} gradient j", zj.grad, case[f"grad_zj_{form}"], absolute=GRADIENT_ABSOLUTE)
    return out
