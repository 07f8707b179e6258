"""Our rows in the lines and columns of a table of the paper, each number beside the paper's."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import fmean, stdev
from typing import Any, NamedTuple

import pandas as pd

from bench.paper.numbers import AVERAGE, LARGE, METHODS, NAMES, paper_name, printed, printed_hours
from bench.report import frame
from bench.report.scores import MANY_SETS, Block, block_of, fit_times, standings, times_text
from bench.report.stats import average_ranks, half_widths
from dicot.data.datasets import DATASETS
from dicot.judge.report import frame as tidy
from dicot.judge.report.scores import failures
from dicot.judge.report.tables import ABSENT, FAILED, NOT_RUN, Cell, Table, best_note, mark_best, signed, text_table

PROBES = ("ridge", "forest", "linear")  # of several that stand for one line of the paper, the first: D-37
OURS = (*METHODS, "minirocket")  # whose other lines are called after the paper's name too
EXPECTED = {"large": LARGE, "scaling": ("HARTH",)}  # the paper's sets by family, in its order
EXPECTED |= {suite: tuple(printed(suite).columns.drop(AVERAGE)) for suite in ("ucr", "uea", "transfer")}
WORDS = {"large": "large sets", "ucr": "UCR sets", "uea": "UEA sets", "transfer": "transfers", "scaling": "set"}


class Column(NamedTuple):
    """A column of a table: what it is called, and which column of the paper's it is or stands in for."""

    label: str
    paper: str = ""  # empty: none
    exact: bool = False  # the paper's own data, not a stand-in
    recorded: bool = True
    metric: str = ""  # where each set has a column for several

    def by(self, metric: str) -> "Column":
        """The same column for one of several metrics."""
        own, comma, more = self.label.partition(", ")
        name = metric.upper()
        paper = f"{self.paper} {name}" if self.paper else ""
        return self._replace(label=f"{own} {name}{comma}{more}", paper=paper, metric=metric)


def data_set_key(name: str) -> str:
    """Give one spelling of a data set: in capitals, and `skoda-paper`, `pamap2-paper`, `ecg-full` are the paper's."""
    return name.lower().removesuffix("-paper").removesuffix("-full").upper()


@cache
def _set(name: str) -> tuple[str, bool]:
    """Give the paper's name of a data set, and whether it is that set itself; empty where it is neither."""
    if (key := data_set_key(name)) in LARGE:
        return key, DATASETS.registered(f"{name}-paper") is None  # else it is another version of that set
    if name in EXPECTED["ucr"] or name in EXPECTED["uea"]:
        return name, True
    known = DATASETS.registered(name)
    return ("" if known is None else data_set_key(known.stands_in_for)), False


@cache
def column_of(source: str, target: str) -> Column:
    """Find the column of a set, or of a transfer from one set to another."""
    (first, exact), (last, too) = _set(source), _set(target)
    own = target if source == target else f"{source} > {target}"
    paper = first if source == target else f"{first} > {last}"
    if source != target and paper not in EXPECTED["transfer"]:
        return Column(own)
    if exact and too:
        return Column(paper, paper, True)
    return Column(f"{own}, for {paper}" if paper else own, paper)


def _row_columns(data: pd.DataFrame) -> list[Column]:
    return [column_of(*pair) for pair in zip(data.source, data.target, strict=True)]


def columns_of(data: pd.DataFrame, expected: Sequence[str], metrics: Sequence[str] = ()) -> list[Column]:
    """List all columns in the paper's order, those without a record too; `metrics` have a column each."""
    found = set(_row_columns(data))
    covered = {column.paper for column in found}
    found |= {Column(f"{name}, missing", name, True, False) for name in expected if name not in covered}

    def order(column: Column) -> tuple[object, ...]:
        place = expected.index(column.paper) if column.paper in expected else len(expected)
        return place, not column.exact, tidy.natural(column.label)

    columns = sorted(found, key=order)
    return [column.by(metric) for column in columns for metric in metrics] if metrics else columns


def of_the_paper(data: pd.DataFrame) -> pd.Series:
    """Tell which rows are on sets that the paper uses, or that stand in for one of these."""
    return pd.Series([bool(column.paper) for column in _row_columns(data)], data.index, dtype=bool)


