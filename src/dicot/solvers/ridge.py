"""Ridge regression with its strength chosen by leave-one-out in closed form."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dicot.errors import InputError
from dicot.gpu.device import resolve_device, to_device
from dicot.solvers.inputs import check_finite

Floats = NDArray[np.float64]

ROWS = 8192  # at a time, which bounds memory


def leave_one_out_ridge(
    x: Floats, targets: Floats, alphas: Floats, *, device: str = "auto"
) -> tuple[Floats, Floats, float]:
    """Weights (K, F), intercepts (K,), and the alpha with the least mean squared error on cases left out in turn.

    Minimises |targets - x w - b|^2 + alpha |w|^2 for targets (N, K), as scikit-learn's RidgeCV does, in float64. The
    features' scales may differ by many powers of ten: products of features, whose small ones would be lost beside the
    large, are never formed. Works with (F, F) matrices, so it is for many cases and not so many features.
    """
    if len(x) < 2:
        raise InputError(f"Leaving one case out takes at least 2 cases; got {len(x)}.")
    check_finite("x", x)
    check_finite("targets", targets)
    place = resolve_device(device)
    z, t = to_device(x, place, torch.float64), to_device(targets, place, torch.float64)
    x_mean, t_mean = z.mean(dim=0), t.mean(dim=0)
    solve = _from_few_cases if len(x) <= x.shape[1] + 1 else _from_many_cases
    axes, solutions, errors = solve(z - x_mean, t - t_mean, to_device(alphas, place, torch.float64))
    best = int(errors.argmin())
    weights = axes @ solutions[best]
    intercepts = t_mean - x_mean @ weights
    return weights.T.cpu().numpy().copy(), intercepts.cpu().numpy(), float(alphas[best])


def _from_many_cases(z: Tensor, t: Tensor, alphas: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Principal axes (F, F) of z (N, F), the weights on them (A, F, K) and the summed squared errors (A,)."""
    _, size, axes = torch.linalg.svd(torch.linalg.qr(z, mode="r").R)
    axes = axes.mT
    z = z @ axes
    shrink = 1 / (size.square()[:, None] + alphas)  # (F, A)
    solutions = shrink.T[:, :, None] * (z.T @ t)
    errors = torch.zeros_like(alphas)
    for rows, wanted in zip(torch.split(z, ROWS), torch.split(t, ROWS), strict=True):
        influence = rows.square() @ shrink + 1 / len(z)  # (rows, A) of a case on its own prediction
        left_out = (wanted - rows @ solutions) / (1 - influence).T[:, :, None]
        errors += left_out.square().sum(dim=(1, 2))
    return axes, solutions, errors


def _from_few_cases(z: Tensor, t: Tensor, alphas: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same where the features can fit every target: axes (F, N - 1), weights (A, N - 1, K), errors (A,).

    A small alpha then leaves next to nothing of the residuals and of 1 - influence, whose quotient is the error. Both
    are computed divided by alpha, as sums without cancellation over N - 1 axes orthogonal to the intercept's.
    """
    level = _orthogonal_to_constant(z)
    cases, size, axes = torch.linalg.svd(level.T @ z, full_matrices=False)
    cases = level @ cases  # (N, N - 1)
    shrink = 1 / (size.square()[:, None] + alphas)  # (N - 1, A)
    along = cases.T @ t
    residuals = cases @ (shrink.T[:, :, None] * along)  # (A, N, K)
    left_out = residuals / (cases.square() @ shrink).T[:, :, None]
    return axes.mT, (size[:, None] * shrink).T[:, :, None] * along, left_out.square().sum(dim=(1, 2))


def _orthogonal_to_constant(z: Tensor) -> Tensor:
    """(N, N - 1) orthonormal columns whose entries sum to 0: a reflection that turns the first axis to the constant."""
    normal = z.new_full((len(z),), len(z) ** -0.5)
    normal[0] += 1
    reflection = torch.eye(len(z), dtype=z.dtype, device=z.device) - torch.outer(normal, normal) * (
        2 / normal.dot(normal)
    )
    return reflection[:, 1:]
