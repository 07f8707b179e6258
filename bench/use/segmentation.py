"""python -m bench segmentation: recordings into stretches of one activity.

Recordings of HAPT (experiments), SisFall and WISDM (all recordings of a person one after the other) are cut into
windows of 2.56 s every 1.28 s and embedded by the encoder that comes with dicot. Scored are the test subjects of each
set: the F1 of boundaries found within 2.56 s, and every 0.1 s where there is a label the share of time that is right
and the adjusted Rand index. With labels a FewLabelClassifier learns from 5 or 50 windows per class of the other
subjects, three draws. Controls: stretches of equal length, as many as there truly are; each window by itself.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from sklearn.cluster import KMeans

from bench.options import names
from bench.tables import Row, markdown
from bench.use.scores import Range, boundaries_f1, by_recording, time_scores
from bench.use.timelines import TEST, WINDOW, Timelines, timelines
from dicot import FewLabelClassifier
from dicot.use import segments
from dicot.use.segments import agreed, segment, segment_labels

LEAST = 5.0  # seconds of the shortest stretch
PER_CLASS = (5, 50)
DRAWS = 3

Score = dict[str, float]


def segmentation(
    sets: Annotated[str, typer.Option(help="Data sets, separated by commas.")] = ",".join(TEST),
) -> None:
    """Boundaries and labels of stretches, on people that nothing was chosen on or learned from."""
    rows: list[Row] = []
    for name in names(sets, TEST):
        data = timelines(name)
        train, test = data.part(TEST[name], others=True), data.part(TEST[name])
        scores = dict(without_labels(test))
        for per_class in PER_CLASS:
            scores |= with_labels(train, test, per_class)
        rows += [{"set": name, "way": way, **score} for way, score in scores.items()]
    typer.echo(markdown(rows))


def without_labels(data: Timelines) -> Iterator[tuple[str, Score]]:
    n_classes = len({one.label for one in data.ranges})
    features = {
        "both": (data.vectors, data.levels),
        "embeddings": (data.vectors, None),
        "levels and ranges": (data.levels, None),
    }
    for name, (x, levels) in features.items():
        table = segment(x, *data.place(), levels=levels, least=LEAST)
        yield f"change points, {name}", score(data, table, "cluster")
    table = segment(data.vectors, *data.place(), levels=data.levels, least=LEAST, clusters=n_classes)
    yield f"change points, {n_classes} clusters", score(data, table, "cluster")

    z = segments._directions(data.vectors, data.levels)
    clusters = KMeans(n_classes, n_init=1, random_state=0).fit_predict(z)
    yield "control: each window alone, k-means", score(data, single_windows(data, clusters), "label")

    parts = equal_lengths(data)
    means = pd.DataFrame(z).groupby(parts).mean()
    of_parts = KMeans(min(n_classes, len(means)), n_init=1, random_state=0).fit_predict(means)
    table = single_windows(data, parts)
    table["label"] = of_parts[np.searchsorted(means.index, table["label"])]
    yield "control: equal lengths", score(data, table, "label")


def with_labels(train: Timelines, test: Timelines, per_class: int) -> dict[str, Score]:
    truth = train.labels()
    scores = defaultdict(list)
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        chosen = [rng.permutation(np.flatnonzero(truth == name))[:per_class] for name in np.unique(truth[truth != ""])]
        rows = np.concatenate(chosen)
        model = FewLabelClassifier().fit(train.vectors[rows], truth[rows])
        by_vectors = model.predict_proba(test.vectors)
        by_levels = FewLabelClassifier().fit(train.levels[rows], truth[rows]).predict_proba(test.levels)
        both = agreed(by_vectors, by_levels)
        for name, p in {"both": both, "embeddings": by_vectors, "levels and ranges": by_levels}.items():
            table = segment_labels(p, model.classes_.tolist(), *test.place(), least=LEAST)
            scores[f"Viterbi, {per_class} labels per class, {name}"].append(score(test, table, "label"))
        alone = single_windows(test, model.classes_[both.argmax(axis=1)])
        scores[f"control: each window alone, {per_class} labels per class"].append(score(test, alone, "label"))
    return {way: pd.DataFrame(draws).mean().to_dict() for way, draws in scores.items()}


def score(data: Timelines, table: pd.DataFrame, column: str) -> Score:
    columns = table[["recording", "start", "end", column]]
    found = [Range(str(name), start, end, str(label)) for name, start, end, label in columns.itertuples(index=False)]
    right, ari = time_scores(data.ranges, found)
    f1 = boundaries_f1(data.ranges, found, WINDOW)
    return {"boundaries F1 %": 100 * f1, "time right %": 100 * right, "ARI": ari, "stretches": float(len(found))}


def single_windows(data: Timelines, values: Any) -> pd.DataFrame:
    """Return stretches of windows that have the same value, without smoothing."""
    classes, numbers = np.unique(values, return_inverse=True)
    return segment_labels(np.eye(len(classes))[numbers], classes.tolist(), *data.place(), least=0.0)


def equal_lengths(data: Timelines) -> Any:
    """Return the number of the equal part of its recording that each window is in; as many parts as there truly are."""
    parts = np.zeros(len(data.start), int)
    n_parts = 0
    for name, ranges in by_recording(data.ranges).items():
        rows = np.flatnonzero(data.recording == name)
        count = 1 + sum(a.label != b.label for a, b in pairwise(ranges))
        parts[rows] = n_parts + np.arange(len(rows)) * count // len(rows)
        n_parts += count
    return parts
