"""What every protocol promises, as functions of a registry entry."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.judge.protocols import Features, Protocol, find_metric

Make = Callable[[], Protocol]


def overlapping(n: int, seed: int, k: int = 3, f: int = 4) -> Features:
    """Draw k classes that no protocol tells apart entirely."""
    y = np.arange(n) % k
    return Features(np.random.default_rng(seed).normal(size=(n, f)) + y[:, None], y)


def far_apart(n: int, seed: int, *, wrong: bool = False) -> Features:
    """Draw three groups that any protocol finds from a few cases; with `wrong` every fifth label is of another."""
    group = np.arange(n) % 3
    x = 50 * np.eye(3)[group] + np.random.default_rng(seed).normal(size=(n, 3))
    return Features(x, np.where(wrong & (np.arange(n) % 5 == 0), (group + 1) % 3, group))


def shuffled(features: Features, seed: int) -> Features:
    """Return the same cases in another order."""
    return features.rows(np.random.default_rng(seed).permutation(len(features.y)))


def check_description(make: Make) -> None:
    """One line says what it is."""
    assert make().description.strip()
    assert "\n" not in make().description


def check_metrics(make: Make) -> None:
    """It gives exactly the metrics that it declares, as finite floats; a metric's name means the same everywhere."""
    protocol = make()
    scores = protocol.score(overlapping(60, 1), overlapping(45, 2), seed=7)
    assert tuple(scores) == tuple(metric.name for metric in protocol.metrics)
    assert all(type(value) is float and math.isfinite(value) for value in scores.values())
    for metric in protocol.metrics:
        assert find_metric(metric.name) == metric


def check_repeatable(make: Make) -> None:
    """The same seed gives the same numbers, also from another object."""
    train, test = overlapping(60, 1), overlapping(45, 2)
    assert make().score(train, test, seed=7) == make().score(train, test, seed=7)


def check_draws(make: Make) -> None:
    """The score is the mean over draws."""
    train, test = overlapping(60, 1), overlapping(45, 2)
    draws = make().score_draws(train, test, seed=7)
    for name, value in make().score(train, test, seed=7).items():
        assert value == pytest.approx(np.mean([draw[name] for draw in draws]))


def check_order(make: Make) -> None:
    """The order of the cases plays no part; each keeps its own label."""
    train, test = far_apart(900, 1), far_apart(45, 2, wrong=True)  # 1 % of them are enough for a forest
    scores = make().score(train, test, seed=7)
    assert make().score(shuffled(train, 3), shuffled(test, 4), seed=7) == pytest.approx(scores)
    assert scores != pytest.approx(make().score(train, Features(test.x, np.sort(test.y)), seed=7))


def check_label_names(make: Make) -> None:
    """Labels that are strings give the numbers of integers in the same order."""
    train, test = overlapping(60, 1), overlapping(45, 2)
    names = np.array(["cycle", "run", "walk"])
    named = (Features(part.x, names[part.y]) for part in (train, test))
    assert make().score(*named, seed=7) == pytest.approx(make().score(train, test, seed=7))


def check_inputs_untouched(make: Make) -> None:
    """Embeddings and labels are left as they were."""
    train, test = overlapping(60, 1), overlapping(45, 2)
    before = [array.copy() for part in (train, test) for array in (part.x, part.y)]
    make().score(train, test, seed=7)
    after = [array for part in (train, test) for array in (part.x, part.y)]
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def check_one_class(make: Make) -> None:
    """A single class is refused with its name, or every score would be perfect."""
    one = Features(np.random.default_rng(0).normal(size=(20, 4)), np.array(["walk"] * 20))
    with pytest.raises(InputError, match="walk"):
        make().score(one, one, seed=1)


CHECKS = (
    check_description,
    check_metrics,
    check_repeatable,
    check_draws,
    check_order,
    check_label_names,
    check_inputs_untouched,
    check_one_class,
)
