"""Ablations: variants of Di-COT over families of data sets, as differences from it and beside the paper's averages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from dicot.data.datasets import DATASETS, family_of
from dicot.judge.protocols import find_metric
from dicot.judge.report.frame import (
    SETTINGS,
    compact,
    data_sets,
    decimals,
    direction,
    metric_of,
    natural,
    note,
    placed,
    require_controls,
    seeds_of,
)
from dicot.judge.report.parts import Part
from dicot.judge.report.scores import seeds_text
from dicot.judge.report.standings import blocks, standings
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, Table, best_note, mark_best, signed, text_table
from dicot.paper.lines import column_of
from dicot.paper.numbers import NAMES, paper_tables

METHOD = "dicot"
# Where the method itself stands under another name, and where the paper's table has one.
TWO_BLOCKS = "Global Fixed Splits (k) -> 2"
BASES = {"extended_ablation": "Uniform Splits Sampling (k_{max}) -> 10", "positive_selection": "Preceding Sub-block"}
TABLES = {"extended_ablation": "ablation_extended"}
# (family, protocol, metric) -> the paper's column, by either of the names that its tables give it, and its data sets
COLUMNS = {
    ("large", "linear", "accuracy"): (("large", "linear"), 6),
    ("ucr", "linear", "accuracy"): (("ucr",), 124),
    ("uea", "linear", "accuracy"): (("uea",), 28),
    ("large", "few_1pct", "accuracy"): (("linear_1pct",), 6),
    ("large", "knn_500", "accuracy"): (("knn_500",), 6),
    ("large", "clustering", "nmi"): (("nmi",), 6),
    ("large", "clustering", "ari"): (("ari",), 6),
    ("transfer", "linear", "accuracy"): (("transfer",), 4),
}
PLAIN = ("linear", "accuracy", "clustering")  # words that go without saying in the name of a group
Rows = Mapping[str, Mapping[str, float]]  # a table of the paper, by row and column


@dataclass(frozen=True, eq=False)
class Group:
    """A column: a family of data sets, scored one way."""

    name: str
    runs: pd.DataFrame
    averages: dict[str, float]  # by line
    n_sets: int  # that the averages are taken over
    paper_names: tuple[str, ...]
    paper_sets: int

    @property
    def same_sets(self) -> bool:
        """Whether the average is over the paper's own sets, all of them."""
        pairs = set(zip(self.runs.source, self.runs.target, strict=True))
        return self.n_sets == self.paper_sets and all(column_of(*pair).exact for pair in pairs)

    def absent(self, line: str) -> Cell:
        """Say that a line has no average, and on how many sets it was run."""
        run = self.runs[self.runs.line == line].column.nunique()
        return Cell(f"{run} of {self.n_sets} sets" if run else NOT_RUN, ABSENT)


def groups(data: pd.DataFrame) -> list[Group]:
    """Make the columns of the paper's tables that there are records of; what is in no archive counts as large."""
    runs = placed(data, data_sets(data), SETTINGS)
    family = data.target.map(lambda name: found if (found := family_of(name)) in ("ucr", "uea") else "large")
    family = family.where(data.source == data.target, "transfer")
    out = []
    for key, (names, count) in COLUMNS.items():
        chosen = runs[(family == key[0]) & (data.protocol == key[1]) & (data.metric == key[2])]
        if len(chosen):
            block = next(iter(blocks(compact(chosen))), None)
            averages = {} if block is None else standings(block).average.to_dict()
            sets = 0 if block is None else len(block.columns)
            name = ", ".join(word for word in key if word not in PLAIN)
            out.append(Group(name, chosen, averages, sets, names, count))
    return out


