"""python -m benchmarks.intervals [--draws 200] [--means] [--hapt]: how often honest_accuracy's interval is right.

Cases are drawn from overlapping Gaussian classes and some get labels: cases are drawn, or five of each class chosen.
The truth is the accuracy of the classifier of all these labels on the cases without one; with groups, each with a shift
of its own, on the groups without labels, which is what the number is then about. The interval says 95 %. With --means
cases go to the nearest mean of a class instead of to a FewLabelClassifier: 100 times quicker, and less steady. With
--hapt the cases are 2,500 windows of HAPT's training part as simple statistics, with five labels of each class from 8
of its 21 people: asked about other windows of these (0 groups), and about the 13 other people.
"""

import argparse
from collections.abc import Iterable
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from dicot import FewLabelClassifier, load
from dicot.use.labels import accuracy
from dicot.use.labels.accuracy import HonestAccuracy, honest_accuracy


class Setting(NamedTuple):
    """How cases are drawn and labelled."""

    n_labelled: int
    n_groups: int = 0  # that have labels; 0: there are no groups
    distance: float = 1.5  # of the classes
    n_classes: int = 3
    by_class: int = 0  # labels of each class, chosen by hand; 0: cases, or groups, are drawn
    unequal: bool = False  # each class is half as frequent as the one before


KINDS = [(3, 1.0), (3, 2.5), (6, 2.5)]
SETTINGS = [Setting(10 * n, 0, d, n, 0, u) for u in (False, True) for n, d in KINDS]
SETTINGS += [Setting(10 * g, g, d, n, 0, u) for g in (6, 12) for u in (False, True) for n, d in KINDS]
SETTINGS += [Setting(5 * n, g, d, n, 5, u) for g in (0, 6, 12) for u in (False, True) for n, d in KINDS]
GROUP, GROUPS, FEATURES = 10, 60, 8
SHIFT = 0.7  # of a group, beside the deviation 1 of its cases

Told = tuple[HonestAccuracy, float]


class Means:
    """Takes the place of FewLabelClassifier: a case is of the class with the nearest mean, rather of a larger one."""

    def fit(self, x: Any, y: Any) -> "Means":
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        classes, counts = np.unique(y[y >= 0], return_counts=True)
        means = np.array([x[y == c].mean(axis=0) for c in classes])
        scores = np.log(counts) - 0.4 * np.square(x[:, None] - means).sum(axis=2)
        self.transduction_ = np.where(y >= 0, y, classes[scores.argmax(axis=1)])
        return self


def draw(setting: Setting, seed: int, repeats: int, kind: Any = FewLabelClassifier) -> Told:
    """Return what honest_accuracy says about one draw, and the truth."""
    rng = np.random.default_rng(seed)
    n_cases = GROUP * GROUPS
    shares = 0.5 ** np.arange(setting.n_classes) if setting.unequal else np.ones(setting.n_classes)
    truth = rng.choice(setting.n_classes, size=n_cases, p=shares / shares.sum())
    group = np.arange(n_cases) // GROUP
    x = rng.normal(size=(n_cases, FEATURES))
    x[:, : setting.n_classes] += setting.distance * np.eye(setting.n_classes)[truth]
    possible = np.ones(n_cases, bool)
    if setting.n_groups:
        x += SHIFT * rng.normal(size=(GROUPS, FEATURES))[group]
        possible = group < setting.n_groups
    known = some(truth, possible, setting.by_class, rng) if setting.by_class else possible
    if not setting.n_groups and not setting.by_class:
        known = np.arange(n_cases) < setting.n_labelled
    y = np.where(known, truth, -1)
    chosen = bool(setting.by_class)
    groups = group if setting.n_groups else None
    said = honest_accuracy(x, y, groups, repeats=repeats, random_state=seed, suggested=chosen)
    asked = ~possible if setting.n_groups else ~known
    return said, right(kind, x, y, truth, asked)


def some(truth: Any, possible: Any, count: int, rng: np.random.Generator) -> Any:
    """Choose so many possible cases of each class."""
    known = np.zeros(len(truth), bool)
    for kind in np.unique(truth):
        known[rng.permutation(np.flatnonzero((truth == kind) & possible))[:count]] = True
    return known


def right(kind: Any, x: Any, y: Any, truth: Any, asked: Any) -> float:
    return float(np.mean(kind().fit(x, y).transduction_[asked] == truth[asked]))


def coverage(setting: Setting, draws: int, repeats: int, means: bool = False) -> tuple[float, float, float, float]:
    """Return the share of draws whose interval holds the truth, and mean width, mean estimate and mean truth."""
    kind = Means if means else FewLabelClassifier
    with patch.object(accuracy, "FewLabelClassifier", kind):
        return summary(draw(setting, seed, repeats, kind) for seed in range(draws))


def summary(draws: Iterable[Told]) -> tuple[float, float, float, float]:
    rows = [(said.low <= truth <= said.high, said.high - said.low, said.accuracy, truth) for said, truth in draws]
    return tuple(np.nanmean(np.array(rows, float), axis=0).tolist())


def hapt(draws: int, repeats: int) -> tuple[list[Told], list[Told]]:
    """Return what is said of other windows of people who have labels, and of people who have none."""
    windows = load("hapt").train
    assert windows.y is not None and windows.group is not None
    rows = np.random.default_rng(0).permutation(len(windows.y))[:2500]
    values, truth, group = windows.x[rows], windows.y[rows], windows.group[rows]
    steps = np.abs(np.diff(values)).mean(axis=2)
    quantiles = np.quantile(values, [0, 0.25, 0.75, 1], axis=2)
    x = np.concatenate([values.mean(axis=2), values.std(axis=2), steps, *quantiles], axis=1)
    known_people: list[Told] = []
    new_people: list[Told] = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        possible = np.isin(group, rng.permutation(np.unique(group))[:8])
        y = np.where(some(truth, possible, 5, rng), truth, -1)
        for told, groups, asked in ((known_people, None, possible & (y < 0)), (new_people, group, ~possible)):
            said = honest_accuracy(x, y, groups, repeats=repeats, random_state=seed, suggested=True)
            told.append((said, right(FewLabelClassifier, x, y, truth, asked)))
    return known_people, new_people


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--means", action="store_true")
    parser.add_argument("--hapt", action="store_true")
    options = parser.parse_args()
    columns = (
        "labels",
        "groups",
        "distance",
        "classes",
        "by class",
        "unequal",
        "inside %",
        "width",
        "estimate",
        "truth",
    )
    print("".join(f"{column:>10}" for column in columns))

    def show(asked: Iterable[object], found: tuple[float, float, float, float]) -> None:
        numbers = "".join(f"{value:10.3f}" for value in found[1:])
        print("".join(f"{value!s:>10}" for value in asked) + f"{100 * found[0]:10.1f}{numbers}", flush=True)

    if options.hapt:
        for groups, told in zip((0, 8), hapt(options.draws, options.repeats), strict=True):
            show((60, groups, "", 12, 5, "HAPT"), summary(told))
        return
    for setting in SETTINGS:
        show(setting, coverage(setting, options.draws, options.repeats, options.means))


if __name__ == "__main__":
    main()
