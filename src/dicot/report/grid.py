"""Records as a table of runs: lines down, data sets across, one record per seed in a cell."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dicot.errors import InputError
from dicot.report.comparison import DECIMALS, DEFAULT_DECIMALS
from dicot.report.lines import Line, line_labels, line_of, table_note
from dicot.report.ranks import Floats

if TYPE_CHECKING:
    from dicot.bench.record import Record

Runs = Mapping[int, "Record"]
JOINT = " and "  # between the metrics of a joined grid
NOISE = 9  # decimals of a mean: sums in another order may differ in the last bit


@dataclass(frozen=True, eq=False)
class Grid:
    """All runs of one metric. A cell without a run, or with a failed one, has no mean."""

    metric: str
    lines: tuple[Line, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[Line, str], Runs]
    unit: str = "data set(s)"  # what a column is

    @cached_property
    def labels(self) -> dict[Line, str]:
        return line_labels(self.lines)

    @property
    def names(self) -> tuple[str, ...]:
        """The labels in the order of the lines."""
        return tuple(self.labels[line] for line in self.lines)

    @cached_property
    def means(self) -> Floats:
        """(lines, columns), NaN where a run failed or was not made."""
        return np.array([[self._mean(self.runs(line, column)) for column in self.columns] for line in self.lines])

    @property
    def decimals(self) -> int:
        return max(DECIMALS.get(name, DEFAULT_DECIMALS) for name in self.metric.split(JOINT))

    @property
    def seeds(self) -> list[int]:
        return sorted({seed for runs in self.cells.values() for seed in runs})

    @property
    def records(self) -> "list[Record]":
        return [record for runs in self.cells.values() for record in runs.values()]

    def note(self, *sentences: str) -> str:
        """What stands below a table of these runs."""
        return table_note(self.records, self.lines, *sentences)

    def runs(self, line: Line, column: str) -> Runs:
        return self.cells.get((line, column), {})

    def over(self, line: Line, columns: Sequence[str]) -> dict[int, float]:
        """Per seed the mean over these columns, for the seeds that all of them have."""
        rows = [{seed: r.value for seed, r in self.runs(line, c).items() if not r.failed} for c in columns]
        shared = set.intersection(*map(set, rows)) if rows else set()
        return {seed: float(np.mean([row[seed] for row in rows])) for seed in sorted(shared)}

    @staticmethod
    def _mean(runs: Runs) -> float:
        values = [record.value for record in runs.values()]
        return round(float(np.mean(values)), NOISE) if values and all(np.isfinite(values)) else np.nan


def column_name(source: str, target: str) -> str:
    """The data set, or source > target where they differ."""
    return target if source == target else f"{source} > {target}"


def column_of(record: "Record") -> str:
    return column_name(record.source, record.target)


def grid(records: "Iterable[Record]", metric: str, protocols: Sequence[str] | None = None) -> Grid:
    """The runs of one metric (by these protocols), lines in their usual order, columns by name."""
    cells: dict[tuple[Line, str], dict[int, Record]] = {}
    for record in records:
        if record.metric == metric and (protocols is None or record.protocol in protocols):
            cells.setdefault((line_of(record), column_of(record)), {})[record.seed] = record
    if not cells:
        raise InputError(f"There is no record of {metric} by {', '.join(protocols or ['any protocol'])}.")
    return _grid(metric, cells)


def _grid(metric: str, cells: Mapping[tuple[Line, str], Runs], unit: str = "data set(s)") -> Grid:
    lines = sorted({line for line, _ in cells}, key=lambda line: line.place)
    return Grid(metric, tuple(lines), tuple(sorted({column for _, column in cells}, key=natural)), cells, unit)


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key to sort by that puts 5 before 10, numbers before words, and does not mind capitals."""
    words = re.findall(r"\d+|\D+", text)
    return [(0, int(word), "") if word.isdecimal() else (1, 0, word.lower()) for word in words]


def joined(grids: Sequence[Grid]) -> Grid:
    """Several metrics side by side, each data set once per metric."""
    cells = {(line, f"{column} {g.metric}"): runs for g in grids for (line, column), runs in g.cells.items()}
    return _grid(JOINT.join(g.metric for g in grids), cells, "pair(s) of data set and metric")
