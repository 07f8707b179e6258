"""Both archives at once: the paper's summary of them, ranks over all data sets there are, and the two schedules."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd

from dicot.judge.report.figures import critical_difference
from dicot.judge.report.frame import ALL_LABELS, CONTROLS, PAPER_SCHEDULE, compact, decimals
from dicot.judge.report.page import Part
from dicot.judge.report.standings import NOT_MEASURED, Block, fit_times, rank_cell, standings, times_text
from dicot.judge.report.stats import friedman_text
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, Table, mark_best, signed, text_table
from dicot.paper.exhibits.grids import average_cells, beside, table_of
from dicot.paper.lines import EXPECTED, Column, Lines, columns_of, in_lines, of_the_paper, paper_ranks
from dicot.paper.numbers import METHODS, NAMES, Printed, paper_tables, printed

ARCHIVES = ("ucr", "uea")
FAMILIES = ("large", *ARCHIVES)
AUTHORS_SCHEDULE = "per_epoch"
RANKS = "Ranks are over the paper's lines alone, on the data sets that all of them have; ties share their mean rank."
SETS = ", ".join(f"{len(EXPECTED[name])} {name.upper()}" for name in ARCHIVES)


def all_labels(data: pd.DataFrame, suites: Sequence[str]) -> pd.DataFrame:
    """Keep what was scored with all labels on the set it was fitted on."""
    own = data[data.suite.isin(suites) & (data.metric == "accuracy") & data.protocol.isin(ALL_LABELS)]
    return own[own.source == own.target]


def summary_of_archives(data: pd.DataFrame) -> Table:
    """Show accuracy, rank and time of both archives, ours beside the paper's over the same sets and as printed."""
    table = paper_tables()["ucr_uea_summary"]
    own = all_labels(data, ARCHIVES)
    own = own[of_the_paper(own) & own.schedule.isin(("", PAPER_SCHEDULE))]
    labels, _ = columns_of(own, ())
    lines = in_lines(own, labels, list(table))
    cells: dict[str, list[Cell]] = {}
    times: dict[str, dict[str, str]] = {line: {} for line in lines.every}
    notes = []
    for suite in ARCHIVES:
        part = Lines(compact(lines.runs[lines.runs.suite == suite]), lines.names)
        _, columns = columns_of(part.runs, EXPECTED[suite])
        block, word = part.block(), suite.upper()
        numbers = printed(suite)
        average = {name: row[f"{suite}_accuracy"] for name, row in table.items()}
        cells |= _two_columns(lines, part, block, columns, numbers, average, word)
        if block is not None:
            for line, time in fit_times(block).items():
                times[line][word] = times_text(time)
            notes.append(f"{word}: {block.missing_text()}")
    cells["time to fit"] = [_time_cell(times[line]) for line in lines.every]
    kinds = {"accuracy": ".2f", "rank": ".2f"}
    for suite in ARCHIVES:
        for kind, form in kinds.items():
            heading = f"printed: {suite.upper()} {kind}"
            cells[heading] = [_number(table.get(line, {}).get(f"{suite}_{kind}"), form) for line in lines.every]
    cells["printed: hours"] = [_number(table.get(line, {}).get("hours"), ".2f") for line in lines.every]
    about = f"Ours (the paper's over the same sets, difference); printed: the paper's over {SETS} sets."
    return table_of(lines, cells, *notes, RANKS, about, spread=False)


def _two_columns(
    lines: Lines,
    part: Lines,
    block: Block | None,
    columns: Sequence[Column],
    numbers: Printed,
    average: dict[str, float],
    word: str,
) -> dict[str, list[Cell]]:
    """Make accuracy and rank of one archive for all lines of the table."""
    digits = 2 if part.runs.empty else decimals(part.runs)
    everyone = Lines(part.runs.assign(line=part.runs.line.cat.set_categories(lines.every)), lines.names)
    sets = 0 if block is None else len(block.columns)
    accuracy = average_cells(everyone, block, columns, numbers, average, digits)
    if block is None:
        return {f"{word} accuracy": accuracy, f"{word} rank": [Cell("")] * len(lines.every)}
    theirs, own = paper_ranks(numbers, block.lines, block.columns), standings(block)["rank"]
    ranks = []
    for line in lines.every:
        if line not in block.lines:
            ranks.append(Cell(""))
            continue
        rank = float(own[line])
        ranks.append(Cell(beside(f"{rank:.2f}", theirs.get(line), None, 2), mean=round(rank, 2)))
    return {f"{word} accuracy, {sets} sets": accuracy, f"{word} rank": mark_best(ranks, -1)}


