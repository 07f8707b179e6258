"""tstcc_tc.npz: TS-TCC's module beside the encoder, with all its weights."""

import re

import torch

from dicot.methods.tstcc import TemporalContrast
from tests.golden.compare import GRADIENT_ABSOLUTE, LOSS_RELATIVE, Comparison, Vectors, cases

RESULT_ABSOLUTE = 1e-12  # beside the relative tolerance: entries of the vectors may be near 0


def check_tstcc_tc(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        module = build_module(case)
        # Theirs are (B, T, F).
        source, target = (
            torch.from_numpy(case[name]).transpose(1, 2).requires_grad_() for name in ("features1", "features2")
        )
        t = int(case["t"])
        context = module.context(source, t)
        nce, projection = module(source, target, t)
        (nce + projection.sum()).backward()
        tolerance = {"relative": LOSS_RELATIVE, "absolute": RESULT_ABSOLUTE}
        out.close(f"{label} nce", nce.item(), case["nce"], **tolerance)
        out.close(f"{label} context", context.detach(), case["context"], **tolerance)
        out.close(f"{label} projection", projection.detach(), case["projection"], **tolerance)
        for name, features in (("features1", source), ("features2", target)):
            gradient = features.grad.transpose(1, 2)
            out.close(f"{label} gradient {name}", gradient, case[f"grad_{name}"], absolute=GRADIENT_ABSOLUTE)
    return out


def build_module(case: Vectors) -> TemporalContrast:
    """A module with the file's shape and weights, in eval mode; every weight must be given."""
    weights = {
        re.sub(r"^(layer|predictor)(\d+)", r"\1s.\2", name.removeprefix("param_")): torch.from_numpy(value)
        for name, value in case.items()
        if name.startswith("param_")
    }
    width, dim = weights["embed.weight"].shape
    depth = sum(name.endswith("qkv.weight") for name in weights)
    module = TemporalContrast(dim, width, int(case["K"]), int(case["heads"]), depth).double()
    module.load_state_dict({**weights, "proj_bn.num_batches_tracked": torch.zeros((), dtype=torch.long)})
    return module.eval()
