"""python -m benchmarks.intervals [--draws 200] [--repeats 1]: how often honest_accuracy's interval holds the truth.

Cases are drawn from overlapping Gaussian classes, some get labels, and the truth is the accuracy of the classifier of
all these labels on the cases without one; with groups, each with a shift of its own, on the groups without labels. The
interval says 95 %.
"""

import argparse
from typing import NamedTuple

import numpy as np

from dicot import FewLabelClassifier
from dicot.labels.accuracy import HonestAccuracy, honest_accuracy


class Setting(NamedTuple):
    """Labelled cases, and how many groups they come from (0: there are none); how far apart classes are; how many."""

    n_labelled: int
    n_groups: int = 0
    distance: float = 1.5
    n_classes: int = 3
    by_class: int = 0  # labels of each class, chosen by hand; 0: cases, or groups, are drawn


SETTINGS = [Setting(n, 0, d) for n in (15, 30, 60, 120) for d in (1.0, 2.5)]
SETTINGS += [Setting(10 * g, g, d) for g in (3, 6, 12) for d in (1.0, 2.5)]
SETTINGS += [Setting(5 * n, 0, d, n, 5) for n in (3, 6) for d in (1.0, 2.5)]
SETTINGS += [Setting(5 * n, g, 2.5, n, 5) for n in (3, 6) for g in (6, 12)]
GROUP, GROUPS, FEATURES = 10, 60, 8
SHIFT = 0.7  # of a group, beside the deviation 1 of its cases


def draw(setting: Setting, seed: int, repeats: int) -> tuple[HonestAccuracy, float]:
    """Return what honest_accuracy says about one draw, and the truth."""
    rng = np.random.default_rng(seed)
    n_cases = GROUP * GROUPS
    # Chosen by class, labels say nothing of how frequent a class is: let each be half as frequent as the one before.
    shares = 0.5 ** np.arange(setting.n_classes) if setting.by_class else np.ones(setting.n_classes)
    truth = rng.choice(setting.n_classes, size=n_cases, p=shares / shares.sum())
    group = np.arange(n_cases) // GROUP
    x = rng.normal(size=(n_cases, FEATURES))
    x[:, : setting.n_classes] += setting.distance * np.eye(setting.n_classes)[truth]
    if setting.n_groups:
        x += SHIFT * rng.normal(size=(GROUPS, FEATURES))[group]
        known = group < setting.n_groups
    else:
        known = np.arange(n_cases) < setting.n_labelled
    possible = known
    if setting.by_class:
        known = np.zeros(n_cases, bool)
        for kind in range(setting.n_classes):
            own = (truth == kind) & (possible if setting.n_groups else True)
            known[rng.permutation(np.flatnonzero(own))[: setting.by_class]] = True
    y = np.where(known, truth, -1)
    said = honest_accuracy(x, y, group if setting.n_groups else None, repeats=repeats, random_state=seed)
    answers = FewLabelClassifier().fit(x, y).transduction_
    asked = ~possible if setting.n_groups else ~known
    return said, float(np.mean(answers[asked] == truth[asked]))


def coverage(setting: Setting, draws: int, repeats: int) -> tuple[float, float, float, float]:
    """Return the share of draws whose interval holds the truth, and mean width, mean estimate and mean truth."""
    results = [draw(setting, seed, repeats) for seed in range(draws)]
    inside = [said.low <= truth <= said.high for said, truth in results]
    width = [said.high - said.low for said, _ in results]
    said, truth = [said.accuracy for said, _ in results], [truth for _, truth in results]
    return tuple(float(np.mean(values)) for values in (inside, width, said, truth))  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    columns = ("labels", "groups", "distance", "by class", "inside %", "width", "estimate", "truth")
    print("".join(f"{column:>10}" for column in columns))
    for setting in SETTINGS:
        inside, *rest = coverage(setting, options.draws, options.repeats)
        numbers = "".join(f"{value:10.3f}" for value in rest)
        asked = (setting.n_labelled, setting.n_groups, setting.distance, setting.by_class)
        print("".join(f"{value:10}" for value in asked) + f"{100 * inside:10.1f}{numbers}", flush=True)


if __name__ == "__main__":
    main()
