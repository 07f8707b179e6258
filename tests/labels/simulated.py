"""How often honest_accuracy's interval holds the truth, where cases are drawn and the truth is known.

Cases are drawn from overlapping Gaussian classes and some get labels: cases are drawn, or five of each class chosen.
The truth is the accuracy of a classifier of all these labels on the cases without one; with groups, each with a shift
of its own, on the groups without labels, which is what the number is then about.
"""

from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from dicot.use.labels import accuracy
from dicot.use.labels.accuracy import honest_accuracy

GROUP, GROUPS, FEATURES = 10, 60, 8
SHIFT = 0.7  # of a group, beside the deviation 1 of its cases


class Setting(NamedTuple):
    """How cases are drawn and labelled."""

    n_labelled: int
    n_groups: int = 0  # that have labels; 0: there are no groups
    distance: float = 1.5  # of the classes
    n_classes: int = 3
    by_class: int = 0  # labels of each class, chosen by hand; 0: cases, or groups, are drawn
    unequal: bool = False  # each class is half as frequent as the one before


class Means:
    """Takes the place of the classifier: a case is of the class whose mean is nearest. It is 100 times quicker."""

    def fit(self, x, y):
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        classes, counts = np.unique(y[y >= 0], return_counts=True)
        means = np.array([x[y == c].mean(axis=0) for c in classes])
        scores = np.log(counts) - 0.4 * np.square(x[:, None] - means).sum(axis=2)
        self.transduction_ = np.where(y >= 0, y, classes[scores.argmax(axis=1)])
        return self


def draw(setting, seed):
    """What honest_accuracy says about one draw, and the truth."""
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
    if setting.by_class:
        labelled = np.zeros(n_cases, bool)
        for kind in np.unique(truth):
            labelled[rng.permutation(np.flatnonzero((truth == kind) & possible))[: setting.by_class]] = True
    elif setting.n_groups:
        labelled = possible
    else:
        labelled = np.arange(n_cases) < setting.n_labelled

    y = np.where(labelled, truth, -1)
    groups = group if setting.n_groups else None
    told = honest_accuracy(x, y, groups, repeats=1, random_state=seed, suggested=bool(setting.by_class))
    asked = ~possible if setting.n_groups else ~labelled
    return told, np.mean(Means().fit(x, y).transduction_[asked] == truth[asked])


def coverage(setting, draws):
    """The share of draws whose interval holds the truth, mean width, mean estimate and mean truth."""
    with patch.object(accuracy, "FewLabelClassifier", Means):
        results = [draw(setting, seed) for seed in range(draws)]
    rows = [(told.low <= truth <= told.high, told.high - told.low, told.accuracy, truth) for told, truth in results]
    return np.nanmean(np.array(rows, float), axis=0).tolist()
