"""The paper's lines: which rows of ours stand for a line of one of its tables, and what stands below them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dicot.judge.report.frame import CONTROLS, LINE, PAPER_SCHEDULE, SAME_LABELS, compact, placed
from dicot.judge.report.standings import Block, blocks
from dicot.judge.report.stats import average_ranks
from dicot.paper.numbers import METHODS, NAMES, Printed, paper_name, printed_names, variant_names
from dicot.paper.places import of_the_paper

USUAL = ("", "float32")  # precisions
PROBES = ("ridge", "forest", "linear")  # of several that stand for one line of the paper, the first: D-37
OURS = (*METHODS, "minirocket")  # whose other lines are called after the paper's name too


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
