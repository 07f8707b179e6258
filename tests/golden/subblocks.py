"""subblocks.npz: length, stride, count and coverage of the paper's block rule, as exact integers."""

import numpy as np

from dicot.nets.views.blocks import paper_rule
from tests.golden.compare import Comparison, Vectors


def check_subblocks(vectors: Vectors) -> Comparison:
    out = Comparison()
    columns = [str(name) for name in vectors["columns"]]
    for row in vectors["table"]:
        case = dict(zip(columns, row, strict=True))
        n_times, k, overlap = int(case["T"]), int(case["k_requested"]), float(case["rho"])
        rule = paper_rule(n_times, k, overlap)
        label = f"T={n_times} k={k} rho={overlap}"
        if rule is None:
            out.equal(label, -1, case["n_blocks"])
            continue
        length, stride, count = rule
        ours = [length, stride, count, (count - 1) * stride + length]
        out.equal(label, ours, np.array([case[name] for name in ("L", "stride", "n_blocks", "covered")]))
    return out
