"""scores.csv of an evaluation: one row per result, its facts first and then a column per metric."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dicot.core.storage import write_atomic
from dicot.judge.result import Result

# The columns of a job and their types in SQL, in the order in which a file has them.
COLUMNS = {
    "key": "TEXT PRIMARY KEY",
    "config": "TEXT NOT NULL",
    "source": "TEXT NOT NULL",
    "target": "TEXT NOT NULL",
    "protocol": "TEXT NOT NULL",
    "seed": "INTEGER NOT NULL",
    "schedule": "TEXT NOT NULL",
    "steps": "INTEGER NOT NULL",
    "batch_size": "INTEGER NOT NULL",
    "precision": "TEXT NOT NULL",
    "trial": "INTEGER NOT NULL",
    "recipe": "TEXT NOT NULL",
    "source_data": "TEXT NOT NULL",
    "target_data": "TEXT NOT NULL",
    "version": "TEXT NOT NULL",
    "device": "TEXT NOT NULL",
    "seconds_fit": "REAL",
    "seconds_embed": "REAL",
    "seconds_score": "REAL",
    "peak_memory": "INTEGER NOT NULL",
    "error": "TEXT",
    "recorded": "TEXT NOT NULL",
}
# Columns that are called otherwise than the field of a result.
FIELDS = {"seconds_fit": "fit_seconds", "seconds_embed": "embed_seconds", "seconds_score": "score_seconds"}
# What a row is about beside the job: the draw is there where labelled cases were drawn more than once.
SUITE, CONTENDER, DRAW = PLACE = ("suite", "contender", "draw")


def row_of(result: Result) -> dict[str, Any]:
    """Return the facts of a result by column; a time that was not measured is None."""
    row = {column: getattr(result, FIELDS.get(column, column)) for column in COLUMNS}
    row["trial"] = int(result.trial)
    for column in FIELDS:
        if math.isnan(row[column]):
            row[column] = None
    return row


def table_of(results: Iterable[Result]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the columns and rows of a file of results.

    A value is empty where the protocol has no such metric, and NaN where the job failed.
    """
    results = list(results)
    metrics = sorted({metric for result in results for metric in result.values})
    facts = list(COLUMNS)
    if any(result.draw > 1 for result in results):
        facts.insert(facts.index("seed") + 1, DRAW)
    rows = [{**{name: getattr(one, name) for name in PLACE}, **row_of(one), **one.values} for one in results]
    return [SUITE, CONTENDER, *facts, *metrics], rows


def as_csv(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def write_scores(path: Path, results: Iterable[Result]) -> None:
    """Write results as .csv, whole or not at all."""
    write_atomic(path, as_csv(*table_of(results)))
