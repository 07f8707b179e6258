"""python -m benchmarks.events [sisfall hapt] [--outliers] [--choose] [--cache DIR]: events from a few examples.

Windows of 2.56 s every 1.28 s, embedded by the encoder that comes with dicot. SisFall: an event is a recording of a
fall; its example is the window with the largest acceleration, and ordinary are all windows of other activities. A
recording of a fall also holds what came before and after, so a hit anywhere in it counts: the score is by recording.
HAPT: an event is the range of a transition, six kinds one after the other; examples are windows with its label, and
everything else counts as ordinary, other events of that kind too. Examples and ordinary windows are of the training
subjects. The threshold allows one hit per hour of their ordinary time, on
HAPT ten, because unlabelled events of the kind count among them. Scored are events of the test subjects:
precision is the share of hits that overlap an event, recall the share of events that are hit, alarms are other hits
per hour of ordinary time. Sums over three draws of the examples (HAPT: two draws and six kinds). The control is
the search for nearest neighbours: the highest cosine with an example's vector, with a threshold found likewise.

With --outliers: outliers among SisFall's test recordings, with all but the falls of the training subjects as the
reference. 20 falls are left among all other recordings, five draws. With --choose, either is done on training subjects,
and with --turns events are: a fifth of these subjects is held out at a time, and all are counted together.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from bench.datasets.standins import HAPT
from benchmarks.segmentation import labels_of_windows
from benchmarks.timelines import TEST, Timelines, timelines
from benchmarks.timescores import Range, event_counts
from dicot.core.errors import CalibrationWarning
from dicot.use.events import EventDetector, beside, covered, merge_hits
from dicot.use.features import BOTH, FEATURES, LEVELS, VECTOR, judged_by
from dicot.use.outliers import EmbeddingOutlierDetector, distances_and_p

EXAMPLES = (3, 5, 10)
ALARMS = {"sisfall": 1.0, "hapt": 10.0}  # per hour; in HAPT 20 unlabelled events of a kind an hour count among them
DEVELOPMENT = {"sisfall": ("SA01", "SA04", "SA09", "SA13"), "hapt": ("1", "5", "8", "15", "19", "23", "27")}


def is_fall(data: Timelines) -> Any:
    return np.char.startswith(data.recording.astype(str), "F")


def place(data: Timelines, rows: Any = slice(None)) -> tuple[Any, Any, Any]:
    return data.recording[rows], data.start[rows], data.end[rows]


def tasks(name: str, train: Timelines, test: Timelines) -> Iterator[tuple[Any, Any, list[Range], Any]]:
    """Yield rows that may be examples, ordinary rows of the training subjects, true events, and ordinary test rows."""
    if name == "sisfall":
        names, number = np.unique(train.recording, return_inverse=True)
        order = np.lexsort((-train.peak, number))
        peaks = order[np.searchsorted(number[order], np.arange(len(names)))]
        falls = [one for one in test.ranges if one.label.startswith("F")]
        yield peaks[np.char.startswith(names, "F")], ~is_fall(train), falls, ~is_fall(test)
        return
    labels = labels_of_windows(train)
    for kind in HAPT.labels[6:]:
        events = [one for one in test.ranges if one.label == kind]
        inside = np.zeros(len(test.start), bool)
        for one in events:
            inside |= (test.recording == one.recording) & (test.start < one.end) & (test.end > one.start)
        yield np.flatnonzero(labels == kind), np.ones(len(labels), bool), events, ~inside


def by_neighbours(train: Timelines, test: Timelines, chosen: Any, usual: Any, alarms: float) -> tuple[Any, Any, float]:
    """Score by the highest cosine with an example's vector; return scores of ordinary and test windows, a threshold."""
    unit = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in (train.vectors, test.vectors)]
    close = unit[0][usual] @ unit[0][chosen].T
    close[train.group[usual, None] == train.group[chosen]] = -1
    known, new = close.max(axis=1), (unit[1] @ unit[0][chosen].T).max(axis=1)
    allowed = int(alarms * covered(*place(train, usual)) / 3600)
    beyond = merge_hits(np.argsort(-known, kind="stable").tolist(), *place(train, usual), most=allowed)[1]
    return known, new, -np.inf if beyond is None else float(known[beyond])


