"""Di-COT on every archive set on this machine: `pretrain_many` beside what the plain loop would take."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.timing.plain import plain_seconds
from benchmarks.timing.sections import Section
from benchmarks.timing.shapes import N_CASES
from benchmarks.timing.turns import counts, fresh_start
from dicot.core.errors import DicotError
from dicot.core.progress import Bar
from dicot.data import Windows
from dicot.data.datasets import load, on_hand
from dicot.methods.dicot import DiCOT
from dicot.model.fitting import seeded_weights
from dicot.nets.encoders import InceptionTime
from dicot.train import Recipe, TrainingRun, paper_recipe, pretrain_many

FAMILIES = ("ucr", "uea")
LENGTHS = 8  # lengths at which the plain loop is timed; in between its cost is taken as linear
WARM_UP, STEPS = 5, 15
ROUNDS = 2  # of which the faster counts: a busy moment would speak for us


@dataclass(frozen=True)
class ArchiveRun:
    """A data set and the recipe that Di-COT is trained with on it."""

    name: str
    train: Windows
    recipe: Recipe
    family: str | None = None


def archive_runs(precision: str) -> tuple[list[ArchiveRun], list[str]]:
    """List the archive sets with the paper's recipe, and the names of those that cannot be loaded."""
    runs, refused = [], []
    for card in on_hand().cards:
        if card.family not in FAMILIES:
            continue
        try:
            train = load(card.name).train
        except DicotError:
            refused.append(card.name)
            continue
        recipe = paper_recipe(card.family, len(train), train.n_times)
        runs.append(ArchiveRun(card.name, train, replace(recipe, precision=precision), card.family))
    return runs, refused


def archive_sections(
    precision: str,
    device: str,
    chosen: Sequence[ArchiveRun] | None = None,
    *,
    warm_up: int = WARM_UP,
    timed: int = STEPS,
) -> Iterator[Section]:
    """Measure the total wall clock, and the plain loop's seconds per step that it is compared with."""
    sets, refused = archive_runs(precision) if chosen is None else (list(chosen), [])
    lengths = sorted({entry.train.n_times for entry in sets})
    picked = sorted({lengths[round(i)] for i in np.linspace(0, len(lengths) - 1, LENGTHS)})
    rounds = [[_plain(n_times, device, warm_up, timed) for n_times in picked] for _ in range(ROUNDS)]
    plain = [min(seconds) for seconds in zip(*rounds, strict=True)]
    steps = sum(entry.recipe.steps for entry in sets)
    expected = sum(entry.recipe.steps * float(np.interp(entry.train.n_times, picked, plain)) for entry in sets)
    ours = _ours(sets, device)
    without = f" Not loaded, because values are missing: {', '.join(refused)}." if refused else ""
    yield Section(
        "archive",
        f"Di-COT on all {len(sets)} archive sets at once",
        ("precision", "runs", "steps", "plain s", "ours s", "ratio"),
        ((precision, (str(len(sets)), str(steps), expected, ours, expected / ours)),),
        "Ours: wall clock of one call of pretrain_many with the paper's recipes, with all that is built on the way. "
        f"Plain: steps times ms per step of the table below, linear in between.{without}",
    )
    rows = tuple((f"8, {n_times}, 1", (1e3 * seconds,)) for n_times, seconds in zip(picked, plain, strict=True))
    yield Section(
        "archive-plain", "The plain loop on archive lengths", ("B, T, C", "plain ms"), rows, "The lower of two medians."
    )


def _plain(n_times: int, device: str, warm_up: int, timed: int) -> float:
    data = np.random.default_rng(0).standard_normal((N_CASES, 1, n_times), dtype=np.float32)
    fresh_start(device)
    return statistics.median(plain_seconds(data, 8, counts(0, warm_up + timed), device)[warm_up:])


def _ours(sets: Sequence[ArchiveRun], device: str) -> float:
    with seeded_weights(0):
        runs = [
            TrainingRun(DiCOT(InceptionTime(entry.train.n_channels), **DiCOT.paper_params(entry.family)),
                        entry.train, entry.recipe, seed=0)
            for entry in sets
        ]  # fmt: skip
    fresh_start(device)
    ended = 0
    started = time.perf_counter()
    with Bar("archive", len(runs)) as bar:

        def end(number: int, _: object) -> None:
            nonlocal ended
            ended += 1
            bar.update(ended, sets[number].name)

        pretrain_many(runs, device=device, on_run=end)
    return time.perf_counter() - started
