"""Logistic regression of every class against the rest, all classes at once by Newton's method."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from dicot.errors import InputError
from dicot.gpu.device import resolve_device, to_device
from dicot.solvers.inputs import check_finite

Floats = NDArray[np.float64]

MAX_STEPS = 200  # of Newton's method; about ten are usual
MAX_PRODUCTS = 500  # with the second derivative, in one step
MAX_HALVINGS = 40  # of a step that does not lower the loss
ROUNDING = 1e-13  # of a loss, relative: below it two losses cannot be told apart


@dataclass(frozen=True)
class _Problem:
    """K binary problems on the same features z (N, F + 1), whose last column is 1 and carries the intercept."""

    z: Tensor
    signs: Tensor  # (N, K) +1 for the class and -1 for the rest
    spread: Tensor  # (F + 1, 1) sum of squares of each column
    penalty: Tensor  # (F + 1, 1) 1, but 0 for the intercept

    def of(self, classes: Tensor) -> "_Problem":
        """The problems of some classes."""
        return _Problem(self.z, self.signs[:, classes], self.spread, self.penalty)

    def losses(self, v: Tensor, margins: Tensor) -> Tensor:
        """(K,) sums of log losses plus half the squared weights; margins are z @ v."""
        return softplus(-self.signs * margins).sum(dim=0) + 0.5 * (self.penalty * v * v).sum(dim=0)

    def derivatives(self, v: Tensor, margins: Tensor) -> tuple[Tensor, Tensor]:
        """(F + 1, K) gradient, and (N, K) second derivatives of the log losses by their margins."""
        wrong = torch.sigmoid(-self.signs * margins)
        return self.back(-self.signs * wrong) + self.penalty * v, wrong * (1 - wrong)

    def back(self, values: Tensor) -> Tensor:
        """z.T @ values, in the order of the product that is twice as fast on a CPU."""
        return (values.T @ self.z).T


def one_vs_rest(
    x: Floats, y: NDArray[Any], *, tolerance: float = 1e-6, device: str = "auto"
) -> tuple[NDArray[Any], Floats, Floats]:
    """Classes (K,), weights (K, F) and intercepts (K,); for two classes a single row, positive for the second.

    Minimises for each class what scikit-learn's LogisticRegression(C=1) does, the sum of log losses plus half the
    squared weights, in float64. `tolerance` bounds the gradient divided by the number of cases, as there (1e-4), though
    entry by entry on the principal axes; here it is tighter, because the last Newton step costs little.
    """
    classes, code = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"Logistic regression needs at least 2 classes; got {len(classes)}.")
    check_finite("x", x)
    place = resolve_device(device)
    positives = np.arange(len(classes)) if len(classes) > 2 else np.array([1])
    targets = to_device(code, place)[:, None] == to_device(positives, place)
    problem, mean, axes = _on_principal_axes(to_device(x, place, torch.float64), targets)
    v = _minimum(problem, tolerance * len(x))
    weights = axes @ v[:-1]
    intercepts = v[-1] - mean @ weights
    return classes, weights.T.cpu().numpy().copy(), intercepts.cpu().numpy()


def _on_principal_axes(x: Tensor, targets: Tensor) -> tuple[_Problem, Tensor, Tensor]:
    """The same problem for centred and rotated features, with the mean and the rotation.

    Neither changes the penalty, and the second derivative becomes nearly diagonal, whatever the features' correlations.
    """
    mean = x.mean(dim=0)
    centred = x - mean
    spread, axes = torch.linalg.eigh(centred.T @ centred)
    z = torch.cat([centred @ axes, torch.ones_like(x[:, :1])], dim=1)
    count = spread.new_full((1,), len(x))
    penalty = torch.cat([torch.ones_like(spread), torch.zeros_like(count)])[:, None]
    signs = targets.to(x.dtype) * 2 - 1
    return _Problem(z, signs, torch.cat([spread.clamp(min=0), count])[:, None], penalty), mean, axes


def _minimum(problem: _Problem, tolerance: float) -> Tensor:
    """(F + 1, K) weights at which no entry of the gradient exceeds the tolerance."""
    share = (problem.signs > 0).double().mean(dim=0)
    v = torch.zeros(problem.z.shape[1], problem.signs.shape[1], dtype=torch.float64, device=problem.z.device)
    v[-1] = torch.log(share / (1 - share))  # the optimum without features; the first step is then exact in one product
    margins = v[-1].expand(len(problem.z), -1).clone()
    active = torch.arange(v.shape[1], device=v.device)
    for _ in range(MAX_STEPS):
        part = problem.of(active)
        gradient, curvature = part.derivatives(v[:, active], margins[:, active])
        going = gradient.abs().amax(dim=0) > tolerance
        if not going.any():
            return v
        active, gradient, curvature, part = active[going], gradient[:, going], curvature[:, going], part.of(going)
        step, reach = _newton_step(part, gradient, curvature)
        size = _step_size(part, v[:, active], margins[:, active], step, reach, (gradient * step).sum(dim=0))
        v[:, active] += size * step
        margins[:, active] += size * reach
    raise RuntimeError(f"Logistic regression did not converge in {MAX_STEPS} steps.")


def _newton_step(problem: _Problem, gradient: Tensor, curvature: Tensor) -> tuple[Tensor, Tensor]:
    """An approximate Newton step d (F + 1, K) and z @ d, by conjugate gradients with a diagonal preconditioner.

    Solved the more accurately the smaller the gradient, which keeps the convergence of Newton's method superlinear.
    """
    scale = 1 / (problem.spread * curvature.mean(dim=0) + problem.penalty)
    residual = -gradient
    guess = scale * residual
    norm = first = (residual * guess).sum(dim=0)
    # first is about twice what the loss can still fall by, so this is small near the optimum.
    goal = first * torch.minimum(first / len(problem.z), first.new_tensor(0.01)).clamp(min=1e-8)
    step, reach = torch.zeros_like(gradient), torch.zeros_like(curvature)
    for _ in range(MAX_PRODUCTS):
        along = problem.z @ guess
        product = problem.back(curvature * along) + problem.penalty * guess
        length = torch.where(norm > goal, norm / (guess * product).sum(dim=0), 0.0)
        step += length * guess
        reach += length * along
        residual = residual - length * product
        ahead = scale * residual
        before, norm = norm, (residual * ahead).sum(dim=0)
        going = norm > goal
        if not going.any():
            break
        guess = torch.where(going, ahead + (norm / before) * guess, 0.0)  # a class that is done stays as it is
    return step, reach


def _step_size(problem: _Problem, v: Tensor, margins: Tensor, step: Tensor, reach: Tensor, slope: Tensor) -> Tensor:
    """(K,) 1, halved for each class until its loss falls enough. Costs no product with z."""
    before = problem.losses(v, margins)
    size = torch.ones_like(slope)
    for _ in range(MAX_HALVINGS):
        after = problem.losses(v + size * step, margins + size * reach)
        short = after > before + 1e-4 * size * slope + ROUNDING * before
        if not short.any():
            break
        size = torch.where(short, size / 2, size)
    return size
