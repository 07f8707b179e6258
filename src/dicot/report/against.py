"""Ours beside the paper's: the same cell of the same table, over the data sets that both have."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from dicot.report.bench_tables import by_data_set
from dicot.report.comparison import FAILED, NOT_RUN, Cell, Table, signed
from dicot.report.grid import Grid
from dicot.report.lines import Line, require_controls
from dicot.report.paper import Published, published
from dicot.report.ranks import Floats

ABSENT = "no such number"
CAVEATS = (
    "The paper's numbers come from the authors' code, whose learning rate hardly rises (D-01), whose raw features and "
    "forest see the means of the channels (D-35, D-36) and whose MiniRocket is refitted per batch and scored by a "
    "forest (D-37)."
)


@dataclass(frozen=True, eq=False)
class Pairs:
    """One line beside the paper's row `name`, column by column."""

    name: str
    columns: tuple[str, ...]
    ours: Floats
    paper: Floats


def paper_cell(table: Grid, suite: str, line: Line, column: str) -> Published | None:
    """The paper's number for this cell."""
    runs = list(table.runs(line, column).values())
    if not runs:
        return None
    r = runs[0]
    return published(suite, r.contender, r.source, r.target, r.protocol, r.metric)


def pairs(table: Grid, suite: str) -> dict[Line, Pairs]:
    """The lines that the paper has, over the columns that both have and in which none of our runs failed."""
    out = {}
    for i, line in enumerate(table.lines):
        found = {column: paper_cell(table, suite, line, column) for column in table.columns}
        both = [(j, cell) for j, cell in enumerate(found.values()) if cell and np.isfinite(table.means[i, j])]
        if both:
            columns = tuple(table.columns[j] for j, _ in both)
            ours = np.array([table.means[i, j] for j, _ in both])
            out[line] = Pairs(both[0][1].name, columns, ours, np.array([cell.mean for _, cell in both]))
    return out


def average_table(table: Grid, suite: str) -> Table:
    """Per line the average of ours and of the paper's over the sets both have, and the difference."""
    require_controls(table.lines, "Ours beside the paper")
    beside, d = pairs(table, suite), table.decimals

    def row(i: int, line: Line) -> tuple[Cell, ...]:
        if line in beside:
            p = beside[line]
            numbers = (f"{p.ours.mean():.{d}f}", f"{p.paper.mean():.{d}f}", signed((p.ours - p.paper).mean(), d))
            return (Cell(p.name), Cell(str(len(p.columns))), *map(Cell, numbers))
        scored = table.means[i][np.isfinite(table.means[i])]
        own = Cell(f"{scored.mean():.{d}f}") if len(scored) else Cell(FAILED, failed=True)
        return Cell(ABSENT), Cell(str(len(scored))), own, Cell(""), Cell("")

    note = table.note(
        f"Average {table.metric} over the data sets both have; where the paper has no such number, over all of ours.",
        CAVEATS,
    )
    return Table(
        "contender",
        ("in the paper", "data sets", "ours", "the paper's", "difference"),
        table.names,
        tuple(row(i, line) for i, line in enumerate(table.lines)),
        note,
    )


def cell_table(table: Grid, suite: str) -> Table:
    """Per data set `ours (the paper's, difference)`."""
    require_controls(table.lines, "Ours beside the paper, per data set")
    d = table.decimals

    def shown(line: Line, column: str, ours: float) -> Cell:
        theirs = paper_cell(table, suite, line, column)
        if not np.isfinite(ours):
            return Cell(FAILED if table.runs(line, column) else NOT_RUN, failed=True)
        beside = f" ({theirs.mean:.{d}f}, {signed(ours - theirs.mean, d)})" if theirs else ""
        return Cell(f"{ours:.{d}f}{beside}")

    return by_data_set(
        table,
        (map(partial(shown, line), table.columns, row) for line, row in zip(table.lines, table.means, strict=True)),
        f"{table.metric}, mean over seeds: ours (the paper's, difference).",
        CAVEATS,
    )
