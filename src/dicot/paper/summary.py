"""The short table for a README: generated, put between two marks, and checked for being up to date."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dicot.core.errors import InputError
from dicot.core.storage import write_atomic
from dicot.judge.report.best import SUBJECT, short_table
from dicot.judge.report.frame import ALL_LABELS, compact, latest, note, placed, require_controls
from dicot.judge.report.standings import blocks, rank_cell, standings
from dicot.judge.report.tables import ABSENT, FAILED, NOT_RUN, Cell, Table, mark_best, text_table, to_markdown
from dicot.paper.against import pairs
from dicot.paper.lines import paper_line, paper_ranks, printed_names
from dicot.paper.places import printed


class Marks(NamedTuple):
    """The lines that a table stands between."""

    begin: str
    end: str

    @classmethod
    def of(cls, suites: Sequence[str]) -> "Marks":
        """Return the marks of the archives' table, or of the one about the preset "best"."""
        name = "dicot report best" if list(suites) == [SUBJECT] else "dicot report"
        return cls(f"<!-- {name}: begin -->", f"<!-- {name}: end -->")


def summary_table(data: pd.DataFrame) -> Table:
    """Show average accuracy and rank with all labels, per suite over the sets that every contender shown has."""
    chosen = latest(data)
    chosen = chosen[(chosen.metric == "accuracy") & chosen.protocol.isin(ALL_LABELS) & (chosen.source == chosen.target)]
    if chosen.empty:
        raise InputError("A summary needs accuracies with all labels (linear, ridge, forest); there are none.")
    runs = placed(chosen, chosen.target)  # one name per line, whatever the suite
    require_controls(runs, "Summary")
    columns: list[list[Cell]] = []
    headings, notes = [], []
    for suite, own in runs.groupby("suite"):
        n_sets, three = _columns(own, str(suite), list(runs.line.cat.categories))
        columns += three
        headings += [f"{suite.upper()} accuracy", f"{suite.upper()} rank", f"{suite.upper()}, the paper's"]
        notes.append(f"{suite.upper()}: {n_sets} data sets.")
    about = (
        "Averages over the data sets that all of the paper's lines have, the paper's over those of them that it has. "
        "Ranks are among these lines, in brackets those of the paper's own numbers on the same sets (D-36 and D-37 "
        "say what its forest and MiniRocket are)."
    )
    rows = zip(runs.line.cat.categories, zip(*columns, strict=True), strict=True)
    shown = [(line, cells) for line, cells in rows if any(cell.mean == cell.mean for cell in cells)]
    left_out = [line for line in runs.line.cat.categories if line not in dict(shown)]
    lacking = f"Not yet on enough data sets: {'; '.join(left_out)}." if left_out else ""
    return text_table("contender", shown, headings, note(runs, *notes, about, lacking))


def _columns(runs: pd.DataFrame, suite: str, lines: list[str]) -> tuple[int, list[list[Cell]]]:
    """Give the number of data sets, and average, rank and the paper's average of every line.

    Ranks are among the paper's lines; all lines are ranked where the paper has no table of the suite.
    """
    runs = compact(runs)
    own = paper_line(runs, printed_names([suite]))
    names = {line: name for line, name in zip(runs.line, own, strict=True) if name}
    block = next(iter(blocks(runs, [line for line in lines if line not in names] if names else ())), None)
    if block is None:
        raise InputError(f"{suite}: no data set has a score of both controls, so there is nothing to sum up.")
    table, beside = standings(block), pairs(runs)
    numbers = {(line, column): value for line in names for column, value in _printed(suite, names[line]).items()}
    theirs = paper_ranks(numbers, block.lines, block.columns)
    averages, ranks, paper = [], [], []
    for line in lines:
        if line in table.index:
            row = table.loc[line]
            averages.append(Cell(f"{row.average:.2f}", mean=round(row.average, 2)))
            rank = rank_cell(row["rank"])
            ranks.append(rank._replace(text=f"{rank.text} ({theirs[line]:.2f})") if line in theirs else rank)
        else:
            averages.append(Cell("too few sets", FAILED) if (runs.line == line).any() else Cell(NOT_RUN, ABSENT))
            ranks.append(Cell(""))
        printed = beside[line].paper.reindex(block.columns).dropna() if line in beside else ()
        paper.append(Cell(f"{sum(printed) / len(printed):.2f}" if len(printed) else ""))
    return len(block.columns), [mark_best(averages), mark_best(ranks, -1), paper]


def _printed(suite: str, name: str) -> dict[str, float]:
    """Give the paper's numbers of one of its lines by column."""
    return {column: value for (line, column), value in printed(suite).items() if line == name}


def summary_markdown(data: pd.DataFrame) -> str:
    """Write the summary as it stands between the marks. It depends on the records alone, so that it can be compared."""
    dates = sorted(data.recorded)
    made = f"Recorded {dates[0][:10]} to {dates[-1][:10]}." if dates and dates[0] else ""
    table = short_table(data) if set(data.suite) == {SUBJECT} else summary_table(data)
    return f"{to_markdown(table)}{made}".rstrip() + "\n"


def with_block(text: str, block: str, where: str, marks: Marks) -> str:
    """Replace what stands between the two marks of a text."""
    begin, end = marks
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise InputError(f"{where} needs one line {begin} and after it one line {end}. Put them where the table goes.")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{block.strip()}\n{end}{rest.split(end)[1]}"


def block_is_current(path: Path, block: str, marks: Marks) -> bool:
    """Tell whether the file already holds this block."""
    text = _read(path)
    return with_block(text, block, str(path), marks) == text


def write_block(path: Path, block: str, marks: Marks) -> None:
    """Put the block between the file's marks."""
    write_atomic(path, with_block(_read(path), block, str(path), marks).encode())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read to put a table into it ({error}). Name a text file.") from error