def variant_tables(suite: str, families: list[Group]) -> Iterator[Part]:
    """Show averages as differences from the method itself, then beside the paper's."""
    runs = compact(pd.concat([group.runs for group in families]))
    require_controls(runs, "Variants")
    lines = runs.drop_duplicates("line").set_index("line").sort_index()[list(SETTINGS)]
    base = BASES.get(suite, METHOD)
    trained = {tuple(row): line for line, row in lines.iterrows()}
    bases = {line: trained.get((base, *row.iloc[1:])) for line, row in lines.iterrows()}  # trained like the line
    columns = [
        mark_best([_beside_base(group, *pair) for pair in bases.items()], direction(metric_of(group.runs).iloc[0]))
        for group in families
    ]
    bold = best_note(direction(metric_of(group.runs).iloc[0]) for group in families).partition(" mean")[0]
    printed: Rows = paper_tables()[TABLES.get(suite, suite)]
    lacking = _lacking(families, printed)
    about = f"In brackets the difference from {base!r}. {bold}."
    if lacking:
        about += f" No record of {', '.join(name for name, *_ in lacking)}: the paper's numbers are below."
    yield Part("Averages and differences from the method itself", _table(runs, families, columns, about))
    names = {line: NAMES[METHOD] if name == METHOD else name for line, name in lines.contender.items()}
    names |= {name: name for name in printed if name not in names.values()}
    columns = [[_beside_paper(group, line, printed.get(names[line], {})) for line in names] for group in families]
    about = "Ours (the paper's, difference). No difference where the paper's average is over other data sets."
    more = {}
    for name, n_sets, digits in lacking:
        theirs = (f" ({printed[own][name]:.{digits}f})" if own in printed else "" for own in names.values())
        more[f"{name} (0 of the paper's {n_sets} sets)"] = [Cell(NOT_RUN + text, ABSENT) for text in theirs]
    yield Part("Ours beside the paper", _table(runs, families, columns, about, list(names), more))


def _beside_base(group: Group, line: str, base: str | None) -> Cell:
    own, d = group.averages.get(line), decimals(group.runs)
    if own is None:
        return group.absent(line)
    reference = group.averages.get(base) if base not in (None, line) else None
    gap = "" if reference is None else f" ({signed(own - reference, d)})"
    return Cell(f"{own:.{d}f}{gap}", mean=round(own, d))


def _beside_paper(group: Group, line: str, row: Mapping[str, float]) -> Cell:
    own, d = group.averages.get(line), decimals(group.runs)
    theirs = next((row[name] for name in group.paper_names if name in row), None)
    cell = group.absent(line) if own is None else Cell(f"{own:.{d}f}")
    if theirs is None:
        return cell
    gap = f", {signed(own - theirs, d)}" if own is not None and group.same_sets else ""
    return cell._replace(text=f"{cell.text} ({theirs:.{d}f}{gap})")


def _lacking(families: list[Group], printed: Rows) -> list[tuple[str, int, int]]:
    """List the columns of the paper's table that there is no record of: name, data sets of the paper's, decimals."""
    known = {name for group in families for name in group.paper_names}
    found = {name for row in printed.values() for name in row} - known
    return [
        (name, n_sets, find_metric(metric).decimals)
        for (*_, metric), (names, n_sets) in COLUMNS.items()
        for name in names
        if name in found and not known & set(names)
    ]


def _table(
    runs: pd.DataFrame,
    families: list[Group],
    columns: list[list[Cell]],
    about: str,
    lines: Sequence[str] = (),
    more: Mapping[str, list[Cell]] | None = None,
) -> Table:
    headings = [f"{group.name} ({group.n_sets} of {group.runs.column.nunique()} sets)" for group in families]
    more = more or {}
    rows = zip(lines or runs.line.cat.categories, zip(*columns, *more.values(), strict=True), strict=True)
    about = note(runs, seeds_text(seeds_of(runs), "Means over"), about, without_loss(runs))
    return text_table("variant", rows, [*headings, *more], about)


def without_loss(runs: pd.DataFrame) -> str:
    """Name the sets on which two fixed sub-blocks become one by the paper's rounding, so that nothing is learned."""
    sets = [name for name in dict.fromkeys(runs.source[runs.contender == TWO_BLOCKS]) if _one_block(name)]
    if not sets:
        return ""
    return (
        f"{TWO_BLOCKS}: one sub-block by the paper's rounding on {', '.join(sorted(sets, key=natural))} (D-03): the "
        "loss is 0 there, and nothing is learned."
    )


def _one_block(name: str) -> bool:
    known = DATASETS.registered(name)
    if known is None or known.sizes is None or known.sizes.n_times is None:
        return False
    length = 2 * round(known.sizes.n_times / 1.5 / 2)  # k = 2 with half of a block shared
    return length + round(length / 2) > known.sizes.n_times
