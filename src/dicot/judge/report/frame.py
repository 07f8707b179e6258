"""The tidy frame: one row per number of a result. Every table and figure is a function of it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any

import pandas as pd

from dicot.judge.protocols import Metric, find_metric
from dicot.judge.protocols.base import CLASSIFICATION_METRICS, CLUSTERING_METRICS, COST_METRICS
from dicot.judge.result import TIDY, Result

OPTIONAL: dict[str, Any] = dict.fromkeys(("suite", "source", "target", "subsets"), "") | {
    one.name: one.default for one in fields(Result) if one.name in TIDY and one.default is not MISSING
}
SUBSET_NOTES = {
    "authors": "the authors' one draw, the same for all seeds (D-40)",
    "per-seed": "drawn anew by each seed",
}
METRICS = [*CLASSIFICATION_METRICS, *CLUSTERING_METRICS, *COST_METRICS]

# Decimals of a mean: sums in another order may differ in the last bit.
NOISE = 9


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Make the frame of tidy rows; each needs contender, protocol, metric, seed and value, a failed one an error."""
    data = pd.DataFrame([{**OPTIONAL, **row} for row in rows], columns=list(TIDY))
    numbers = dict.fromkeys(("value", "fit_seconds", "embed_seconds", "score_seconds"), float)
    return data.astype({**numbers, "error": object, "trial": bool})


def natural(text: str) -> list[tuple[int, int, str]]:
    """Give a key to sort by that puts 5 before 10, numbers before words, and ignores capitals."""
    words = re.findall(r"\d+|\D+", text)
    return [(0, int(word), "") if word.isdecimal() else (1, 0, word.lower()) for word in words]


def metric_of(runs: pd.DataFrame) -> pd.Series:
    """Give the metric of each column of a table."""
    return runs.drop_duplicates("column").set_index("column").metric.map(find_metric)


def metric_names(data: pd.DataFrame) -> list[str]:
    """List the metrics there are, in the order in which protocols declare them."""
    order = [*(metric.name for metric in METRICS), *data.metric.unique()]
    return sorted(data.metric.unique(), key=order.index)


def shown_metrics(data: pd.DataFrame) -> list[str]:
    """List the metrics that tables show: headlines without macro averages, which repeat accuracy."""
    names = metric_names(data)
    headlines = [name for name in names if find_metric(name).headline and not name.startswith("macro_")]
    return headlines or names


def direction(metric: Metric) -> int:
    """1 where more is better, -1 where less is."""
    return 1 if metric.higher_is_better else -1


def seeds_of(data: pd.DataFrame) -> list[int]:
    return sorted(data.seed.unique().tolist())


def subset_notes(runs: pd.DataFrame) -> list[str]:
    """Say which labelled cases were drawn, where a protocol draws them: the authors' or by each seed."""
    drawn = runs[runs.subsets.isin(list(SUBSET_NOTES))]
    notes = []
    for choice, rows in drawn.groupby("subsets"):
        protocols = ", ".join(sorted(rows.protocol.unique(), key=natural))
        which = "" if drawn.protocol.nunique() == 1 else f" ({protocols})"
        notes.append(f"Labelled cases: {SUBSET_NOTES[choice]}{which}.")
    return notes
