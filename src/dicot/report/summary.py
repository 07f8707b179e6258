"""The short table for a README: generated, put between two marks, and checked for being up to date."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dicot.errors import InputError
from dicot.report.against import pairs
from dicot.report.comparison import NOT_RUN, Cell, Table, mark_best
from dicot.report.grid import Grid, grid
from dicot.report.lines import Line, latest, line_labels, require_controls, table_note
from dicot.report.paper import ALL_LABELS
from dicot.report.standing import blocks, standings
from dicot.report.tables import to_markdown
from dicot.storage import write_atomic

if TYPE_CHECKING:
    from dicot.bench.record import Record

BEGIN, END = "<!-- dicot report: begin -->", "<!-- dicot report: end -->"


def summary_table(records: "Sequence[Record]") -> Table:
    """Average accuracy and average rank with all labels, per suite over the sets that every contender shown has."""
    kept, _ = latest(records)
    kept = [r for r in kept if r.metric == "accuracy" and r.protocol in ALL_LABELS and r.source == r.target]
    suites = sorted({r.suite for r in kept})
    if not suites:
        raise InputError("A summary needs accuracies with all labels (linear, ridge, forest); there are none.")
    tables = {suite: grid([r for r in kept if r.suite == suite], "accuracy") for suite in suites}
    lines = sorted({line for table in tables.values() for line in table.lines}, key=lambda line: line.place)
    require_controls(lines, "Summary")
    columns, names, notes = [], [], []
    for suite, table in tables.items():
        block = next(iter(blocks(table)), None)
        if block is None:
            raise InputError(f"{suite}: no data set has a score of both controls, so there is nothing to sum up.")
        columns += _columns(table, suite, lines)
        names += [f"{suite.upper()} accuracy", f"{suite.upper()} rank", f"{suite.upper()}, the paper's"]
        notes.append(f"{suite.upper()}: {len(block.columns)} data sets.")
    note = table_note(
        kept,
        lines,
        *notes,
        "Averages over the data sets that all contenders shown have; the paper's over those of them that it has.",
    )
    labels = line_labels(lines)
    rows = tuple(zip(*columns, strict=True))
    return Table("contender", tuple(names), tuple(labels[line] for line in lines), rows, note)


def _columns(table: Grid, suite: str, lines: Sequence[Line]) -> list[list[Cell]]:
    """Average, rank and the paper's average of every line; the block exists."""
    block = blocks(table)[0]
    places, beside = standings(table, block), pairs(table, suite)
    averages, ranks, paper = [], [], []
    for line in lines:
        place, both = places.get(line), beside.get(line)
        if place is None:
            averages.append(Cell(NOT_RUN if line not in table.lines else "too few sets", failed=True))
            ranks.append(Cell("", failed=True))
        else:
            averages.append(Cell(f"{place.average:.2f}", mean=round(place.average, 2)))
            ranks.append(Cell(f"{place.rank:.2f}", mean=round(place.rank, 2)))
        shown = [v for c, v in zip(both.columns, both.paper, strict=True) if c in block.columns] if both else []
        paper.append(Cell(f"{sum(shown) / len(shown):.2f}" if shown else ""))
    return [mark_best(averages), mark_best(ranks, lowest=True), paper]


def summary_markdown(records: "Sequence[Record]") -> str:
    """The summary as it stands between the marks. It depends on the records alone, so that it can be compared."""
    dates = sorted(record.recorded for record in records)
    made = f"Recorded {dates[0][:10]} to {dates[-1][:10]}." if dates and dates[0] else ""
    return f"{to_markdown(summary_table(records))}{made}".rstrip() + "\n"


def with_block(text: str, block: str, where: str) -> str:
    """The text with what stands between its two marks replaced."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise InputError(f"{where} needs one line {BEGIN} and after it one line {END}. Put them where the table goes.")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{block.strip()}\n{END}{rest.split(END)[1]}"


def block_is_current(path: Path, block: str) -> bool:
    """Whether the file already holds this block."""
    text = _read(path)
    return with_block(text, block, str(path)) == text


def write_block(path: Path, block: str) -> None:
    """Put the block between the file's marks."""
    write_atomic(path, with_block(_read(path), block, str(path)).encode())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read to put a table into it ({error}). Name a text file.") from error