def _time_cell(times: Mapping[str, str]) -> Cell:
    """Show the time on each archive by itself: their devices may differ."""
    said = "; ".join(f"{word}: {time}" for word, time in times.items())
    if set(times.values()) <= {NOT_MEASURED}:
        return Cell(NOT_MEASURED if times else NOT_RUN, ABSENT)
    return Cell(said)


def _number(value: float | None, form: str) -> Cell:
    return Cell("" if value is None else f"{value:{form}}")


def ranks_over_everything(data: pd.DataFrame) -> list[Part]:
    """Rank the paper's methods over every data set there is: ours, the paper's over the same, and over all of its."""
    own = all_labels(data, FAMILIES)
    own = own[of_the_paper(own)]
    own = own[own.contender.isin((*METHODS, *CONTROLS)) & (own.protocol == "linear")]
    own = own[own.schedule.isin(("", PAPER_SCHEDULE))]
    expected = [name for family in FAMILIES for name in EXPECTED[family]]
    labels, columns = columns_of(own, expected)
    names = [NAMES[name] for name in METHODS]
    lines = in_lines(own, labels, names)
    block = lines.block()
    numbers = printed_everywhere()
    every = paper_ranks(numbers, names, expected)
    if block is None:
        return [Part("", text="There is no data set that the paper's methods have in common.")]
    exact = [column.label for column in columns if column.exact and column.label in block.columns]
    same = paper_ranks(numbers, block.lines, exact)
    table = standings(block)
    ranks = [rank_cell(table["rank"].get(line, math.nan)) for line in lines.every]
    cells = {
        f"rank over {len(block.columns)} sets": mark_best(ranks, -1),
        f"the paper's, {len(exact)} of these": [_number(same.get(line), ".2f") for line in lines.every],
        f"the paper's, all {len(expected)}": [_number(every.get(line), ".2f") for line in lines.every],
        "average accuracy": [
            Cell(f"{table.average[line]:.2f}") if line in table.index else Cell(NOT_RUN, ABSENT) for line in lines.every
        ],
    }
    counts = lines.runs[lines.runs.column.isin(block.columns)].groupby("suite").column.nunique()
    made = ", ".join(f"{count} {suite}" for suite, count in counts.items())
    parts = [Part("", table_of(lines, cells, f"{block.missing_text()} By suite: {made}.", RANKS, spread=False))]
    if len(block.columns) > 1 and len(block.lines) > 1:
        merits = block.merits.to_numpy()
        figure = {"figure3": partial(critical_difference, merits, block.lines)}
        parts.append(Part("Ours", figures=figure, text=f"{len(block.columns)} data sets. {friedman_text(merits)}"))
    theirs = [column for column in expected if all((name, column) in numbers for name in names)]
    merits = pd.DataFrame([[numbers[name, column] for name in names] for column in theirs]).to_numpy()
    figure = {"figure3-paper": partial(critical_difference, merits, names)}
    text = f"The same from the numbers that the paper prints, {len(theirs)} data sets. {friedman_text(merits)}"
    return [*parts, Part("From the paper's tables", figures=figure, text=text)]


def printed_everywhere() -> dict[tuple[str, str], float]:
    """Give the paper's accuracies with all labels on all of its data sets, by line and column."""
    return {key: value for suite in FAMILIES for key, value in printed(suite).items()}


def schedule_table(data: pd.DataFrame) -> Table | None:
    """Compare the paper's schedule with that of the authors' code, on the data sets that a method has both on."""
    own = all_labels(data, FAMILIES)
    own = own[own.protocol == "linear"]
    both = own.pivot_table("value", "target", ["contender", "schedule"])
    rows = []
    for method in METHODS:
        columns = [(method, PAPER_SCHEDULE), (method, AUTHORS_SCHEDULE), *((name, "") for name in CONTROLS)]
        if all(column in both for column in columns):
            shared = both[columns].dropna()
            step, epoch, *controls = shared.mean()
            better, worse = ((sign * (shared[columns[0]] - shared[columns[1]]) > 0).sum() for sign in (1, -1))
            counts = f"{better} / {len(shared) - better - worse} / {worse}"
            cells = [str(len(shared)), f"{step:.2f}", f"{epoch:.2f}", signed(step - epoch, 2), counts]
            rows.append((NAMES[method], [*cells, *(f"{value:.2f}" for value in controls)]))
    if not rows:
        return None
    headings = ["data sets", "per_step", "per_epoch", "difference", "better / equal / worse", *CONTROLS]
    about = (
        "Average accuracy by linear probe with all labels over the data sets that a method has both schedules on, "
        "others for each method, so that only its own row compares. per_step is the paper's schedule; per_epoch that "
        "of the authors' code, whose rate hardly rises (D-01), so that the encoder stays close to calibrated."
    )
    return text_table("method", rows, headings, about)
