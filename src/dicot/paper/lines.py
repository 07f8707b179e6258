"""The paper's lines and columns: which rows of ours stand for a line of a table, which data sets for a column."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from dicot.data.datasets import DATASETS
from dicot.judge.report.frame import CONTROLS, LINE, PAPER_SCHEDULE, SAME_LABELS, compact, natural, placed
from dicot.judge.report.standings import Block, blocks
from dicot.judge.report.stats import average_ranks
from dicot.paper.numbers import (
    LARGE,
    METHODS,
    NAMES,
    Printed,
    paper_name,
    paper_tables,
    printed,
    printed_names,
    variant_names,
)

USUAL = ("", "float32")  # precisions
PROBES = ("ridge", "forest", "linear")  # of several that stand for one line of the paper, the first: D-37
OURS = (*METHODS, "minirocket")  # whose other lines are called after the paper's name too
TRANSFERS = tuple(pair.upper().replace(">", " > ") for pair in paper_tables()["transfer"]["Di-COT"] if ">" in pair)
EXPECTED = {  # the paper's sets by family, in its order
    "large": LARGE,
    "ucr": tuple(paper_tables()["ucr"]),
    "uea": tuple(paper_tables()["uea"]),
    "transfer": TRANSFERS,
    "scaling": ("HARTH",),
}
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
        return self._replace(
            label=f"{own} {name}{comma}{more}", paper=f"{self.paper} {name}" if self.paper else "", metric=metric
        )


def data_set_key(name: str) -> str:
    """Give one spelling of a data set: in lower case, and `skoda-paper`, `pamap2-paper`, `ecg-full` are the paper's."""
    return name.lower().removesuffix("-paper").removesuffix("-full")


@cache
def _set(name: str) -> tuple[str, bool]:
    """Give the paper's name of a data set, and whether it is that set itself; empty where it is neither."""
    key = data_set_key(name).upper()
    if key in LARGE:
        return key, DATASETS.registered(f"{name}-paper") is None  # else it is another version of that set
    if name in EXPECTED["ucr"] or name in EXPECTED["uea"]:
        return name, True
    known = DATASETS.registered(name)
    return (data_set_key(known.stands_in_for).upper() if known is not None else ""), False


@cache
def column_of(source: str, target: str) -> Column:
    """Find the column of a set, or of a transfer from one set to another."""
    (first, exact), (last, too) = _set(source), _set(target)
    own = target if source == target else f"{source} > {target}"
    paper = first if source == target else f"{first} > {last}"
    if source != target and paper not in TRANSFERS:
        return Column(own)
    if exact and too:
        return Column(paper, paper, True)
    return Column(f"{own}, for {paper}" if paper else own, paper)


def columns_of(
    data: pd.DataFrame, expected: Sequence[str], metrics: Sequence[str] = ()
) -> tuple[list[str], list[Column]]:
    """Name the column of each row, and list all columns in the paper's order, those without a record too.

    With several `metrics` each set has a column for each.
    """
    rows = [column_of(source, target) for source, target in zip(data.source, data.target, strict=True)]
    found = list(dict.fromkeys(rows))
    covered = {column.paper for column in found}
    found += [Column(f"{name}, missing", name, True, False) for name in expected if name not in covered]

    def order(column: Column) -> tuple[object, ...]:
        place = expected.index(column.paper) if column.paper in expected else len(expected)
        return place, not column.exact, natural(column.label)

    columns = sorted(found, key=order)
    if len(metrics) < 2:
        return [row.label for row in rows], columns
    labels = [row.by(metric).label for row, metric in zip(rows, data.metric, strict=True)]
    return labels, [column.by(metric) for column in columns for metric in metrics]


def of_the_paper(data: pd.DataFrame) -> pd.Series:
    """Tell which rows are on sets that the paper uses, or that stand in for one of these."""
    known = [bool(column_of(*pair).paper) for pair in zip(data.source, data.target, strict=True)]
    return pd.Series(known, data.index, dtype=bool)


def published(suite: str, contender: str, source: str, target: str, protocol: str, metric: str) -> float | None:
    """Find the paper's number for this cell of our table; None where it prints none."""
    column, name = column_of(source, target), paper_name(contender, protocol)
    if not column.exact or name is None:
        return None
    return printed(suite, protocol).get((name, column.paper if metric == "accuracy" else column.by(metric).paper))


def rests_on(data: pd.DataFrame, families: Iterable[str]) -> str:
    """Say which of the paper's sets the rows are about, what stands in for others, and what is missing."""
    found = dict.fromkeys(zip(data.source, data.target, strict=True))
    columns = {column_of(*pair): " > ".join(dict.fromkeys(pair)) for pair in found}
    sentences = []
    for family in families:
        expected = EXPECTED[family]
        own = [name for name in expected if any(column.paper == name and column.exact for column in columns)]
        by = {
            name: [label for column, label in columns.items() if column.paper == name and not column.exact]
            for name in expected
            if name not in own
        }
        stand_ins = [f"{' and '.join(labels)} for {name}" for name, labels in by.items() if labels]
        missing = [name for name, labels in by.items() if not labels]
        words = [f"{len(own)} of the paper's {len(expected)} {WORDS[family]}"]
        words += [f"stand-ins: {', '.join(stand_ins)}"] if stand_ins else []
        few = len(missing) <= len(LARGE)
        words += [f"missing: {', '.join(missing) if few else len(missing)}"] if missing else []
        sentences.append("; ".join(words))
    others = sorted({label for column, label in columns.items() if not column.paper}, key=natural)
    sentences += [f"Not of the paper: {', '.join(others)}"] if others else []
    return ". ".join(sentences) + "."


