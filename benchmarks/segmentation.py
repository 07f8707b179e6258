"""python -m benchmarks.segmentation [SET ...] [--choose] [--cache DIR]: recordings into stretches of one activity.

Recordings of HAPT (experiments), SisFall and WISDM (all recordings of a person one after the other, see
benchmarks/timelines.py) are cut into windows of 2.56 s every 1.28 s and embedded by the encoder that comes with dicot.
Scored are the test subjects of each set. A boundary counts as found within 2.56 s. Time is compared every 0.1 s where
there is a label. "clusters": without labels, all test recordings together; "labels": a FewLabelClassifier of the other
subjects' windows, with five windows per class, or 50, three draws; minimum length 5 s. Controls: stretches of
equal length, as many as there truly are; each window by itself, without smoothing; level and range statistics instead
of embeddings. With --choose, penalties and distances are compared on other subjects of HAPT and SisFall instead, and
what counts as near between people on 2 to all recordings of HAPT, four draws.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from benchmarks.timelines import TEST, WINDOW, Timelines, timelines
from benchmarks.timescores import Range, boundary_counts, time_scores
from dicot import FewLabelClassifier
from dicot.use import segments
from dicot.use.segments import agreed, segment, segment_labels

LEAST = 5.0
DRAWS = 3
MANY, FEW = 50, 5
PENALTIES, DISTANCES = (3.0, 4.0, 6.0), (0.7, 1.0, 1.2, 1.4)
ELSEWHERE, RECORDINGS = (2.0, 2.3, 2.6, 2.9, 3.2), (2, 4, 8, 16)


def ranges_of(table: pd.DataFrame, column: str) -> list[Range]:
    names = ["recording", "start", "end", column]
    return [Range(str(a), b, c, str(d)) for a, b, c, d in table[names].itertuples(index=False)]


def labels_of_windows(data: Timelines) -> Any:
    """Return the label in the middle of each window; empty where there is none."""
    out, middle = np.full(len(data.start), "", dtype="<U40"), (data.start + data.end) / 2
    for one in data.ranges:
        inside = (data.recording == one.recording) & (one.start <= middle) & (middle < one.end)
        out[inside] = one.label
    return out


def score(data: Timelines, table: pd.DataFrame, column: str) -> dict[str, float]:
    found = ranges_of(table, column)
    counts = boundary_counts(data.ranges, found, WINDOW)
    return {"boundaries": counts.f1, **time_scores(data.ranges, found), "stretches": len(found)}


def single_windows(data: Timelines, values: Any, column: str) -> pd.DataFrame:
    """Return stretches of windows that have the same value, without smoothing."""
    classes, numbers = np.unique(values, return_inverse=True)
    certain = np.eye(len(classes))[numbers]
    table = segment_labels(certain, classes.tolist(), data.recording, data.start, data.end, least=0.0)
    return table.rename(columns={"label": column})


def equal_lengths(data: Timelines) -> Any:
    """Return the number of the equal part of its recording that each window is in; as many parts as there truly are."""
    out = np.zeros(len(data.start), int)
    for name in np.unique(data.recording):
        rows = data.recording == name
        own = sorted(one for one in data.ranges if one.recording == name)
        parts = 1 + sum(a.label != b.label for a, b in pairwise(own))
        out[rows] = 1000 * (out.max() // 1000 + 1) + np.arange(rows.sum()) * parts // rows.sum()
    return out


def without_labels(data: Timelines) -> Iterator[tuple[str, dict[str, float]]]:
    place = (data.recording, data.start, data.end)
    n_classes = len({one.label for one in data.ranges})
    for title, x, levels in (
        ("both", data.vectors, data.levels),
        ("embeddings", data.vectors, None),
        ("level and range statistics", data.levels, None),
    ):
        yield f"change points, {title}", score(data, segment(x, *place, levels=levels, least=LEAST), "cluster")
    table = segment(data.vectors, *place, levels=data.levels, least=LEAST, clusters=n_classes)
    yield f"change points, both, {n_classes} clusters", score(data, table, "cluster")
    z = segments._directions(data.vectors, data.levels)
    alone = KMeans(n_classes, n_init=1, random_state=0).fit_predict(z)
    yield (
        f"each window alone: k-means, {n_classes} clusters",
        score(data, single_windows(data, alone, "cluster"), "cluster"),
    )
    parts = equal_lengths(data)
    names, numbers = np.unique(parts, return_inverse=True)
    means = np.stack([z[numbers == one].mean(axis=0) for one in range(len(names))])
    of_parts = KMeans(min(n_classes, len(means)), n_init=1, random_state=0).fit_predict(means)
    table = single_windows(data, parts, "cluster")
    table["cluster"] = of_parts[np.searchsorted(names, table["cluster"])]
    yield f"equal lengths, {n_classes} clusters", score(data, table, "cluster")


def with_labels(train: Timelines, test: Timelines, per_class: int) -> Iterator[tuple[str, dict[str, float]]]:
    truth, place = labels_of_windows(train), (test.recording, test.start, test.end)
    found = defaultdict(list)
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        rows = [rng.permutation(np.flatnonzero(truth == name))[:per_class] for name in np.unique(truth[truth != ""])]
        known, p = np.concatenate(rows), {}
        for title, x, new in (
            ("embeddings", train.vectors, test.vectors),
            ("level and range statistics", train.levels, test.levels),
        ):
            model = FewLabelClassifier(spreading="none").fit(x[known], truth[known])
            p[title] = model.predict_proba(new)
        for title, one in {"both": agreed(*p.values()), **p}.items():
            path = segment_labels(one, model.classes_.tolist(), *place, least=LEAST)
            found[f"Viterbi, {per_class} per class, {title}"].append(score(test, path, "label"))
        alone = model.classes_[agreed(*p.values()).argmax(axis=1)]
        found[f"each window alone, {per_class} per class, both"].append(
            score(test, single_windows(test, alone, "label"), "label")
        )
    return ((title, pd.DataFrame(rows).mean().to_dict()) for title, rows in found.items())


def show(name: str, rows: Iterator[tuple[str, dict[str, float]]]) -> None:
    for title, one in rows:
        cells = [f"{100 * one[key]:.1f}" for key in ("boundaries", "right", "macro_f1")] + [
            f"{one[key]:.3f}" for key in ("ari", "nmi")
        ]
        if title.startswith(("change", "equal", "each window alone: k")):
            cells[1:3] = "", ""
        print(f"| {name} | {title} | " + " | ".join(cells) + f" | {one['stretches']:.0f} |", flush=True)


def choose(names: Sequence[str], cache: Path | None) -> None:
    """Print boundaries' F1 and the ARI of time, on training subjects, by penalty and distance."""
    print("| set | penalty | alike | boundaries | ARI | NMI | stretches |\n|---|---|---|---|---|---|---|")
    for name in names:
        data = timelines(name, cache=cache).part(TEST[name], but=True)
        for penalty in PENALTIES:
            for alike in DISTANCES:
                place = (data.recording, data.start, data.end)
                how: Any = {"least": LEAST, "penalty": penalty, "alike": alike}
                table = segment(data.vectors, *place, levels=data.levels, **how)
                one = score(data, table, "cluster")
                cells = [100 * one["boundaries"], 100 * one["ari"], 100 * one["nmi"], one["stretches"]]
                print(f"| {name} | {penalty} | {alike} | " + " | ".join(f"{c:.1f}" for c in cells) + " |", flush=True)


