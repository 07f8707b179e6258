"""python -m bench events, and outliers: events from a few examples, and what lies far out.

Windows of 2.56 s every 1.28 s, embedded by the encoder that comes with dicot. SisFall: an event is a recording of a
fall; its example is the window with the largest acceleration, and ordinary are all windows of other activities. A
recording of a fall also holds what came before and after, so a hit anywhere in it counts. HAPT: an event is the range
of a transition, six kinds one after the other; examples are windows with its label, and everything else counts as
ordinary, other events of that kind too. Examples and ordinary windows are of the training subjects, events that are
scored of the test subjects: precision is the share of hits that overlap an event, recall the share of events that are
hit, alarms are other hits per hour of ordinary time. Sums over draws of the examples. The control is the search for
nearest neighbours: the highest cosine with an example's vector, with a threshold found likewise.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from sklearn.metrics import average_precision_score

from bench.datasets.standins import HAPT
from bench.options import names
from bench.tables import Row, markdown
from bench.use.scores import Range, event_hits
from bench.use.timelines import TEST, Timelines, timelines
from dicot.core.errors import CalibrationWarning
from dicot.use.events import EventDetector, beside, covered, merge_hits
from dicot.use.features import BOTH, FEATURES, judged_by
from dicot.use.outliers import EmbeddingOutlierDetector

EXAMPLES = (3, 5, 10)
DRAWS = {"sisfall": 3, "hapt": 2}
ALARMS = {"sisfall": 1.0, "hapt": 10.0}  # per hour; in HAPT 20 unlabelled events of a kind an hour count among them
FALLS, FIRST = 20, 20  # falls that are left among the other recordings, and recordings that one looks at


class Task(NamedTuple):
    """One kind of event."""

    examples: Any  # rows of the training subjects that may be examples
    ordinary: Any  # (N,) which of their rows are ordinary
    events: list[Range]  # of the test subjects
    quiet: Any  # (M,) which of their rows are ordinary


def events(
    sets: Annotated[str, typer.Option(help="sisfall, hapt or both.")] = "sisfall,hapt",
    turns: Annotated[bool, typer.Option("--turns", help="Training subjects, a fifth held out at a time.")] = False,
) -> None:
    """Precision, recall and false alarms of events found from 3, 5 and 10 examples."""
    warnings.simplefilter("ignore", CalibrationWarning)
    rows: list[Row] = []
    for name in names(sets, ALARMS):
        data = timelines(name, joined=False)
        held_out = [TEST[name]]
        if turns:
            data = data.part(TEST[name], others=True)
            held_out = [tuple(np.unique(data.group)[number::5]) for number in range(5)]
        parts = [(data.part(subjects, others=True), data.part(subjects)) for subjects in held_out]
        for n_examples in EXAMPLES:
            rows += found_from(name, parts, n_examples)
    typer.echo(markdown(rows))


def found_from(name: str, parts: list[tuple[Timelines, Timelines]], n_examples: int) -> Iterator[Row]:
    counts = defaultdict(list)
    for train, test in parts:
        for task in tasks(name, train, test):
            for draw in range(DRAWS[name]):
                examples = np.random.default_rng(draw).choice(task.examples, n_examples, replace=False)
                for way, hits in hits_of(train, test, task, examples, ALARMS[name]).items():
                    hit, right = event_hits(task.events, hits)
                    hours = covered(*test.place(task.quiet)) / 3600
                    counts[way].append([right, len(hits), hit, len(task.events), hours])
    for way, rows in counts.items():
        right, n_hits, hit, n_events, hours = np.sum(rows, axis=0)
        yield {
            "set": name,
            "way": way,
            "examples": n_examples,
            "precision %": 100 * float(right / max(1, n_hits)),
            "recall %": 100 * float(hit / n_events),
            "alarms per hour": float((n_hits - right) / hours),
        }


def tasks(name: str, train: Timelines, test: Timelines) -> Iterator[Task]:
    """The kinds of events of a set."""
    if name == "sisfall":
        recordings, number = np.unique(train.recording, return_inverse=True)
        hardest_first = np.lexsort((-train.peak, number))
        hardest = hardest_first[np.searchsorted(number[hardest_first], np.arange(len(recordings)))]
        falls = [one for one in test.ranges if one.label.startswith("F")]
        yield Task(hardest[np.char.startswith(recordings, "F")], ~is_fall(train), falls, ~is_fall(test))
        return
    labels = train.labels()
    for kind in HAPT.labels[6:]:
        ranges = [one for one in test.ranges if one.label == kind]
        inside = np.zeros(len(test.start), bool)
        for one in ranges:
            inside |= (test.recording == one.recording) & (test.start < one.end) & (test.end > one.start)
        yield Task(np.flatnonzero(labels == kind), np.ones(len(labels), bool), ranges, ~inside)


def is_fall(data: Timelines) -> Any:
    return np.char.startswith(data.recording.astype(str), "F")


def hits_of(train: Timelines, test: Timelines, task: Task, examples: Any, alarms: float) -> dict[str, list[Range]]:
    """What the detector finds, and the search for nearest neighbours."""
    is_event = np.isin(np.arange(len(task.ordinary)), examples)
    is_usual = task.ordinary & ~beside(is_event, *train.place())
    usual = np.flatnonzero(is_usual)

    x, new = judged_by(BOTH, train.vectors, train.levels, usual, (test.vectors, test.levels))
    detector = EventDetector(alarms).fit(x, is_event, is_usual, *train.place(), groups=train.group)
    by_neighbours = neighbours(train, test, examples, usual, alarms)
    return {
        "detector": ranges_above(test, detector.scores(new), detector.threshold_),
        "nearest neighbours": ranges_above(test, *by_neighbours),
    }


def neighbours(train: Timelines, test: Timelines, examples: Any, usual: Any, alarms: float) -> tuple[Any, float]:
    """Score test windows by the highest cosine with an example's vector, and choose a threshold."""
    unit, new = (data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True) for data in (train, test))
    close = unit[usual] @ unit[examples].T
    close[train.group[usual, None] == train.group[examples]] = -1
    scores = close.max(axis=1)
    allowed = int(alarms * covered(*train.place(usual)) / 3600)
    order = np.argsort(-scores, kind="stable").tolist()
    beyond = merge_hits(order, *train.place(usual), most=allowed)[1]
    threshold = -np.inf if beyond is None else float(scores[beyond])
    return (new @ unit[examples].T).max(axis=1), threshold


