"""python -m benchmarks.suggestions [--sets A,B] [--rules "random;suggest"] [--table]: is a suggested label worth more?

Cases of a data set's training part are labelled in rounds of at most ten, chosen by a rule, until there are 2, 5 and 10
labels per class in all. Then a FewLabelClassifier of all training cases and these labels is scored on the test part.
A rule does not know the classes, so it may miss one; with one class known, that class is the answer for all. The
embedding is the calibrated control with the bank, which needs no training. Rows go to a file as they are done; a run
that was killed goes on. With --table the file is shown: mean accuracy and classes found in percent, over the sets that
all rules have, the sets on which a rule is above random choice, and the p-value of a Wilcoxon test over sets.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances

from bench.datasets.names import DEVELOPMENT
from bench.report.stats import wilcoxon_pair
from dicot import FewLabelClassifier, TimeSeriesEmbedder, load, suggest
from dicot.model.fewlabels import StandardScale
from dicot.use.labels.suggestion import typical, uncertain

# The development sets of the UCR archive with at least 20 training cases per class, so that 10 labels per class are a
# choice, and at most 1,000 cases and 900 time steps, so that all of them take minutes.
SETS = [
    "AllGestureWiimoteX",
    "DistalPhalanxOutlineAgeGroup",
    "DistalPhalanxTW",
    "Earthquakes",
    "GesturePebbleZ1",
    "GunPointAgeSpan",
    "InsectEPGRegularTrain",
    "InsectWingbeatSound",
    "ItalyPowerDemand",
    "LargeKitchenAppliances",
    "Meat",
    "MiddlePhalanxOutlineCorrect",
    "ProximalPhalanxOutlineAgeGroup",
    "SmallKitchenAppliances",
    "SmoothSubspace",
    "Strawberry",
    "Trace",
    "UWaveGestureLibraryZ",
    "Wafer",
    "Worms",
]
BUDGETS = (2, 5, 10)  # labels per class, in all
ROUND = 10
SEEDS = 5

Array = NDArray[Any]
Rows = NDArray[np.intp]
# Cases (N, F), their class numbers or -1, how many to choose, and a seed -> rows
Rule = Callable[[Array, Rows, int, int], Rows]


def draw(x: Array, numbers: Rows, k: int, seed: int) -> Rows:
    """Any cases: what everybody does without a rule."""
    return np.random.default_rng(seed).choice(np.flatnonzero(numbers < 0), k, replace=False)


def ours(x: Array, numbers: Rows, k: int, seed: int) -> Rows:
    return suggest(x, numbers, k, random_state=seed)


def coverage_only(x: Array, numbers: Rows, k: int, seed: int) -> Rows:
    """The coverage of `suggest`, for any number of labels."""
    return typical(StandardScale(x)(x), np.flatnonzero(numbers >= 0), k, np.random.RandomState(seed))


def uncertainty_soon(x: Array, numbers: Rows, k: int, seed: int) -> Rows:
    """The uncertainty of `suggest` as soon as two classes are known."""
    if len(np.unique(numbers[numbers >= 0])) < 2:
        return coverage_only(x, numbers, k, seed)
    return uncertain(x, StandardScale(x)(x), numbers, k, np.random.RandomState(seed))


def farthest(x: Array, numbers: Rows, k: int, seed: int) -> Rows:
    """k-centre: always the case that is farthest from all chosen ones, first the one nearest to the mean."""
    return _one_by_one(x, numbers, k, lambda gaps, free: int(np.where(free, gaps, -1.0).argmax()))


def plus_plus(x: Array, numbers: Rows, k: int, seed: int) -> Rows:
    """Draw with a probability that grows with the squared distance from all chosen cases, as k-means++ begins."""
    rng = np.random.default_rng(seed)

    def pick(gaps: Array, free: Array) -> int:
        weights = np.where(free, np.square(gaps), 0.0)
        weights = weights if weights.any() else free.astype(float)
        return int(rng.choice(len(gaps), p=weights / weights.sum()))

    return _one_by_one(x, numbers, k, pick)


def facility(x: Array, numbers: Rows, k: int, seed: int) -> Rows:
    """Always the case that lessens the sum of all distances to the nearest chosen case most."""
    z = StandardScale(x)(x)
    away = pairwise_distances(z)
    return _one_by_one(x, numbers, k, lambda gaps, free: _gain(gaps, free, away))


def _gain(gaps: Array, free: Array, away: Array) -> int:
    gains = np.maximum(gaps[:, None] - away, 0).sum(axis=0)
    return int(np.where(free, gains, -1.0).argmax())


def _one_by_one(x: Array, numbers: Rows, k: int, pick: Callable[[Array, Array], int]) -> Rows:
    """Choose by the distance from each case to the nearest one that has a label or is chosen, updated each time."""
    z = StandardScale(x)(x)
    free = numbers < 0
    chosen: list[int] = []
    if free.all():
        chosen.append(int(np.square(z).sum(axis=1).argmin()))
    nearest = pairwise_distances(z, z[~free] if not free.all() else z[chosen]).min(axis=1)
    free[chosen] = False
    while len(chosen) < k:
        row = pick(nearest, free)
        chosen.append(row)
        free[row] = False
        nearest = np.minimum(nearest, pairwise_distances(z, z[[row]])[:, 0])
    return np.array(chosen)


def centres(x: Array, numbers: Rows, k: int, seed: int) -> Rows:
    """As the coverage of `suggest`, but the case nearest to its cluster's centre instead of the most typical one."""
    z = StandardScale(x)(x)
    free = numbers < 0
    model = KMeans(min(len(z), np.count_nonzero(~free) + k), n_init=3, random_state=seed).fit(z)
    away = np.linalg.norm(z - model.cluster_centers_[model.labels_], axis=1)
    labels = np.bincount(model.labels_[~free], minlength=model.n_clusters)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    chosen: list[int] = []
    while len(chosen) < k:
        left = np.bincount(model.labels_[free], minlength=model.n_clusters)
        best = np.lexsort((-sizes, np.where(left > 0, labels, len(z))))[0]
        row = int(np.where(free & (model.labels_ == best), away, np.inf).argmin())
        chosen.append(row)
        free[row] = False
        labels[best] += 1
    return np.array(chosen)