def published(suite: str, contender: str, source: str, target: str, protocol: str, metric: str) -> float:
    """Find the paper's number for this cell of our table; NaN where it prints none."""
    column, theirs = column_of(source, target), printed(suite, protocol)
    own = column.paper if metric == "accuracy" else column.by(metric).paper
    return number(theirs, paper_name(contender, protocol), own) if column.exact else math.nan


def number(theirs: pd.DataFrame, line: str | None, column: str) -> float:
    """Give the paper's number; NaN where it prints none."""
    return float(theirs.at[line, column]) if line in theirs.index and column in theirs.columns else math.nan


def rests_on(data: pd.DataFrame, families: Iterable[str], brief: bool = False) -> str:
    """Say which of the paper's sets the rows are about, what stands in for others, and what is missing.

    `brief` counts the sets and names none.
    """
    found = dict.fromkeys(zip(data.source, data.target, strict=True))
    columns = {column_of(*pair): " > ".join(dict.fromkeys(pair)) for pair in found}
    sentences = []
    for family in families:
        expected = EXPECTED[family]
        own = {column.paper for column in columns if column.exact} & set(expected)
        by = {
            name: [label for column, label in columns.items() if column.paper == name]
            for name in expected
            if name not in own
        }
        stand_ins = [f"{' and '.join(labels)} for {name}" for name, labels in by.items() if labels]
        missing = [name for name, labels in by.items() if not labels]
        words = [f"{len(own)} of the paper's {len(expected)} {WORDS[family]}"]
        words += [f"stand-ins: {len(stand_ins) if brief else ', '.join(stand_ins)}"] if stand_ins else []
        few = len(missing) <= len(LARGE) and not brief
        words += [f"missing: {', '.join(missing) if few else len(missing)}"] if missing else []
        sentences.append("; ".join(words))
    others = sorted({label for column, label in columns.items() if not column.paper}, key=tidy.natural)
    sentences += [f"Not of the paper: {', '.join(others)}"] if others and not brief else []
    return ". ".join(sentences) + "."


def paper_line(data: pd.DataFrame, names: Collection[str]) -> pd.Series:
    """Give each row the paper's name of its line, empty where it is none of the paper's lines.

    Of several lines of ours for one of the paper, in each suite the one that is no trial, in the precision of most
    rows, by the probe that its authors chose (`PROBES`).
    """
    rows = data[data.precision != ""].groupby(["suite", "precision"]).size()
    fields = ["suite", *frame.LINE]
    lines = data[fields].drop_duplicates()
    lines = lines.assign(
        paper=[paper_name(*pair) for pair in zip(lines.contender, lines.protocol, strict=True)],
        labels=lines.protocol.map(lambda name: frame.SAME_LABELS.get(name, name)),
        rare=[-rows.get(pair, 0) for pair in zip(lines.suite, lines.precision, strict=True)],
        probe=lines.protocol.map(lambda name: PROBES.index(name) if name in PROBES else len(PROBES)),
    )
    lines = lines[lines.paper.isin(list(names)) & lines.schedule.isin(("", frame.PAPER_SCHEDULE))]
    lines = lines.sort_values(["trial", "rare", "probe", "protocol", "precision"], kind="stable")
    best = lines.drop_duplicates(["suite", "paper", "labels"]).set_index(fields).paper.astype(object)
    return data[fields].join(best, on=fields).paper.fillna("")


def paper_ranks(theirs: pd.DataFrame, names: Sequence[str], columns: Sequence[str]) -> dict[str, float]:
    """Rank the paper's own numbers of these lines over the columns that it has for all of them."""
    table = theirs.reindex([name for name in names if name in theirs.index], columns=list(columns)).dropna(axis=1)
    return dict(zip(table.index, average_ranks(table.T).tolist(), strict=True)) if table.size and len(table) > 1 else {}


def digits_of(theirs: pd.DataFrame) -> int:
    """Tell the decimals of the paper's numbers: those of clustering are shares of 1, all others percentages."""
    return 3 if theirs.abs().max(axis=None) < 1 else 2