def events(name: str, parts: list[tuple[Timelines, Timelines]], kinds: list[str]) -> None:
    draws = 3 if name == "sisfall" else 2
    for n in EXAMPLES:
        found: dict[str, list[list[float]]] = {}
        each = ((train, test, *task) for train, test in parts for task in tasks(name, train, test))
        for train, test, candidates, ordinary, truth, quiet in each:
            hours = covered(*place(test, quiet)) / 3600
            for draw in range(draws):
                chosen = np.random.default_rng(draw).choice(candidates, n, replace=False)
                event = np.isin(np.arange(len(ordinary)), chosen)
                usual = np.flatnonzero(ordinary & ~beside(event, *place(train)))
                scored = {"nearest neighbours": by_neighbours(train, test, chosen, usual, ALARMS[name])[1:]}
                for kind in kinds:
                    x, new = judged_by(kind, train.vectors, train.levels, usual, (test.vectors, test.levels))
                    mask = np.isin(np.arange(len(x)), usual)
                    model = EventDetector(ALARMS[name]).fit(x, event, mask, *place(train), groups=train.group)
                    scored[f"detector, {kind}"] = model.scores(new), model.threshold_
                for way, (scores, threshold) in scored.items():
                    ranked = np.argsort(-scores, kind="stable")
                    hits = merge_hits(ranked[scores[ranked] > threshold].tolist(), *place(test))[0]
                    ranges = [
                        Range(str(test.recording[hit.row]), test.start[hit.first], test.end[hit.last], "")
                        for hit in hits
                    ]
                    counts = event_counts(truth, ranges)
                    row = [counts.right, counts.found, counts.hit, counts.true, counts.found - counts.right, hours]
                    found.setdefault(way, []).append(row)
        for way, rows in found.items():
            right, all_hits, hit, true, wrong, time = np.sum(rows, axis=0)
            cells = [f"{100 * right / max(1, all_hits):.1f}", f"{100 * hit / true:.1f}", f"{wrong / time:.2f}"]
            print(f"| {name} | {n} | {way} | " + " | ".join(cells) + " |", flush=True)


def outliers(train: Timelines, test: Timelines) -> None:
    print("| judged by | distance | average precision | falls among the first 20 | found | false alarms |")
    print("|---|---|---|---|---|---|")
    normal, names = ~is_fall(train), np.unique(test.recording)
    number = np.searchsorted(names, test.recording)
    fall = np.char.startswith(names, "F")
    for kind in FEATURES:
        x, new = judged_by(kind, train.vectors, train.levels, normal, (test.vectors, test.levels))
        for distance in ("relative", "mean"):
            model = EmbeddingOutlierDetector(distance=distance, standardise=False)
            model.fit(x[normal], groups=train.group[normal])
            far, p = distances_and_p(model, new)
            best = np.array([far[number == one].max() for one in range(len(names))])
            least = np.array([p[number == one].min() for one in range(len(names))])
            rows = []
            for draw in range(5):
                left = ~fall
                left[np.random.default_rng(draw).choice(np.flatnonzero(fall), 20, replace=False)] = True
                first = np.argsort(-best[left])[:20]
                rows.append([100 * average_precision_score(fall[left], best[left]), fall[left][first].sum()])
            precision, among = np.mean(rows, axis=0)
            alarms = [100 * np.mean(least[fall] <= 0.05), 100 * np.mean(p[~is_fall(test)] <= 0.05)]
            print(
                f"| {kind} | {distance} | {precision:.1f} | {among:.1f} | {alarms[0]:.1f} | {alarms[1]:.1f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(DEVELOPMENT), metavar="SET", help=", ".join(DEVELOPMENT))
    parser.add_argument("--outliers", action="store_true", help="outliers of SisFall instead")
    parser.add_argument("--choose", action="store_true", help="on training subjects, with all kinds of features")
    parser.add_argument("--turns", action="store_true", help="on training subjects, a fifth at a time")
    parser.add_argument("--cache", type=Path, help="a folder where embeddings are kept for the next call")
    options = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    if unknown := set(options.sets) - set(DEVELOPMENT):
        parser.error(f"unknown set {sorted(unknown)[0]!r}; known: {', '.join(DEVELOPMENT)}")
    names = ["sisfall"] if options.outliers else options.sets
    if not options.outliers:
        print("| set | examples | way | precision | recall | alarms per hour |\n|---|---|---|---|---|---|")
    for name in names:
        data = timelines(name, joined=False, cache=options.cache)
        held = TEST[name]
        if options.choose:
            data, held = data.part(TEST[name], but=True), DEVELOPMENT[name]
        some = [held]
        if options.turns:
            data = data.part(TEST[name], but=True)
            some = [tuple(np.unique(data.group)[number::5]) for number in range(5)]
        parts = [(data.part(one, but=True), data.part(one)) for one in some]
        if options.outliers:
            outliers(*parts[0])
        else:
            events(name, parts, [BOTH, VECTOR, LEVELS] if options.choose else [BOTH])


if __name__ == "__main__":
    main()
