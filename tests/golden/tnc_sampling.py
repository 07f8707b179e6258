"""tnc_sampling.npz: epsilon and delta by the ADF rule, and the windows drawn with NumPy's legacy generator."""

from importlib.util import find_spec

import numpy as np
import torch

from dicot.methods.tnc import REACH, adf_epsilon, close_centres, cut_windows, distant_centres, distant_range
from tests.golden.compare import Comparison, Vectors, cases


def check_tnc_sampling(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        x, t, width, m = case["x"], int(case["t"]), int(case["window"]), int(case["mc"])
        epsilon = int(case["epsilon"])
        if find_spec("statsmodels"):  # without it the rest is checked with the file's epsilon
            epsilon = adf_epsilon(x, t, width)
            out.equal(f"{label} epsilon", epsilon, case["epsilon"])
        out.equal(f"{label} delta", REACH * epsilon * width, case["delta"])

        legacy = np.random.RandomState(int(case["numpy_seed"]))
        place = torch.tensor([t]), torch.tensor([epsilon]), x.shape[1], width
        normal = torch.from_numpy(legacy.standard_normal(m))[None]
        close = close_centres(normal, *place)
        low, high = (int(end) for end in distant_range(*place))
        integers = legacy.randint(low, high + 1, m)
        uniform = (integers - low + 0.5) / (high - low + 1)  # the numbers in [0, 1) that mean these integers
        distant = distant_centres(torch.from_numpy(uniform)[None], *place)
        for kind, centres in (("pos", close), ("neg", distant)):
            starts = case[f"{kind}_starts"]
            out.equal(f"{label} {kind} starts", centres[0].numpy() - width // 2, starts)
            cut = cut_windows(torch.from_numpy(x)[None], centres, width)[0]
            expected = np.stack([x[:, start : start + 2 * (width // 2)] for start in starts])
            out.equal(f"{label} {kind} windows", cut.numpy(), expected)
    return out
