"""What training costs against the batch size: time per step, memory, seconds to fit."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dicot.report.comparison import Cell, Table, cell, seeds_text
from dicot.report.curves import power_curves
from dicot.report.filenames import slug
from dicot.report.grid import Grid, grid, natural
from dicot.report.lines import CONTROLS, Line
from dicot.report.parts import Draft, Part, Request

if TYPE_CHECKING:
    from dicot.bench.record import Record

UNTRAINED = "no batches"
TITLES = {  # of the metrics that are costs, whatever the protocol is called
    "step_ms": ("Time per step", "milliseconds per step"),
    "peak_mib": ("Memory", "peak memory in MiB"),
    "fit_seconds": ("Time to fit", "seconds to fit"),
}


def is_cost(record: "Record") -> bool:
    """A cost is no score: it needs no controls beside it."""
    return record.metric in TITLES


def cost_drafts(request: Request) -> list[Draft]:
    """A table and a figure per data set and measure, batch sizes across."""
    costs = [record for record in request.records if is_cost(record)]
    drafts: list[Draft] = []
    for data in sorted({record.target for record in costs}, key=natural):
        for metric in TITLES:
            if chosen := [r for r in costs if r.metric == metric and r.target == data]:
                drafts.append(partial(_part, chosen, metric, data))
    return drafts


def _part(records: "Sequence[Record]", metric: str, data: str) -> list[Part]:
    sizes = [(r, str(r.batch_size) if r.batch_size else UNTRAINED) for r in records]
    table = grid([replace(r, source=size, target=size) for r, size in sizes], metric)
    title, axis = TITLES[metric]
    curves = _curves(table)
    name = f"{metric.replace('_', '-')}-{slug(data).lower()}"
    figures = {name: power_curves(curves, "batch size", axis)} if curves else {}
    return [Part(f"{title} on {data}", _cost_table(table, axis), figures)]


def _curves(table: Grid) -> dict[str, tuple[list[float], list[float]]]:
    """The lines that were measured at two batch sizes or more."""
    sizes = [(j, float(column)) for j, column in enumerate(table.columns) if column != UNTRAINED]
    out = {}
    for line, row in zip(table.lines, table.means, strict=True):
        seen = [(size, float(row[j])) for j, size in sizes if np.isfinite(row[j]) and row[j] > 0]
        if len(seen) > 1:
            out[table.labels[line]] = ([size for size, _ in seen], [value for _, value in seen])
    return out


def _cost_table(table: Grid, axis: str) -> Table:
    """Where controls were timed, they stand under `no batches`."""

    def shown(line: Line, column: str) -> Cell:
        runs = list(table.runs(line, column).values())
        if not runs and (line.contender in CONTROLS or column == UNTRAINED):
            return Cell("")
        return cell(runs, table.decimals, len(table.seeds))

    rows = tuple(tuple(shown(line, column) for column in table.columns) for line in table.lines)
    note = table.note(
        seeds_text(table.seeds),
        f"{axis[0].upper()}{axis[1:]} by batch size. A control takes no steps and has no batches.",
    )
    return Table("contender", table.columns, table.names, rows, note)
