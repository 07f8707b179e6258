"""python -m benchmarks.outliers [SET ...] [--contenders raw-flat,best] [--steps 200] [--dim 64]: outliers by embedding.

For every data set, contender and seed: embeddings are fitted on a reference part of the normal training cases, the rest
of these calibrates an EmbeddingOutlierDetector, and all test cases are scored. Printed are the average precision of the
outliers (chance is their share), and at alpha = 0.05 the share of normal test cases that are flagged, false alarms, and
of outliers that are, found. "paper" is Di-COT as its paper trains it, "best" the preset of that name, "calibrated" and
"calibrated best" are both without training. With --choose, ways to measure a distance are compared instead, on other
development sets.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

from bench.datasets.standins import ARRHYTHMIA, TEST_RECORDS, TRAIN_RECORDS
from benchmarks.arguments import some_of
from dicot import EmbeddingOutlierDetector, TimeSeriesEmbedder, load
from dicot.core.errors import how_to_install
from dicot.data.npyfile import load_npz
from dicot.judge.classical import CLASSICAL

ALPHA, HELD_OUT = 0.05, 0.3

# The rarest class of each is the outliers. Of the development sets with 100 other training cases and ten test cases of
# that class: two where it is abnormal by nature, wafers with a fault (11 % of the test cases) and large earthquakes
# after a quiet time (25 %); and the set where it is rarest, bones of the youngest children (8 %).
RARE = ("Wafer", "Earthquakes", "ProximalPhalanxOutlineAgeGroup")
BEATS = "mitbih-beats"

# What a distance may be chosen on: development sets that are not in the table above.
CHOICE = (
    "Crop",
    "DistalPhalanxOutlineAgeGroup",
    "DistalPhalanxTW",
    "FordA",
    "GunPointAgeSpan",
    "InsectWingbeatSound",
    "ItalyPowerDemand",
    "LargeKitchenAppliances",
    "MiddlePhalanxOutlineCorrect",
    "Plane",
    "SmallKitchenAppliances",
    "SmoothSubspace",
    "Strawberry",
    "Trace",
    "UWaveGestureLibraryZ",
)
LEAST_NORMAL, MOST_TRAIN, MOST_TEST = 30, 400, 300  # cases of a task to choose on

# AAMI's classes: beats from the sinus node with or without a bundle branch block, and ventricular ones.
NORMAL_BEATS, VENTRICULAR = ("N", "L", "R", "e", "j"), ("V", "E")
BEFORE, AFTER = 90, 162  # time steps around the peak at 360 Hz: 0.25 s and 0.45 s
LEAD = 0  # the same electrodes in all records; the second lead's differ

TRAINED = {"paper": {"preset": "paper"}, "best": {"preset": "best"}}
UNTRAINED = {"calibrated": {"preset": "paper"}, "calibrated best": {"preset": "best"}}  # the controls of both
CONTENDERS = ("raw-flat", "minirocket", *UNTRAINED, *TRAINED)


@dataclass(frozen=True, eq=False)
class Task:
    """Normal cases to learn from, with the groups they belong to if any, and test cases of which some are outliers."""

    name: str
    family: str
    normal: Any  # (N, C, T)
    groups: Any
    test: Any
    outlier: Any  # (M,) of booleans


@dataclass(frozen=True, eq=False)
class Labelled:
    """Cases with their labels."""

    x: Any
    y: Any


def parts_of(name: str) -> tuple[Labelled, Labelled]:
    split = load(name)
    assert split.test is not None
    return Labelled(split.train.x, split.train.y), Labelled(split.test.x, split.test.y)


def rare_class(name: str) -> Task:
    """Return a data set whose rarest class is the outliers, none of which is left in the training part."""
    train, test = parts_of(name)
    labels, counts = np.unique(train.y, return_counts=True)
    odd = labels[counts.argmin()]
    return Task(name, "ucr", train.x[train.y != odd], None, test.x, test.y == odd)


def heart_beats(most: int) -> Task:
    """Return ventricular beats among normal ones of other people than those to learn from; each beat is scaled.

    At most so many normal beats of a record, drawn once; 201 and 202, of one person, are both in the test part.
    """
    arrays = load_npz(ARRHYTHMIA.path())
    rng = np.random.default_rng(0)

    def beats(record: str, symbols: tuple[str, ...], limit: int | None) -> np.ndarray:
        signal = arrays[f"sig_{record}"][:, LEAD].astype(np.float32)
        peaks = arrays[f"ann_sample_{record}"][np.isin(arrays[f"ann_symbol_{record}"], symbols)]
        peaks = peaks[(peaks >= BEFORE) & (peaks + AFTER <= len(signal))]
        if limit is not None:
            peaks = np.sort(rng.permutation(peaks)[:limit])
        x = signal[peaks[:, None] + np.arange(-BEFORE, AFTER)]
        x = x - x.mean(axis=1, keepdims=True)
        scaled: np.ndarray = (x / np.maximum(x.std(axis=1, keepdims=True), 1e-6))[:, None]
        return scaled

    normal = [beats(record, NORMAL_BEATS, most) for record in TRAIN_RECORDS]
    test = [beats(record, NORMAL_BEATS, most) for record in TEST_RECORDS]
    odd = [beats(record, VENTRICULAR, None) for record in TEST_RECORDS]
    groups = np.repeat(TRAIN_RECORDS, [len(x) for x in normal])
    outlier = np.arange(sum(map(len, test + odd))) >= sum(map(len, test))
    return Task(BEATS, "large", np.concatenate(normal), groups, np.concatenate(test + odd), outlier)


def tasks_to_choose_on(name: str) -> Iterator[Task]:
    """Yield a data set twice: its rarest class as outliers of the others, and all others as those of its largest.

    Cases are drawn, so that the outliers are at most a fifth of the test cases.
    """
    train, test = parts_of(name)
    labels, counts = np.unique(train.y, return_counts=True)
    choices = {"largest is normal": train.y == labels[counts.argmax()]}
    if len(labels) > 2:
        choices["rarest is odd"] = train.y != labels[counts.argmin()]
    for title, normal in choices.items():
        rng = np.random.default_rng(0)
        kept = rng.permutation(np.flatnonzero(normal))[:MOST_TRAIN]
        if len(kept) < LEAST_NORMAL:
            continue
        usual = np.isin(test.y, np.unique(train.y[normal]))
        inside = rng.permutation(np.flatnonzero(usual))[:MOST_TEST]
        outside = rng.permutation(np.flatnonzero(~usual))[: len(inside) // 4]
        rows = np.sort(np.concatenate([inside, outside]))
        yield Task(f"{name}, {title}", "ucr", train.x[np.sort(kept)], None, test.x[rows], ~usual[rows])


def held_out(task: Task, seed: int) -> np.ndarray:
    """Return which normal cases calibrate: whole groups where there are some."""
    kind = ShuffleSplit if task.groups is None else GroupShuffleSplit
    split = kind(1, test_size=HELD_OUT, random_state=seed)
    chosen = np.zeros(len(task.normal), dtype=bool)
    chosen[next(split.split(chosen, groups=task.groups))[1]] = True
    return chosen


def vectors(contender: str, task: Task, held: np.ndarray, seed: int, options: argparse.Namespace) -> list[np.ndarray]:
    """Return the vectors of normal and of test cases; what is fitted, is fitted without the cases held out."""
    fitted_on = np.asarray(task.normal[~held], np.float32)
    if contender in CLASSICAL:
        classical = CLASSICAL[contender](random_state=seed).fit(fitted_on)
        return [np.asarray(classical.transform(np.asarray(x, np.float32))) for x in (task.normal, task.test)]
    preset = (TRAINED | UNTRAINED)[contender]["preset"]
    model = TimeSeriesEmbedder(
        "calibrated" if contender in UNTRAINED else None,
        preset=preset,
        family=task.family,
        dim=options.dim,
        steps=None if contender in UNTRAINED else options.steps,
        random_state=seed,
        device=options.device,
        verbose=False,
    ).fit(fitted_on)
    return [np.asarray(model.transform(x)) for x in (task.normal, task.test)]


def can_run(contenders: list[str]) -> list[str]:
    """Leave out MiniRocket with a sentence where its package is missing."""
    if "minirocket" not in contenders or find_spec("aeon") is not None:
        return contenders
    print(f"minirocket is left out, because aeon is not installed. {how_to_install('aeon')}\n", flush=True)
    return [contender for contender in contenders if contender != "minirocket"]


def compare(options: argparse.Namespace) -> None:
    """Print one line for every data set and contender: means over seeds, and the deviation of the precision."""
    print(
        "| set | contender | average precision | false alarms | found | seconds |\n|---|---|---|---|---|---|",
        flush=True,
    )
    for name in options.sets:
        task = heart_beats(options.beats) if name == BEATS else rare_class(name)
        sizes = f"{len(task.normal)} normal training cases, {len(task.test)} test cases"
        print(f"| {name} | chance ({sizes}) | {100 * task.outlier.mean():.1f} | | | |", flush=True)
        for contender in options.contenders:
            started, rows = time.perf_counter(), []
            for seed in options.seeds:
                held = held_out(task, seed)
                known, new = vectors(contender, task, held, seed, options)
                model = EmbeddingOutlierDetector(alpha=ALPHA).fit(known, groups=task.groups, held_out=held)
                flagged = model.predict(new) == -1
                precision = average_precision_score(task.outlier, -model.score_samples(new))
                rows.append([precision, flagged[~task.outlier].mean(), flagged[task.outlier].mean()])
            (precision, alarms, found), spread = 100 * np.mean(rows, axis=0), 100 * np.std(rows, axis=0)[0]
            seconds = time.perf_counter() - started
            score = f"{precision:.1f} ± {spread:.1f}" if len(rows) > 1 else f"{precision:.1f}"
            cells = [name, contender, score, f"{alarms:.1f}", f"{found:.1f}", f"{seconds:.0f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


def by_neighbours(**settings: Any) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    def score(known: np.ndarray, held: np.ndarray, new: np.ndarray) -> np.ndarray:
        detector = EmbeddingOutlierDetector(alpha=0.5, **settings).fit(known, held_out=held)
        return np.asarray(-detector.score_samples(new))

    return score


def mahalanobis(share: float) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """Distance to the mean in the principal components that hold this share of the variance, each scaled to 1."""

    def score(known: np.ndarray, held: np.ndarray, new: np.ndarray) -> np.ndarray:
        reference = known[~held].astype(np.float64)
        pca = PCA(share, whiten=True, svd_solver="full").fit(reference)
        return np.asarray(np.linalg.norm(pca.transform(new.astype(np.float64)), axis=1))

    return score


WAYS = {
    **{
        f"{distance}, {k} neighbours": by_neighbours(distance=distance, n_neighbors=k)
        for distance in ("kth", "mean", "relative")
        for k in (1, 3, 5, 10)
        if k > 1 or distance != "mean"  # with one neighbour the same as "kth"
    },
    "mean, 5 neighbours, not standardised": by_neighbours(distance="mean", n_neighbors=5, standardise=False),
    "mean, 5 neighbours, cosine": by_neighbours(distance="mean", n_neighbors=5, metric="cosine"),
    "relative, 5 neighbours, not standardised": by_neighbours(distance="relative", n_neighbors=5, standardise=False),
    "relative, 5 neighbours, cosine": by_neighbours(distance="relative", n_neighbors=5, metric="cosine"),
    "Mahalanobis, 90 % of the variance": mahalanobis(0.9),
    "Mahalanobis, 99 % of the variance": mahalanobis(0.99),
}


def choose(options: argparse.Namespace) -> None:
    """Print the average precision of every way to measure a distance, by contender: means over tasks and seeds."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for task in (task for name in CHOICE for task in tasks_to_choose_on(name)):
        for contender in options.contenders:
            for seed in options.seeds:
                held = held_out(task, seed)
                known, new = vectors(contender, task, held, seed, options)
                for way, score in WAYS.items():
                    precision = average_precision_score(task.outlier, score(known, held, new))
                    found[way, contender].append(100 * float(precision))
        print(
            f"{task.name}: {len(task.normal)} normal, {len(task.test)} test, {task.outlier.mean():.0%} odd", flush=True
        )
    print("\n| way | " + " | ".join(options.contenders) + " | mean |\n" + "|---" * (len(options.contenders) + 2) + "|")
    for way in WAYS:
        means = [float(np.mean(found[way, contender])) for contender in options.contenders]
        print(f"| {way} | " + " | ".join(f"{mean:.1f}" for mean in [*means, float(np.mean(means))]) + " |")


def main() -> None:
    known_sets = (*RARE, BEATS)

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(known_sets), metavar="SET", help=", ".join(known_sets))
    parser.add_argument("--contenders", type=some_of(CONTENDERS), help=f"some of {', '.join(CONTENDERS)}")
    parser.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--steps", type=int, help="of training; the preset's without it")
    parser.add_argument("--dim", type=int, default=256, help="features of the encoder")
    parser.add_argument("--beats", type=int, default=300, help="normal ones of a record")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--choose", action="store_true", help="compare ways to measure a distance")
    options = parser.parse_args()
    unknown = set(options.sets) - set(known_sets)
    if unknown:
        parser.error(f"unknown set {sorted(unknown)[0]!r}; known: {', '.join(known_sets)}")
    if torch.get_num_threads() > 1 and not torch.cuda.is_available():
        torch.set_num_threads(1)
    usual = ["raw-flat", "minirocket", "calibrated"] if options.choose else list(CONTENDERS)
    options.contenders = can_run(options.contenders or usual)
    (choose if options.choose else compare)(options)


if __name__ == "__main__":
    main()
