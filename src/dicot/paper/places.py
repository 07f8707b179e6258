"""Which column of a paper's table a data set of ours stands in: the paper's own set, a stand-in for it, or none."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import pandas as pd

from dicot.data.datasets import DATASETS
from dicot.judge.report.frame import natural
from dicot.paper.numbers import LARGE, paper_name, paper_tables, printed

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
