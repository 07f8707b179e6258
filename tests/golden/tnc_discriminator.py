"""tnc_discriminator.npz: logits of TNC's discriminator for given weights, dropout off."""

import torch

from dicot.methods.tnc import Discriminator
from tests.golden.compare import LOSS_RELATIVE, Comparison, Vectors, cases

WEIGHTS = {"hidden.weight": "W0", "hidden.bias": "b0", "out.weight": "W1", "out.bias": "b1"}  # ours: theirs


def check_tnc_discriminator(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        reference, other = torch.from_numpy(case["z_t"]), torch.from_numpy(case["z_other"])
        discriminator = Discriminator(reference.shape[1]).double().eval()
        discriminator.load_state_dict({ours: torch.from_numpy(case[theirs]) for ours, theirs in WEIGHTS.items()})
        with torch.no_grad():
            logit = discriminator(reference, other)
        # A logit may lie near 0, which a relative tolerance alone cannot meet.
        out.close(f"{label} logit", logit, case["logit"], relative=LOSS_RELATIVE, absolute=1e-12)
    return out