RULES: dict[str, Rule] = {
    "random": draw,
    "suggest": ours,
    "coverage only": coverage_only,
    "uncertainty soon": uncertainty_soon,
    "cluster centres": centres,
    "facility location": facility,
    "k-means++": plus_plus,
    "farthest first": farthest,
}


def grow(rule: Rule, x: Array, y: Rows, budgets: Sequence[int], seed: int) -> Iterator[Rows]:
    """Label in rounds, and yield the labelled rows at each budget; y (N,) holds the class numbers of all cases."""
    known = np.empty(0, dtype=np.intp)
    for budget in budgets:
        while len(known) < budget:
            numbers = np.full(len(x), -1, dtype=np.intp)
            numbers[known] = y[known]
            more = rule(x, numbers, min(ROUND, budget - len(known)), 1000 * seed + len(known))
            known = np.concatenate([known, more])
        yield known


def accuracy(x: Array, y: Rows, test: Array, truth: Rows, known: Rows) -> float:
    """Return the percentage of test cases that get their label."""
    if len(np.unique(y[known])) < 2:
        return 100 * float(np.mean(truth == y[known[0]]))
    numbers = np.full(len(x), -1, dtype=np.intp)
    numbers[known] = y[known]
    return 100 * float(np.mean(FewLabelClassifier().fit(x, numbers).predict(test) == truth))


def embedded(name: str) -> tuple[Array, Rows, Array, Rows]:
    """Return embeddings and class numbers of the training cases, and of the test cases."""
    split = load(name)
    assert split.test is not None and split.train.y is not None and split.test.y is not None
    model = TimeSeriesEmbedder(
        "calibrated",
        preset="paper",
        features={"bank": 2016, "n_components": 256},
        dim=32,
        device="cpu",
        random_state=0,
        verbose=False,
    ).fit(split.train)
    classes, y = np.unique(split.train.y, return_inverse=True)
    x, test = (np.asarray(model.transform(part)) for part in (split.train, split.test))
    return x, y, test, np.searchsorted(classes, split.test.y)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(sets: Sequence[str], rules: Sequence[str], seeds: int, out: Path) -> None:
    """Run what the file lacks, and append each rule and seed as it is done."""
    done = {(row["set"], row["rule"], row["seed"]) for row in read(out)}
    out.parent.mkdir(parents=True, exist_ok=True)
    for name in sets:
        todo = [(rule, seed) for rule in rules for seed in range(seeds) if (name, rule, seed) not in done]
        if not todo:
            continue
        x, y, test, truth = embedded(name)
        n_classes = int(y.max()) + 1
        for rule, seed in todo:
            labelled = grow(RULES[rule], x, y, [n_classes * budget for budget in BUDGETS], seed)
            scores = {}
            for budget, known in zip(BUDGETS, labelled, strict=True):
                found = 100 * len(np.unique(y[known])) / n_classes
                scores[str(budget)] = [accuracy(x, y, test, truth, known), found]
            with out.open("a") as file:
                file.write(json.dumps({"set": name, "rule": rule, "seed": seed, "scores": scores}) + "\n")
        print(f"{name}: {len(x)} cases, {n_classes} classes, {len(todo)} runs", flush=True)


def table(path: Path) -> None:
    """Print the mean over the sets that every rule has."""
    scores: dict[tuple[str, str], dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for row in read(path):
        for budget, pair in row["scores"].items():
            scores[row["rule"], budget][row["set"]].append(pair)
    rules = [rule for rule in RULES if (rule, str(BUDGETS[0])) in scores]
    common = sorted(set.intersection(*(set(scores[rule, str(BUDGETS[0])]) for rule in rules)))
    print(f"{len(common)} sets: {', '.join(common)}\n")
    titles = [f"{budget} labels per class" for budget in BUDGETS]
    print(f"{'':20}" + "".join(f"{title:>34}" for title in titles))
    print(f"{'':20}" + f"{'accuracy':>14}{'found':>7}{'above':>6}{'p':>7}" * len(BUDGETS))
    for rule in rules:
        line = f"{rule:20}"
        for budget in map(str, BUDGETS):
            means, usual = (
                np.array([np.mean(scores[one, budget][name], axis=0) for name in common]) for one in (rule, "random")
            )
            above = np.count_nonzero(means[:, 0] > usual[:, 0])
            p = wilcoxon_pair(means[:, 0], usual[:, 0])
            line += f"{means[:, 0].mean():14.2f}{means[:, 1].mean():7.1f}{above:6}{p:7.3f}"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=SETS)
    parser.add_argument("--rules", type=lambda text: text.split(";"), default=list(RULES))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=Path("out/suggestions.jsonl"))
    parser.add_argument("--table", action="store_true", help="show what the file has instead of running anything")
    options = parser.parse_args()
    for what, given, allowed in (("set", options.sets, DEVELOPMENT), ("rule", options.rules, RULES)):
        if wrong := [name for name in given if name not in allowed]:
            parser.error(f"{wrong[0]!r} is no {what} of {', '.join(allowed)}")
    if not options.table:
        run(options.sets, options.rules, options.seeds, options.out)
    table(options.out)


if __name__ == "__main__":
    main()