def beside(text: str, paper: float, own: float, digits: int) -> str:
    """Put the paper's number behind ours, and the difference where there is one to be told; NaN is none."""
    if math.isnan(paper):
        return text
    gap = "" if math.isnan(own) else f", {signed(own - paper, digits)}"
    return f"{text} ({paper:.{digits}f}{gap})".strip()


def with_interval(mean: float, half: float | None, digits: int) -> str:
    """Print a mean, and half of its 95 % interval if there is one."""
    return f"{round(mean, digits) + 0.0:.{digits}f}" + ("" if half is None else f" ± {half:.{digits}f}")


def interval_cell(seeds: Sequence[float], digits: int, usual: int) -> Cell:
    """Print the mean over seeds and half of its 95 % interval; how many there are, where others of the line have more.

    Runs that failed (NaN) are no seeds: what is left of a cell then cannot be called the best.
    """
    scored = [value for value in seeds if not math.isnan(value)]
    if not scored:
        return Cell(FAILED, FAILED)
    n, mean = len(scored), fmean(scored)
    half = None if n < 2 else float(half_widths(stdev(scored), n)[1])
    text = with_interval(mean, half, digits) + (f" (n = {n})" if n < usual else "")
    return Cell(f"{text}, rest {FAILED}", FAILED) if n < len(seeds) else Cell(text, mean=round(mean, digits))


def intervals_text(runs: pd.DataFrame) -> str:
    """Say what ± is, and how many seeds n each line has: from the fewest of a column to the most."""
    each = runs.groupby(["line", "column"], observed=True).seed.nunique().groupby("line", observed=True)
    few, many, seeds = each.min(), each.max(), tidy.seeds_of(runs)
    if not many.max() > 1:  # nor where there is no run at all
        return f"One run (seed {', '.join(map(str, seeds))}), no interval."
    counts = many.astype(str).where(few == many, few.astype(str) + " to " + many.astype(str))
    by_count = {str(n): list(map(str, lines)) for n, lines in counts.groupby(counts).groups.items()}
    most = max(sorted(by_count, reverse=True), key=lambda n: len(by_count[n]))
    told = [f"n = {n} for {', '.join(lines)}" for n, lines in sorted(by_count.items(), reverse=True) if n != most]
    told.append(f"n = {most}" + (" for all others" if told else ""))
    return (
        f"± is half of a 95 % interval over n seeds by Student's t; the paper's own take 1.96 standard errors (D-61). "
        f"Seeds {', '.join(map(str, seeds))}: {'; '.join(told)}."
    )


