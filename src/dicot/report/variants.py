"""Ablations: variants of one method over families of data sets, as differences from the method itself."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dicot.datasets.names import UCR, UEA
from dicot.report.comparison import NOT_RUN, Cell, Table, mark_best, seeds_text, signed
from dicot.report.grid import Grid, grid
from dicot.report.lines import Line, line_labels, require_controls, table_note
from dicot.report.paper import NAMES, paper_tables
from dicot.report.parts import Draft, Part, Request
from dicot.report.standing import Standing, blocks, standings
from dicot.report.suite_parts import in_brief, per_data_set

if TYPE_CHECKING:
    from dicot.bench.record import Record

METHOD = "dicot"
# Where the method itself stands under another name, and where the paper's table has one.
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


@dataclass(frozen=True, eq=False)
class Group:
    """A column of the summary: a family of data sets, scored one way. Places are of lines without their protocol."""

    name: str
    table: Grid
    n_sets: int
    places: dict[Line, Standing]
    paper_names: tuple[str, ...]
    paper_sets: int


def family(record: "Record") -> str:
    """The archive a data set is from; everything else counts as large."""
    if record.source != record.target:
        return "transfer"
    return "ucr" if record.target in UCR else "uea" if record.target in UEA else "large"


def groups(request: Request) -> list[Group]:
    """The columns of the paper's tables that there are records of."""
    out = []
    for key, (names, count) in COLUMNS.items():
        kept = [r for r in request.records if (family(r), r.protocol, r.metric) == key]
        if not kept:
            continue
        table = grid(kept, key[2])
        block = next(iter(blocks(table)), None)
        places = {} if block is None else {_bare(line): s for line, s in standings(table, block).items()}
        name = ", ".join(word for word in key if word not in ("linear", "accuracy", "clustering"))
        out.append(Group(name, table, len(block.columns) if block else 0, places, names, count))
    return out


def variant_drafts(request: Request) -> list[Draft]:
    """The summary, then every group by itself."""
    found = groups(request)
    drafts: list[Draft] = [partial(_summary, request, found)]
    for group in found:
        drafts += in_brief(group.table, group.name) + per_data_set(group.table, group.name)
    return drafts


def _summary(request: Request, found: list[Group]) -> list[Part]:
    base = BASES.get(request.suite, METHOD)
    columns = [mark_best([_beside_base(group, line, base) for line in _lines(found)]) for group in found]
    note = f"In brackets the difference from {base!r}. Bold: highest."
    out = [Part("Averages and differences from the method itself", _table(found, columns, note))]
    if request.against_paper:
        rows = paper_tables()[TABLES.get(request.suite, request.suite)]
        printed = [[_beside_paper(group, line, rows) for line in _lines(found)] for group in found]
        note = "Ours (the paper's, difference). No difference where the paper's average is over other data sets."
        out.append(Part("Ours beside the paper", _table(found, printed, note)))
    return out


def _beside_base(group: Group, line: Line, base: str) -> Cell:
    own, d = group.places.get(line), group.table.decimals
    reference = group.places.get(replace(line, contender=base))
    if own is None:
        return Cell(NOT_RUN, failed=True)
    gap = "" if reference is None or reference is own else f" ({signed(own.average - reference.average, d)})"
    return Cell(f"{own.average:.{d}f}{gap}", mean=round(own.average, d))


def _beside_paper(group: Group, line: Line, rows: dict[str, dict[str, float]]) -> Cell:
    own, d = group.places.get(line), group.table.decimals
    if own is None:
        return Cell(NOT_RUN, failed=True)
    row = rows.get(NAMES[METHOD] if line.contender == METHOD else line.contender, {})
    printed = next((row[name] for name in group.paper_names if name in row), None)
    if printed is None:
        return Cell(f"{own.average:.{d}f}")
    gap = f", {signed(own.average - printed, d)}" if group.n_sets == group.paper_sets else ""
    return Cell(f"{own.average:.{d}f} ({printed:.{d}f}{gap})")


def _bare(line: Line) -> Line:
    return replace(line, protocol="")


def _lines(found: list[Group]) -> list[Line]:
    """One line per contender and schedule, whatever the protocol."""
    return sorted({_bare(line) for group in found for line in group.table.lines}, key=lambda line: line.place)


def _table(found: list[Group], columns: list[list[Cell]], note: str) -> Table:
    lines = _lines(found)
    require_controls(lines, "Variants")
    records = [record for group in found for record in group.table.records]
    seeds = sorted({record.seed for record in records})
    text = table_note(records, lines, seeds_text(seeds, "Means over"), note)
    labels = line_labels(lines)
    names = tuple(f"{group.name} ({group.n_sets} of {len(group.table.columns)} sets)" for group in found)
    rows = tuple(zip(*columns, strict=True))
    return Table("variant", names, tuple(labels[line] for line in lines), rows, text)