def paper_line(data: pd.DataFrame, names: Collection[str]) -> pd.Series:
    """Give each row the paper's name of its line, empty where it is none of the paper's lines.

    Of several lines of ours for one of the paper, in each suite the one that is no trial, in float32, by the probe that
    its authors chose (`PROBES`).
    """
    fields = ("suite", *LINE)
    best: dict[tuple[str, str, str], tuple[tuple[object, ...], tuple[object, ...]]] = {}
    for key in dict.fromkeys(data[list(fields)].itertuples(index=False, name=None)):
        row = dict(zip(fields, key, strict=True))
        name, protocol = paper_name(row["contender"], row["protocol"]), row["protocol"]
        if name is None or name not in names or row["schedule"] not in ("", PAPER_SCHEDULE):
            continue
        probe = PROBES.index(protocol) if protocol in PROBES else len(PROBES)
        merit = (row["trial"], row["precision"] not in USUAL, probe, protocol, row["precision"])
        place = (row["suite"], name, SAME_LABELS.get(protocol, protocol))
        if place not in best or merit < best[place][0]:
            best[place] = (merit, key)
    chosen = {key: name for (_, name, _), (_, key) in best.items()}
    keys = data[list(fields)].itertuples(index=False, name=None)
    return pd.Series([chosen.get(key, "") for key in keys], data.index, dtype=object)


@dataclass(frozen=True, eq=False)
class Lines:
    """Rows in the lines of one of the paper's tables: first the paper's, under its names, then all others of ours."""

    runs: pd.DataFrame
    names: tuple[str, ...]  # of all lines that the paper's table has

    @property
    def every(self) -> list[str]:
        """All lines: the paper's, whether or not there is a record of them, then the others."""
        return [*self.names, *self.others]

    @property
    def others(self) -> list[str]:
        """Lines that the paper's table does not have; they have no rank."""
        return [line for line in self.runs.line.cat.categories if line not in self.names]

    @property
    def missing(self) -> list[str]:
        """Lines of the paper without any record."""
        return [name for name in self.names if name not in set(self.runs.line)]

    def block(self) -> Block | None:
        """Find the data sets that all of the paper's lines have; None where there is none.

        What is neither a set of the paper nor stands in for one does not count, unless there is nothing else.
        """
        counted = self.runs[of_the_paper(self.runs)]
        runs = compact(counted) if len(counted) else self.runs
        return next(iter(blocks(runs, self.others)), None) if len(runs) else None


def in_lines(data: pd.DataFrame, columns: Sequence[str], names: Sequence[str]) -> Lines:
    """Place rows in the lines of a table of the paper with these names; `columns` names the column of each row."""
    runs = placed(data, columns)
    said = {row.line: _called(row, names) for row in runs.drop_duplicates("line").itertuples()}
    own = paper_line(data, names)
    labels = own.where(own != "", runs.line.map(said).astype(object))
    others = [said[line] for line in runs.line.cat.categories if said[line] in set(labels)]
    order = [*(name for name in names if name in set(labels)), *dict.fromkeys(others)]
    return Lines(runs.assign(line=pd.Categorical(labels, order, ordered=True)), tuple(names))


def _called(row: Any, names: Collection[str]) -> str:
    """What a line is called that is not the paper's."""
    name = str(row.line).replace(row.contender, NAMES[row.contender], 1) if row.contender in OURS else str(row.line)
    return f"{name}, {row.schedule or row.protocol}" if name in names else name


def paper_ranks(numbers: Printed, names: Sequence[str], columns: Sequence[str]) -> dict[str, float]:
    """Rank the paper's own numbers of these lines over the columns that it has for all of them."""
    names = [name for name in names if any(key[0] == name for key in numbers)]
    columns = [column for column in columns if all((name, column) in numbers for name in names)]
    if len(names) < 2 or not columns:
        return {}
    table = pd.DataFrame([[numbers[name, column] for name in names] for column in columns], columns, names)
    return dict(zip(names, average_ranks(table).tolist(), strict=True))


def of_the_papers_lines(data: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Keep the rows of the paper's lines and variants, and of the controls; which of these have no rank."""
    names = printed_names(set(data.suite))
    chosen = (paper_line(data, names) != "") | data.contender.isin(variant_names())
    outside = tuple(name for name in CONTROLS if name not in set(data.contender[chosen]))
    return data[chosen | data.contender.isin(CONTROLS)], outside