def choose_elsewhere(data: Timelines) -> None:
    """Print the ARI of time by what counts as near between groups, for few and many recordings of training subjects."""
    names, rng = np.unique(data.recording), np.random.default_rng(0)
    some = [(n, rng.choice(names, n, replace=False)) for n in RECORDINGS for _ in range(4)] + [(len(names), names)]
    print("| elsewhere | " + " | ".join(map(str, (*RECORDINGS, len(names)))) + " |" + "\n|---" + "|---" * 5 + "|")
    for segments.ELSEWHERE in ELSEWHERE:
        found = defaultdict(list)
        for n, kept in some:
            rows = np.isin(data.recording, kept)
            place, levels = (data.recording[rows], data.start[rows], data.end[rows]), data.levels[rows]
            table = segment(data.vectors[rows], *place, levels=levels, least=LEAST)
            truth = [one for one in data.ranges if one.recording in kept]
            found[n].append(time_scores(truth, ranges_of(table, "cluster"))["ari"])
        cells = [f"{np.mean(own):.3f}" for own in found.values()]
        print(f"| {segments.ELSEWHERE} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(TEST), metavar="SET", help=", ".join(TEST))
    parser.add_argument("--choose", action="store_true", help="compare settings on training subjects")
    parser.add_argument("--cache", type=Path, help="a folder where embeddings are kept for the next call")
    options = parser.parse_args()
    if unknown := set(options.sets) - set(TEST):
        parser.error(f"unknown set {sorted(unknown)[0]!r}; known: {', '.join(TEST)}")
    if options.choose:
        choose([name for name in options.sets if name != "wisdm2019"], options.cache)  # it is only reported
        choose_elsewhere(timelines("hapt", cache=options.cache).part(TEST["hapt"], but=True))
        return
    print("| set | way | boundaries F1 | time right | macro-F1 | ARI | NMI | stretches |\n" + 8 * "|---" + "|")
    for name in options.sets:
        started, data = time.perf_counter(), timelines(name, cache=options.cache)
        train, test = data.part(TEST[name], but=True), data.part(TEST[name])
        hours = sum(one.end - one.start for one in test.ranges) / 3600
        changes = boundary_counts(test.ranges, [], WINDOW).true
        print(f"| {name} | {len(np.unique(test.group))} subjects, {hours:.1f} h, {changes} boundaries | | | | | | |")
        show(name, without_labels(test))
        for per_class in (FEW, MANY):
            show(name, with_labels(train, test, per_class))
        print(f"| {name} | {time.perf_counter() - started:.0f} s | | | | | | |", flush=True)


if __name__ == "__main__":
    main()
