"""Are the numbers still right? Losses and accuracy beside eager float32 through the encoder's definition.

Training is chaotic: AdamW's first updates are nearly the sign of the gradient, and the sign of a gradient near zero is
decided by rounding. Weights that differ by 1e-7 end in losses that differ by percents fifty steps later, whichever way
they are trained. So two things are asked: the first ten losses agree closely, which a wrong gradient would not allow,
and over all steps the deviation stays on average within what chaos does. What it does is measured beside it.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from benchmarks.timing.reference import Definition, plain_pretrain
from benchmarks.timing.sections import Row, Section
from benchmarks.timing.shapes import Shape
from benchmarks.timing.turns import dicot
from dicot.core.device import float32_arithmetic, resolve_device
from dicot.core.errors import InputError
from dicot.core.progress import Bar
from dicot.data import Split, Windows
from dicot.data.datasets import load
from dicot.judge.protocols import PROTOCOLS, Features
from dicot.methods import Method
from dicot.methods.dicot import DiCOT
from dicot.model.embedding import embed
from dicot.model.fitting import seeded_weights
from dicot.nets.encoders import Encoder, InceptionTime
from dicot.train import Recipe, Step, paper_recipe, pretrain

SMALLEST = 1e-6  # losses below this differ in nothing that counts
EARLY = 10  # steps
ROUNDING = 1e-7  # relative change of the weights that shows what chaos alone does

DATA = "OSULeaf"
SEEDS = (1, 2, 3)
Way = Callable[[Split, int, str, int, Callable[[int], None]], float]  # data, seed, device, steps, on step -> percent


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


def first_losses(method: Method, train: Windows, recipe: Recipe, steps: int, device: str) -> np.ndarray:
    """Return the first losses of a run by `recipe`, and end it there."""
    losses: list[float] = []

    def look(step: Step) -> bool:
        losses.append(step.loss)
        return len(losses) == steps

    pretrain(method, train, recipe, seed=0, device=device, on_step=look)
    return np.array(losses[:steps])


def check_losses(
    shape: Shape, precision: str, steps: int, device: str, make: Callable[[int], Method] = dicot
) -> Agreement:
    """Compare the first steps of the paper's run, ours (`make`) and the reference's, with the same seed and plans."""
    train, recipe = shape.windows(), shape.recipe(precision)
    steps = min(steps, recipe.steps)
    ours = first_losses(_seeded(make, shape), train, recipe, steps, device)
    nudged = first_losses(_nudged(_seeded(make, shape)), train, recipe, steps, device)
    method = _seeded(lambda n_channels: DiCOT(Definition(n_channels)), shape)
    with float32_arithmetic(resolve_device(device)):
        losses, _ = plain_pretrain(method, train, recipe, seed=0, device=device, steps=steps)
    exact = np.array(losses)
    apart, chaos = _relative(ours, exact), _relative(nudged, ours)
    return Agreement(steps, float(apart[:EARLY].max()), float(apart.mean()), float(chaos.mean()), TOLERANCES[precision])


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


def accuracy_section(
    precisions: Sequence[str], device: str, data: str = DATA, seeds: Sequence[int] = SEEDS, steps: int | None = None
) -> Section:
    """Probe the paper's run with each seed, by ours in each precision and by the plain loop in float32."""
    split = load(data)
    ways: dict[str, Way] = {f"ours, {precision}": partial(_ours, precision) for precision in precisions}
    ways["plain, float32"] = _plain
    rows: list[Row] = []
    length = paper_recipe(split.family, len(split.train), split.train.n_times).steps if steps is None else steps
    with Bar("accuracy", len(ways) * len(seeds) * length) as bar:
        for row, (name, way) in enumerate(ways.items()):
            scores = []
            for number, seed in enumerate(seeds):
                before = (row * len(seeds) + number) * length
                scores.append(way(split, seed, device, length, lambda done, before=before: bar.update(before + done)))  # type: ignore[misc]
            spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
            rows.append((name, (*scores, statistics.fmean(scores), spread)))
    columns = ("trained by", *(f"seed {seed}" for seed in seeds), "mean", "standard deviation")
    note = f"{split.name}, Di-COT, {length} steps: accuracy of a linear probe on the test cases in percent."
    return Section("accuracy", "Accuracy", columns, tuple(rows), note)


def _ours(precision: str, split: Split, seed: int, device: str, steps: int, tick: Callable[[int], None]) -> float:
    recipe = _recipe(split, precision, steps)
    with seeded_weights(seed):
        encoder = InceptionTime(split.train.n_channels)
    method = DiCOT(encoder, **DiCOT.paper_params(split.family))
    pretrain(method, split.train, recipe, seed=seed, device=device, on_step=lambda step: tick(step.number))
    return _score(encoder, split, seed, device)


def _plain(split: Split, seed: int, device: str, steps: int, tick: Callable[[int], None]) -> float:
    recipe = _recipe(split, "float32", steps)
    with seeded_weights(seed):
        encoder = Definition(split.train.n_channels)
    method = DiCOT(encoder, **DiCOT.paper_params(split.family))
    with float32_arithmetic(resolve_device(device)):
        plain_pretrain(method, split.train, recipe, seed=seed, device=device, on_step=tick)
    return _score(encoder, split, seed, device)


def _recipe(split: Split, precision: str, steps: int) -> Recipe:
    recipe = paper_recipe(split.family, len(split.train), split.train.n_times)
    return replace(recipe, precision=precision, steps=steps)


def _score(encoder: Encoder, split: Split, seed: int, device: str) -> float:
    train, test = (_features(encoder, part, device) for part in (split.train, split.test))
    return PROTOCOLS["linear"]().score(train, test, seed=seed)["accuracy"]


def _features(encoder: Encoder, part: Windows | None, device: str) -> Features:
    if part is None or part.y is None:
        raise InputError("Accuracy needs a training and a test part with labels. Take another data set.")
    return Features(embed(encoder, part.x, device=device), part.y)
