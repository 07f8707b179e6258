"""Records as a table of runs: lines down, data sets across, one record per seed in a cell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dicot.errors import InputError
from dicot.report.comparison import DECIMALS, DEFAULT_DECIMALS
from dicot.report.lines import Line, line_labels, line_of
from dicot.report.ranks import Floats

if TYPE_CHECKING:
    from dicot.bench.record import Record

Runs = Mapping[int, "Record"]
NOISE = 9  # decimals of a mean: sums in another order may differ in the last bit


@dataclass(frozen=True, eq=False)
class Grid:
    """All runs of one metric. A cell without a run, or with a failed one, has no mean."""

    metric: str
    lines: tuple[Line, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[Line, str], Runs]

    @cached_property
    def labels(self) -> dict[Line, str]:
        return line_labels(self.lines)

    @cached_property
    def means(self) -> Floats:
        """(lines, columns), NaN where a run failed or was not made."""
        return np.array([[self._mean(self.runs(line, column)) for column in self.columns] for line in self.lines])

    @property
    def decimals(self) -> int:
        return DECIMALS.get(self.metric, DEFAULT_DECIMALS)

    @property
    def seeds(self) -> list[int]:
        return sorted({seed for runs in self.cells.values() for seed in runs})

    @property
    def records(self) -> "list[Record]":
        return [record for runs in self.cells.values() for record in runs.values()]

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


def column_of(record: "Record") -> str:
    """The data set, or source > target where they differ."""
    return record.target if record.source == record.target else f"{record.source} > {record.target}"


def grid(records: "Iterable[Record]", metric: str, protocols: Sequence[str] | None = None) -> Grid:
    """The runs of one metric (by these protocols), lines as they come, columns by name."""
    cells: dict[tuple[Line, str], dict[int, Record]] = {}
    for record in records:
        if record.metric == metric and (protocols is None or record.protocol in protocols):
            cells.setdefault((line_of(record), column_of(record)), {})[record.seed] = record
    if not cells:
        raise InputError(f"There is no record of {metric} by {', '.join(protocols or ['any protocol'])}.")
    lines = tuple(dict.fromkeys(line for line, _ in cells))
    return Grid(metric, lines, tuple(sorted({column for _, column in cells})), cells)


def joined(grids: Sequence[Grid]) -> Grid:
    """Several metrics side by side, each data set once per metric."""
    cells = {(line, f"{column} {g.metric}"): runs for g in grids for (line, column), runs in g.cells.items()}
    columns = tuple(f"{column} {g.metric}" for g in grids for column in g.columns)
    lines = tuple(dict.fromkeys(line for g in grids for line in g.lines))
    return Grid(" and ".join(g.metric for g in grids), lines, columns, cells)
