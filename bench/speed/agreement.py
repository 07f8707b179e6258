"""Are the numbers still right? Losses beside eager float32 through the encoder's definition.

Training is chaotic: AdamW's first updates are nearly the sign of the gradient, and the sign of a gradient near zero is
decided by rounding. Weights that differ by 1e-7 end in losses that differ by percents fifty steps later, whichever way
they are trained. So two things are asked: the first ten losses agree closely, which a wrong gradient would not allow,
and over all steps the deviation stays on average within what chaos does. What it does is measured beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from bench.speed.reference import Definition, plain_pretrain
from bench.speed.shapes import Shape
from bench.speed.steps import dicot
from bench.tables import Value
from dicot.core.device import float32_arithmetic, resolve_device
from dicot.data import Windows
from dicot.methods import Method
from dicot.methods.dicot import DiCOT
from dicot.model.fitting import seeded_weights
from dicot.train import Recipe, Step, pretrain

SMALLEST = 1e-6  # losses below this differ in nothing that counts
EARLY = 10  # steps
ROUNDING = 1e-7  # relative change of the weights that shows what chaos alone does


@dataclass(frozen=True)
class Tolerance:
    """Largest relative deviation of the first ten losses, and mean relative deviation of all."""

    early: float
    mean: float


# TF32 keeps 10 bits of mantissa, so that each product is off by up to 5e-4.
TOLERANCES = {"float32": Tolerance(5e-3, 0.1), "tf32": Tolerance(5e-2, 0.15)}


@dataclass(frozen=True)
class Agreement:
    """How far the losses of one shape in one precision are apart."""

    steps: int
    early: float
    mean: float
    chaos: float  # the mean deviation that a change of the weights by ROUNDING brings
    tolerance: Tolerance

    @property
    def holds(self) -> bool:
        return self.early <= self.tolerance.early and self.mean <= self.tolerance.mean

    def row(self) -> dict[str, Value]:
        return {
            "steps": self.steps,
            f"first {EARLY}": self.early,
            "tolerance": self.tolerance.early,
            "mean of all": self.mean,
            "tolerance of mean": self.tolerance.mean,
            "chaos": self.chaos,
            "agrees": "yes" if self.holds else "NO",
        }


def check_losses(
    shape: Shape,
    precision: str,
    steps: int,
    device: str,
    make: Callable[[int], Method] = dicot,
) -> Agreement:
    """Compare the first steps of the paper's run, ours (`make`) and the reference's, with the same seed and plans."""
    train, recipe = shape.windows(), shape.recipe(precision)
    steps = min(steps, recipe.steps)
    ours = _first_losses(_seeded(make, shape), train, recipe, steps, device)
    nudged = _first_losses(_nudged(_seeded(make, shape)), train, recipe, steps, device)

    reference = _seeded(lambda n_channels: DiCOT(Definition(n_channels)), shape)
    with float32_arithmetic(resolve_device(device)):
        losses, _ = plain_pretrain(reference, train, recipe, seed=0, device=device, steps=steps)

    apart = _relative(ours, np.array(losses))
    chaos = _relative(nudged, ours)
    return Agreement(steps, float(apart[:EARLY].max()), float(apart.mean()), float(chaos.mean()), TOLERANCES[precision])


def _first_losses(method: Method, train: Windows, recipe: Recipe, steps: int, device: str) -> np.ndarray:
    """Return the first losses of a run by `recipe`, and end it there."""
    losses: list[float] = []

    def is_enough(step: Step) -> bool:
        losses.append(step.loss)
        return len(losses) == steps

    pretrain(method, train, recipe, seed=0, device=device, on_step=is_enough)
    return np.array(losses[:steps])


def _relative(losses: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the relative deviation; a loss may become zero."""
    deviation: np.ndarray = np.abs(losses - others) / np.maximum(np.abs(others), SMALLEST)
    return deviation


def _seeded(make: Callable[[int], Method], shape: Shape) -> Method:
    with seeded_weights(0):
        return make(shape.n_channels)


def _nudged(method: Method) -> Method:
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter.mul_(1 + ROUNDING * torch.randn(parameter.shape, generator=noise))
    return method
