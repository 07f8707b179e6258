"""Ridge regression with its strength chosen by leave-one-out in closed form."""

import numpy as np
import torch
from numpy.typing import NDArray

from dicot.device import resolve_device, to_device

Floats = NDArray[np.float64]

ROWS = 8192  # at a time, which bounds memory


def leave_one_out_ridge(
    x: Floats, targets: Floats, alphas: Floats, *, device: str = "auto"
) -> tuple[Floats, Floats, float]:
    """Weights (K, F), intercepts (K,), and the alpha with the least mean squared error on cases left out in turn.

    Minimises |targets - x w - b|^2 + alpha |w|^2 for targets (N, K), as scikit-learn's RidgeCV does, in float64. Works
    with the (F, F) products of features, so it is for many cases and not so many features.
    """
    place = resolve_device(device)
    t_mean = to_device(targets.mean(axis=0), place)
    z, t = to_device(x, place, torch.float64), to_device(targets, place, torch.float64) - t_mean
    x_mean = z.mean(dim=0)
    z = z - x_mean
    spread, axes = torch.linalg.eigh(z.T @ z)
    z = z @ axes
    shrink = 1 / (spread.clamp(min=0)[:, None] + to_device(alphas, place))  # (F, A)
    solutions = shrink.T[:, :, None] * (z.T @ t)  # (A, F, K) on the principal axes
    errors = torch.zeros(len(alphas), dtype=torch.float64, device=place)
    for rows, wanted in zip(torch.split(z, ROWS), torch.split(t, ROWS), strict=True):
        influence = rows.square() @ shrink + 1 / len(z)  # (rows, A) of a case on its own prediction
        left_out = (wanted - rows @ solutions) / (1 - influence).T[:, :, None]
        errors += left_out.square().sum(dim=(1, 2))
    best = int(errors.argmin())
    weights = axes @ solutions[best]
    intercepts = t_mean - x_mean @ weights
    return weights.T.cpu().numpy().copy(), intercepts.cpu().numpy(), float(alphas[best])
