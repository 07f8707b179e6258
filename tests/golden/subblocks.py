"""subblocks.npz: length, stride, count and coverage of the paper's block rule, as exact integers."""

from itertools import pairwise

import numpy as np

from dicot.nets.views import block_layout
from tests.golden.compare import Comparison, Vectors


def check_subblocks(vectors: Vectors) -> Comparison:
    out = Comparison()
    columns = [str(name) for name in vectors["columns"]]
    for row in vectors["table"]:
        case = dict(zip(columns, row, strict=True))
        n_times, k, overlap = int(case["T"]), int(case["k_requested"]), float(case["rho"])
        label = f"T={n_times} k={k} rho={overlap}"
        blocks = block_layout(n_times, k, overlap)
        strides = {later - earlier for earlier, later in pairwise(blocks.starts)}
        if case["n_blocks"] == -1:  # the rule divides by zero
            out.equal(label, blocks.length, 2)
            continue
        ours = [blocks.length, len(blocks), blocks.starts[-1] + blocks.length, *strides]
        names = ("L", "n_blocks", "covered", "stride")
        out.equal(label, ours, np.array([case[name] for name in names][: len(ours)]))
    return out
