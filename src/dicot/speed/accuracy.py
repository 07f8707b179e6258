"""Is the encoder that was trained fast as good? Linear-probe accuracy beside the one that was trained the plain way."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from dicot.data import Split, Windows
from dicot.datasets import load
from dicot.embedding import embed
from dicot.encoders import Encoder, InceptionTime
from dicot.errors import InputError
from dicot.fitting import seeded_weights
from dicot.gpu.device import float32_arithmetic, resolve_device
from dicot.methods.dicot import DiCOT
from dicot.progress import Bar
from dicot.protocols import PROTOCOLS
from dicot.protocols.base import Features
from dicot.speed.reference import Definition, plain_pretrain
from dicot.speed.sections import Section, Value
from dicot.train import Recipe, paper_recipe, pretrain

DATA = "OSULeaf"
SEEDS = (1, 2, 3)
Way = Callable[[Split, int, str, int, Callable[[int], None]], float]  # data, seed, device, steps, on step -> percent


def accuracy_section(
    precisions: Sequence[str], device: str, data: str = DATA, seeds: Sequence[int] = SEEDS, steps: int | None = None
) -> Section:
    """The paper's recipe with each seed, by ours in each precision and by the plain loop in float32."""
    split = load(data)
    ways: dict[str, Way] = {f"ours, {precision}": partial(_ours, precision) for precision in precisions}
    ways["plain, float32"] = _plain
    rows: list[tuple[str, tuple[Value, ...]]] = []
    length = paper_recipe(split.family, len(split.train), split.train.n_times).steps if steps is None else steps
    with Bar("accuracy", len(ways) * len(seeds) * length) as bar:
        for row, (name, way) in enumerate(ways.items()):
            found = []
            for number, seed in enumerate(seeds):
                before = (row * len(seeds) + number) * length
                found.append(way(split, seed, device, length, lambda done, before=before: bar.update(before + done)))  # type: ignore[misc]
            spread = statistics.stdev(found) if len(found) > 1 else 0.0
            rows.append((name, (*found, statistics.fmean(found), spread)))
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
