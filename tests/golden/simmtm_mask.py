"""simmtm_mask.npz: the authors' loop over the two-state chain, fed with the same uniform draws."""

import numpy as np
import torch

from dicot.methods.simmtm import markov_keep
from tests.golden.compare import Comparison, Vectors, cases


def check_simmtm_mask(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        draws = np.random.RandomState(int(case["numpy_seed"])).random_sample(int(case["L"]))
        keep = markov_keep(torch.from_numpy(draws), float(case["ratio"]), float(case["lm"]))
        out.equal(f"{label} keep", keep, case["keep"])
    return out
