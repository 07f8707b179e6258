"""Ablations: variants of one method over families of data sets, as differences from the method itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from dicot.data.datasets import DATASETS
from dicot.data.datasets.names import UCR, UEA
from dicot.judge.protocols.metrics import find_metric
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
    shown_metrics,
)
from dicot.judge.report.parts import Part
from dicot.judge.report.scores import seeds_text
from dicot.judge.report.standings import blocks, standings
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, Table, best_note, mark_best, signed, text_table
from dicot.paper.numbers import NAMES, paper_tables
from dicot.paper.places import column_of

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
Printed = Mapping[str, Mapping[str, float]]  # a table of the paper, by row and column
PLAIN = ("linear", "accuracy", "clustering")  # words that go without saying in the name of a group


@dataclass(frozen=True, eq=False)
class Group:
    """A column of the summary: a family of data sets, scored one way."""

    name: str
    runs: pd.DataFrame
    averages: dict[str, float]  # by line
    n_sets: int  # that the averages are taken over
    paper_names: tuple[str, ...] = ()
    paper_sets: int = 0

    @property
    def sign(self) -> int:
        """1 where more is better, -1 where less is."""
        return direction(metric_of(self.runs).iloc[0])

    @property
    def papers_own(self) -> bool:
        """Whether nothing stands in for a set of the paper."""
        pairs = set(zip(self.runs.source, self.runs.target, strict=True))
        return all(column_of(*pair).exact for pair in pairs)


def family_of(data: pd.DataFrame) -> pd.Series:
    """Name the archive that each row's data set is from; everything else counts as large."""
    archive = data.target.map(lambda name: "ucr" if name in UCR else "uea" if name in UEA else "large")
    return archive.where(data.source == data.target, "transfer")


def groups(data: pd.DataFrame) -> list[Group]:
    """Make the columns of the paper's tables that there are records of, then those that the paper does not have."""
    runs = placed(data, data_sets(data), SETTINGS)
    keys = pd.Series(list(zip(family_of(data), data.protocol, data.metric, strict=True)), data.index, dtype=object)
    own = sorted(key for key in set(keys) - set(COLUMNS) if key[2] in shown_metrics(data))
    out = []
    for key in [*COLUMNS, *own]:
        chosen = runs[keys == key]
        if len(chosen):
            block = next(iter(blocks(compact(chosen))), None)
            averages = {} if block is None else standings(block).average.to_dict()
            name = ", ".join(word for word in key if word not in PLAIN)
            sets = 0 if block is None else len(block.columns)
            out.append(Group(name, chosen, averages, sets, *COLUMNS.get(key, ((), 0))))
    return out


def variant_tables(suite: str, families: list[Group], against_paper: bool) -> Iterator[Part]:
    """Show averages as differences from the method itself and, where that is wanted, beside the paper's."""
    runs = compact(pd.concat([group.runs for group in families]))
    require_controls(runs, "Variants")
    lines = runs.drop_duplicates("line").set_index("line").sort_index()[list(SETTINGS)]
    base = BASES.get(suite, METHOD)
    bases = {line: _same_settings(lines, line, base) for line in lines.index}
    columns = [mark_best([_beside_base(group, *pair) for pair in bases.items()], group.sign) for group in families]
    bold = best_note(group.sign for group in families).partition(" mean")[0]
    printed = paper_tables()[TABLES.get(suite, suite)] if against_paper else {}
    lacking = ", ".join(name for name, *_ in _lacking(families, printed))
    about = f"In brackets the difference from {base!r}. {bold}."
    about += f" No record of {lacking}: the paper's numbers are below." if lacking else ""
    yield Part("Averages and differences from the method itself", _table(runs, families, columns, about))
    if against_paper:
        names = {line: NAMES[METHOD] if name == METHOD else name for line, name in lines.contender.items()}
        names |= {name: name for name in printed if name not in names.values()}
        columns = [[_beside_paper(group, line, printed.get(names[line], {})) for line in names] for group in families]
        about = "Ours (the paper's, difference). No difference where the paper's average is over other data sets."
        more = {}
        for name, n_sets, digits in _lacking(families, printed):
            theirs = (f" ({printed[own][name]:.{digits}f})" if own in printed else "" for own in names.values())
            more[f"{name} (0 of the paper's {n_sets} sets)"] = [Cell(NOT_RUN + text, ABSENT) for text in theirs]
        yield Part("Ours beside the paper", _table(runs, families, columns, about, list(names), more))


def _same_settings(lines: pd.DataFrame, line: str, contender: str) -> str | None:
    """Find the line of this contender that was trained like `line`."""
    wanted = (contender, *lines.loc[line].iloc[1:])
    return next((other for other, row in lines.iterrows() if tuple(row) == wanted), None)


def _beside_base(group: Group, line: str, base: str | None) -> Cell:
    own, d = group.averages.get(line), decimals(group.runs)
    if own is None:
        return _absent(group, line)
    reference = group.averages.get(base) if base not in (None, line) else None
    gap = "" if reference is None else f" ({signed(own - reference, d)})"
    return Cell(f"{own:.{d}f}{gap}", mean=round(own, d))


def _beside_paper(group: Group, line: str, row: dict[str, float]) -> Cell:
    own, d = group.averages.get(line), decimals(group.runs)
    printed = next((row[name] for name in group.paper_names if name in row), None)
    if own is None:
        absent = _absent(group, line)
        return absent if printed is None else absent._replace(text=f"{absent.text} ({printed:.{d}f})")
    if printed is None:
        return Cell(f"{own:.{d}f}")
    gap = f", {signed(own - printed, d)}" if group.papers_own and group.n_sets == group.paper_sets else ""
    return Cell(f"{own:.{d}f} ({printed:.{d}f}{gap})")


def _absent(group: Group, line: str) -> Cell:
    """Say that a line has no average, and on how many sets it was run."""
    run = group.runs[group.runs.line == line].column.nunique()
    return Cell(f"{run} of {group.n_sets} sets" if run else NOT_RUN, ABSENT)


def _lacking(families: list[Group], printed: Printed) -> list[tuple[str, int, int]]:
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
    n_times = known.sizes.n_times if known is not None and known.sizes is not None else None
    if n_times is None:
        return False
    length = 2 * round(n_times / 1.5 / 2)  # k = 2 with half of a block shared
    return length + round(length / 2) > n_times