def ranges_above(data: Timelines, scores: Any, threshold: float) -> list[Range]:
    """Windows above the threshold; those that overlap or touch are one range."""
    ranked = np.argsort(-scores, kind="stable")
    hits = merge_hits(ranked[scores[ranked] > threshold].tolist(), *data.place())[0]
    return [Range(str(data.recording[hit.row]), data.start[hit.first], data.end[hit.last], "") for hit in hits]


def outliers() -> None:
    """Falls among SisFall's test recordings, with everything but falls of the training subjects as the reference."""
    warnings.simplefilter("ignore", CalibrationWarning)
    data = timelines("sisfall", joined=False)
    train, test = data.part(TEST["sisfall"], others=True), data.part(TEST["sisfall"])
    normal = ~is_fall(train)
    names_of, number = np.unique(test.recording, return_inverse=True)
    fall = np.char.startswith(names_of, "F")
    rows: list[Row] = []
    for features in FEATURES:
        x, new = judged_by(features, train.vectors, train.levels, normal, (test.vectors, test.levels))
        for distance in ("relative", "mean"):
            model = EmbeddingOutlierDetector(distance=distance, standardise=False)
            model.fit(x[normal], groups=train.group[normal])
            far = -model.score_samples(new)
            farthest = np.array([far[number == one].max() for one in range(len(names_of))])
            draws = [falls_first(fall, farthest, draw) for draw in range(5)]
            precision, among = np.mean(draws, axis=0)
            row = {"average precision %": 100 * precision, f"falls among the first {FIRST}": among}
            rows.append({"features": features, "distance": distance, **row})
    typer.echo(markdown(rows))


def falls_first(fall: Any, score: Any, draw: int) -> tuple[float, int]:
    """Average precision of some falls among the other recordings, and how many of them come first."""
    chosen = ~fall
    chosen[np.random.default_rng(draw).choice(np.flatnonzero(fall), FALLS, replace=False)] = True
    first = np.argsort(-score[chosen])[:FIRST]
    return average_precision_score(fall[chosen], score[chosen]), fall[chosen][first].sum()
