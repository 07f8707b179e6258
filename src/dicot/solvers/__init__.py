"""Solvers for scoring many cases, on the CPU or a GPU: arrays in, arrays out, the answers of scikit-learn."""

from dicot.solvers.logistic import one_vs_rest
from dicot.solvers.neighbours import nearest
from dicot.solvers.ridge import leave_one_out_ridge

__all__ = ["leave_one_out_ridge", "nearest", "one_vs_rest"]