@dataclass(frozen=True, eq=False)
class Grid:
    """Rows in the lines of one of the paper's tables: first the paper's, under its names, then all others of ours.

    `scores`, `average`, `ranks` and `times` give the cells of columns, line by line; `table` puts columns together.
    """

    runs: pd.DataFrame
    names: Sequence[str]  # of all lines that the paper's table has, whether or not there is a record of them
    others: Sequence[str]  # lines that it does not have; they have no rank
    columns: Sequence[Column]
    theirs: pd.DataFrame  # the paper's numbers, lines x columns

    @property
    def every(self) -> list[str]:
        """All lines."""
        return [*self.names, *self.others]

    @property
    def digits(self) -> int:
        """The decimals of all its numbers."""
        return frame.decimals(self.runs) if len(self.runs) else digits_of(self.theirs)

    @cached_property
    def block(self) -> Block | None:
        """The data sets that all of the paper's lines have; None where there is none.

        What is neither a set of the paper nor stands in for one does not count, unless there is nothing else.
        """
        counted = self.runs[of_the_paper(self.runs)]
        runs = frame.compact(counted) if len(counted) else self.runs
        return block_of(runs, self.others) if len(runs) else None

    @property
    def over(self) -> str:
        """Say which data sets an average is over."""
        return "There is no data set that all of these lines have." if self.block is None else self.block.missing_text()

    @property
    def reading(self) -> str:
        """Say how the cells are to be read."""
        words = "Ours (the paper's, difference)"
        if any(column.paper and not column.exact for column in self.columns):
            words += (
                "; where a stand-in takes a set's place there is no difference, because the paper's number is about "
            )
            words += "another set"
        if not all(column.recorded for column in self.columns):
            words += "; in brackets alone: the paper's, with no record of ours"
        return f"{words}."

    def scores(self) -> dict[str, list[Cell]]:
        """Show ours beside the paper's in every column, the best of ours marked."""
        metrics, usual = tidy.metric_of(self.runs), self.runs.groupby("line", observed=True).seed.nunique()
        draws = self.runs.groupby(["line", "column", "seed"], observed=True).value
        seeds = draws.mean().where(draws.count() == draws.size()).groupby(["line", "column"], observed=True).agg(list)
        own = {key: interval_cell(values, self.digits, usual[key[0]]) for key, values in seeds.items()}
        out = {}
        for column in self.columns:
            absent = Cell(NOT_RUN if column.recorded else "", ABSENT)
            cells = []
            for line in self.every:
                cell, paper = own.get((line, column.label), absent), number(self.theirs, line, column.paper)
                text = beside(cell.text, paper, cell.mean if column.exact else math.nan, self.digits)
                cells.append(cell._replace(text=text))
            out[column.label] = mark_best(cells, tidy.direction(metrics[column.label]) if column.recorded else 1)
        return out

    def of(self, suite: str) -> "Grid":
        """The rows of one suite in the same lines, beside the paper's numbers for it."""
        runs = frame.compact(self.runs[self.runs.suite == suite])
        return replace(self, runs=runs, columns=columns_of(runs, EXPECTED[suite]), theirs=printed(suite))

    def counted(self, metric: str = "") -> list[Column]:
        """The columns that an average is over."""
        labels = [] if self.block is None else self.block.columns
        return [column for column in self.columns if column.metric == metric and column.label in labels]

    def means(self, metric: str = "") -> pd.Series:
        """Average ours over the columns that count, by line; what lacks one of them is not there."""
        labels = [column.label for column in self.counted(metric)]
        return self.block.shown[labels].mean(axis=1) if self.block is not None and labels else pd.Series(dtype=float)

    def half_widths(self, metric: str = "") -> dict[str, float]:
        """Half of the 95 % interval over seeds of each average, where there are two seeds or more."""
        labels = [column.label for column in self.counted(metric)]
        if self.block is None or not labels:
            return {}
        seeds = frame.seed_averages(self.block.runs, labels)
        several = seeds[seeds.count(axis=1) > 1]
        halves: dict[str, float] = half_widths(several.std(axis=1), several.count(axis=1))[1].to_dict()
        return halves

    def average(self, metric: str = "") -> list[Cell]:
        """Average ours over the block, beside the paper's average over the same sets, or else as it is printed."""
        own, means, digits, halves = self.counted(metric), self.means(metric), self.digits, self.half_widths(metric)
        heading = f"{AVERAGE} {metric.upper()}".strip() if all(column.paper for column in own) else ""
        exact = bool(own) and all(column.exact for column in own)
        whole = exact and len(own) == len([column for column in self.columns if column.metric == metric])
        recomputed = self.theirs.reindex(columns=[column.paper for column in own]).mean(axis=1, skipna=False)
        cells = []
        for line in self.every:
            paper = number(self.theirs, line, heading)
            if line not in means:
                cells.append(Cell(beside(self.lack(line), paper, math.nan, digits), ABSENT))
                continue
            ours, same = float(means[line]), recomputed.get(line, math.nan) if exact else math.nan
            text = with_interval(ours, halves.get(line), digits)
            told = ours if whole or not math.isnan(same) else math.nan
            text = beside(text, paper if math.isnan(same) else same, told, digits)
            cells.append(Cell(text, mean=round(ours, digits)))
        return mark_best(cells, 1 if self.block is None else self.block.sign)

    def lack(self, line: str) -> str:
        """Say why a line has no average."""
        if line not in set(self.runs.line):
            return NOT_RUN
        count = None if self.block is None else self.block.left_out.get(line)
        return "no set in common" if count is None else f"lacks {count}"

    def ranks(self, theirs: Mapping[str, float]) -> list[Cell]:
        """Show the average ranks of the paper's lines, the paper's behind ours."""
        own = {} if self.block is None else standings(self.block)["rank"].dropna().to_dict()
        cells = []
        for line in self.every:
            text = beside(f"{own[line]:.2f}" if line in own else "", theirs.get(line, math.nan), math.nan, 2)
            cells.append(Cell(text, mean=round(own[line], 2)) if line in own else Cell(text, ABSENT if text else ""))
        return mark_best(cells, -1)

    def times(self) -> list[Cell]:
        """Show the time to fit over the sets of the average, the paper's hours behind ours."""
        paper, times = printed_hours(), {} if self.block is None else fit_times(self.block)
        cells = []
        for line in self.every:
            own = times_text(times[line]) if line in times else ""
            hours = f" ({paper[line]:.2f} h)" if line in paper else ""
            cells.append(Cell(f"{own}{hours}".strip(), "" if times.get(line) else ABSENT))
        return cells

    def table(self, cells: Mapping[str, Sequence[Cell]], *sentences: str, turned: bool = False) -> Table:
        """Make the table of all lines; `turned` puts its columns, mostly data sets, below one another."""
        runs = self.runs
        frame.require_controls(runs, "A table of the paper")
        missing = [name for name in self.names if name not in set(runs.line)]
        about = frame.note(
            runs,
            intervals_text(runs),
            *sentences,
            best_note(tidy.metric_of(runs).map(tidy.direction)),
            f"Below {self.names[-1]}: lines that the paper's table does not have." if self.others else "",
            f"No record of {', '.join(missing)}." if missing else "",
            failures(runs) if runs.column.nunique() <= MANY_SETS else "",
        )
        rows = zip(self.every, zip(*cells.values(), strict=True), strict=True)
        table = text_table("contender", rows, list(cells), about)
        return table.turned("data set") if turned else table


