"""Tables in the form of the paper's: its lines and its columns, each number of ours beside the paper's."""

from collections.abc import Mapping, Sequence

from dicot.judge.report.frame import decimals, direction, metric_of, note, require_controls, seeds_of
from dicot.judge.report.scores import MANY_SETS, failures, score_cell, seeds_text
from dicot.judge.report.standings import Block, standings
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, Table, best_note, mark_best, signed, text_table
from dicot.paper.lines import Column, Lines
from dicot.paper.numbers import Printed

ONCE = "Ours (the paper's, difference)"
STAND_IN = (
    "where a stand-in takes a set's place there is no difference, because the paper's number is about another set"
)
ALONE = "in brackets alone: the paper's, with no record of ours"


def beside(text: str, paper: float | None, own: float | None, digits: int) -> str:
    """Put the paper's number behind ours, and the difference where there is one to be told."""
    if paper is None or paper != paper:
        return text
    gap = "" if own is None or own != own else f", {signed(own - paper, digits)}"
    return f"{text} ({paper:.{digits}f}{gap})"


def reading(columns: Sequence[Column]) -> str:
    """Say how the cells are to be read."""
    words = [ONCE]
    words += [STAND_IN] if any(column.paper and not column.exact for column in columns) else []
    words += [ALONE] if any(not column.recorded for column in columns) else []
    return "; ".join(words) + "."


def score_cells(lines: Lines, columns: Sequence[Column], printed: Printed, digits: int) -> dict[str, list[Cell]]:
    """Give the cells of every column, line by line, the best of ours marked."""
    runs, n_seeds = lines.runs, len(seeds_of(lines.runs))
    lists = runs.groupby(["line", "column"], observed=True)[["value", "seed"]].agg(list)
    own = {key: score_cell(values, seeds, digits, n_seeds) for key, values, seeds in lists.itertuples()}
    metrics = metric_of(runs)
    out = {}
    for column in columns:
        cells = []
        for line in lines.every:
            cell, paper = own.get((line, column.label)), printed.get((line, column.paper))
            if cell is None:
                cells.append(Cell(beside(NOT_RUN if column.recorded else "", paper, None, digits).strip(), ABSENT))
            else:
                text = beside(cell.text, paper, cell.mean if column.exact else None, digits)
                cells.append(cell._replace(text=text))
        sign = direction(metrics[column.label]) if column.recorded else 1
        out[column.label] = mark_best(cells, sign)
    return out


def average_cells(
    lines: Lines,
    block: Block | None,
    columns: Sequence[Column],
    printed: Printed,
    as_printed: Mapping[str, float],
    digits: int,
    intervals: bool = False,
) -> list[Cell]:
    """Average ours over these columns of a block, beside the paper's average over the same, or as it is printed.

    `intervals` adds the half width of the paper's 95 % interval, where there are several seeds.
    """
    own = [column for column in columns if block is not None and column.label in block.columns]
    same = bool(own) and all(column.exact for column in own)
    means = {} if block is None or not own else block.shown[[column.label for column in own]].mean(axis=1).to_dict()
    halves = standings(block).normal.dropna() if intervals and block is not None else {}
    cells = []
    for line in lines.every:
        paper = as_printed.get(line) if all(column.paper for column in own) else None
        if line not in means:
            cells.append(Cell(beside(_lack(lines, block, line), paper, None, digits), ABSENT))
            continue
        average = float(means[line])
        if same and all((line, column.paper) in printed for column in own):
            paper = sum(printed[line, column.paper] for column in own) / len(own)
        text = f"{average:.{digits}f}"
        text += f" ± {halves[line]:.{digits}f}" if line in halves else ""
        cells.append(Cell(beside(text, paper, average if same else None, digits), mean=round(average, digits)))
    sign = 1 if block is None else block.sign
    return mark_best(cells, sign)


def _lack(lines: Lines, block: Block | None, line: str) -> str:
    """Say why a line has no average."""
    if line not in set(lines.runs.line):
        return NOT_RUN
    count = None if block is None else block.left_out.get(line)
    return "no set in common" if count is None else f"lacks {count}"


def table_of(
    lines: Lines, columns: Mapping[str, Sequence[Cell]], *sentences: str, spread: bool = True, turned: bool = False
) -> Table:
    """Make the table of all lines; `turned` puts its columns, mostly data sets, below one another.

    `spread` says that the numbers have a ± behind them where there are several seeds.
    """
    require_controls(lines.runs, "A table of the paper")
    below = f"Below {lines.names[-1]}: lines that the paper's table does not have." if lines.others else ""
    absent = f"No record of {', '.join(lines.missing)}." if lines.missing else ""
    bold = best_note(metric_of(lines.runs).map(direction))
    failed = failures(lines.runs) if lines.runs.column.nunique() <= MANY_SETS else ""
    seeds = seeds_text(seeds_of(lines.runs), *([] if spread else ["Means over"]))
    about = note(lines.runs, seeds, *sentences, bold, below, absent, failed)
    rows = zip(lines.every, zip(*columns.values(), strict=True), strict=True)
    table = text_table("contender", rows, list(columns), about)
    return table.turned("data set") if turned else table


def score_grid(
    lines: Lines,
    columns: Sequence[Column],
    printed: Printed,
    as_printed: Mapping[str, float],
    more: Mapping[str, Sequence[Cell]] | None = None,
    turned: bool = False,
) -> Table:
    """Show every column, then the average over those that all of the paper's lines have, then `more` columns."""
    digits, block = decimals(lines.runs), lines.block()
    cells: dict[str, Sequence[Cell]] = dict(score_cells(lines, columns, printed, digits))
    many = 0 if block is None else len(block.columns)
    cells[f"average of {many}"] = average_cells(lines, block, columns, printed, as_printed, digits, intervals=True)
    over = block.missing_text() if block is not None else "There is no data set that all of these lines have."
    return table_of(lines, cells | dict(more or {}), over, reading(columns), turned=turned)
