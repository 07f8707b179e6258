"""Tables of a benchmark: standings over data sets, scores per data set, intervals, failures. Controls in every one."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dicot.report.comparison import BOLD, FAILED, NOT_RUN, Cell, Table, cell, failures, mark_best, seeds_text
from dicot.report.grid import Grid, column_of
from dicot.report.lines import Line, require_controls
from dicot.report.ranks import interval
from dicot.report.standing import Block, fit_devices, fit_seconds, standings

if TYPE_CHECKING:
    from dicot.bench.record import Record

MANY_SETS = 8  # more data sets stand below one another, not side by side
SHORT = 0.001  # seconds that are not worth a number
MAX_REASON = 300  # letters of an error message in a table; the CSV file holds all
SPREAD = (
    "The average is taken over data sets per seed, its spread over seeds; 95 % intervals: 1.96 standard errors as in "
    "the paper, and Student's quantile, which fits few seeds (D-61)."
)


def missing_text(table: Grid, block: Block) -> str:
    """On how many sets the lines are compared, and who is not among them."""
    text = f"Over the {len(block.columns)} {table.unit} of {len(table.columns)} that every contender shown has."
    if block.left_out:
        lacking = (f"{table.labels[line]} (lacks {count})" for line, count in block.left_out.items())
        text += f" Left out for want of sets: {', '.join(lacking)}."
    return text


def seconds_text(seconds: float) -> str:
    """A time that a reader can compare at a glance."""
    if math.isnan(seconds):
        return "not measured"
    if seconds < SHORT:
        return f"under {SHORT:g} s"
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.2f} h"


def standing_table(table: Grid, block: Block) -> Table:
    """Average with its spread and both 95 % intervals, average rank, time to fit; best average first."""
    require_controls(block.lines, "Standings")
    places, devices, d = standings(table, block), fit_devices(table, block), table.decimals
    many = any(place.n_seeds > 1 for place in places.values())
    averages, ranks, rest = [], [], []
    for line, place in places.items():
        spread = "" if place.deviation is None else f" ± {place.deviation:.{d}f}"
        averages.append(Cell(f"{place.average:.{d}f}{spread}", mean=round(place.average, d)))
        ranks.append(Cell(f"{place.rank:.2f}", mean=round(place.rank, 2)))
        widths = [f"± {w:.{d}f}" if w is not None else "one seed" for w in (place.normal, place.student)]
        seconds = fit_seconds(table, line, block.columns)
        time = seconds_text(seconds) + (f" ({devices[line]})" if devices[line] and seconds >= SHORT else "")
        rest.append(tuple(map(Cell, [*widths, time] if many else [time])))
    columns = zip(mark_best(averages), mark_best(ranks, lowest=True), rest, strict=True)
    note = table.note(
        missing_text(table, block),
        seeds_text(table.seeds),
        SPREAD if many else "",
        "Rank 1 is best, ties share their mean rank. Time to fit: sum over these sets.",
    )
    return Table(
        "contender",
        (f"average {table.metric}", "average rank", *(("95 %, normal", "95 %, t") if many else ()), "time to fit"),
        tuple(table.labels[line] for line in places),
        tuple((average, rank, *others) for average, rank, others in columns),
        note,
    )


def by_data_set(table: Grid, rows: Iterable[Iterable[Cell]], *sentences: str) -> Table:
    """Rows of lines with a cell per data set; many sets stand below one another."""
    out = Table("contender", table.columns, table.names, tuple(map(tuple, rows)), table.note(*sentences))
    return out if len(table.columns) <= MANY_SETS else out.turned("data set")


def data_set_table(table: Grid) -> Table:
    """The mean of every line on every data set."""
    require_controls(table.lines, "Scores per data set")
    n_seeds = len(table.seeds)
    by_column = [
        mark_best([cell(list(table.runs(line, c).values()), table.decimals, n_seeds) for line in table.lines])
        for c in table.columns
    ]
    return by_data_set(
        table,
        zip(*by_column, strict=True),
        seeds_text(table.seeds),
        f"Shown: {table.metric}. {BOLD}",
        failures(table.records) if len(table.columns) <= MANY_SETS else "Failures are listed with their reasons.",
    )


def interval_table(table: Grid) -> Table | None:
    """Half widths of both 95 % intervals per data set; None where no line has two seeds."""
    require_controls(table.lines, "Intervals per data set")
    if len(table.seeds) < 2:
        return None

    def shown(line: Line, column: str) -> Cell:
        runs = table.runs(line, column)
        values = [record.value for record in runs.values() if not record.failed]
        if len(values) < 2 or len(values) < len(runs):
            return Cell(NOT_RUN if not runs else FAILED if len(values) < len(runs) else "one seed", failed=not values)
        halves = (interval(values)[1], interval(values, "t")[1])
        return Cell(" / ".join(f"{half:.{table.decimals}f}" for half in halves))

    return by_data_set(
        table,
        ([shown(line, column) for column in table.columns] for line in table.lines),
        "Half widths of the 95 % interval of the mean: 1.96 standard errors as in the paper / Student's t (D-61).",
    )


def failure_table(records: "Iterable[Record]") -> Table | None:
    """Every job that failed, with its reason, its seeds and what it would have been scored by; None without any."""
    jobs: dict[tuple[str, str, str, str], list[Record]] = {}
    for r in records:
        if r.error is not None:
            jobs.setdefault((r.contender, r.schedule, column_of(r), " ".join(r.error.split())), []).append(r)
    if not jobs:
        return None

    def row(schedule: str, column: str, reason: str, found: "list[Record]") -> tuple[Cell, ...]:
        seeds = ", ".join(map(str, sorted({r.seed for r in found})))
        protocols = ", ".join(dict.fromkeys(r.protocol for r in found))
        text = reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]} …"
        return Cell(column), Cell(schedule or "none"), Cell(seeds), Cell(protocols), Cell(text, failed=True)

    return Table(
        "contender",
        ("data set", "schedule", "seeds", "protocols", "reason"),
        tuple(name for name, *_ in jobs),
        tuple(row(*key[1:], found) for key, found in jobs.items()),
        f"{len(jobs)} reason(s) in all. A failed job has no number anywhere in this report.",
    )