def side_by_side(corner: str, grids: Mapping[str, Grid], cells: Iterable[Sequence[Cell]], *sentences: str) -> Table:
    """Make a table of a column of cells from each of several grids of the same lines of the paper, by heading."""
    columns = [dict(zip(made.every, own, strict=True)) for made, own in zip(grids.values(), cells, strict=True)]
    lines = dict.fromkeys([*next(iter(grids.values())).names, *(line for column in columns for line in column)])
    absent = Cell(NOT_RUN, ABSENT)
    rows = ((line, [column.get(line, absent) for column in columns]) for line in lines)
    runs = pd.concat([made.runs for made in grids.values() if len(made.runs)])
    frame.require_controls(runs, "A table of the paper")
    bold = best_note(tidy.metric_of(runs).map(tidy.direction))
    return text_table(corner, rows, list(grids), frame.note(runs, intervals_text(runs), *sentences, bold))


def grid(data: pd.DataFrame, theirs: pd.DataFrame, expected: Sequence[str], metrics: Sequence[str] = ()) -> Grid:
    """Place rows in the lines and columns of a table of the paper; with several `metrics` each set has one for each."""
    names, columns = list(theirs.index), _row_columns(data)
    if metrics:
        columns = [column.by(metric) for column, metric in zip(columns, data.metric, strict=True)]
    runs = frame.placed(data, [column.label for column in columns])
    said = {row.line: _called(row, names) for row in runs.drop_duplicates("line").itertuples()}
    own = paper_line(data, names)
    labels = own.where(own != "", runs.line.map(said).astype(object))
    used = set(labels)
    others = list(dict.fromkeys(said[line] for line in runs.line.cat.categories if said[line] in used))
    order = dict.fromkeys([*(name for name in names if name in used), *others])
    runs = runs.assign(line=pd.Categorical(labels, list(order), ordered=True))
    return Grid(runs, names, [line for line in order if line not in names], columns_of(data, expected, metrics), theirs)


def _called(row: Any, names: Collection[str]) -> str:
    """What a line is called that is not the paper's."""
    name = str(row.line).replace(row.contender, NAMES[row.contender], 1) if row.contender in OURS else str(row.line)
    return f"{name}, {row.schedule or row.protocol}" if name in names else name
