"""What a suite's report shows: one layout per kind of suite, and one for suites that have none."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dicot.report.bench_tables import data_set_table
from dicot.report.cost import cost_drafts, is_cost
from dicot.report.curves import reference_curves
from dicot.report.grid import Grid, column_of, grid, joined, natural
from dicot.report.paper import ALL_LABELS
from dicot.report.parts import Draft, Part, Request
from dicot.report.standing import blocks
from dicot.report.suite_parts import NO_BLOCK, average_bars, beside_paper, in_brief, overall, per_data_set
from dicot.report.variants import variant_drafts

if TYPE_CHECKING:
    from dicot.bench.record import Record

KINDS = ("all labels", "few labels", "fine-tuning", "nearest neighbour")  # any other protocol is a kind of its own
FINE_TUNING = "finetune-"
MAIN_METRICS = ("accuracy", "nmi", "ari")  # the paper's; the CSV file holds all


def kind_of(protocol: str, apart: bool = False) -> str:
    """Protocols that use as many labels stand in one table; `apart` keeps fine-tuning, which trains, by itself."""
    if apart and protocol.startswith(FINE_TUNING):
        return KINDS[2]
    if protocol in ALL_LABELS:
        return KINDS[0]
    if protocol.startswith(("few_", FINE_TUNING)):
        return KINDS[1]
    return KINDS[3] if protocol.startswith("knn_") else protocol


def kinds(records: "Sequence[Record]", apart: bool = False) -> dict[str, list[str]]:
    """The protocols there are, by kind."""
    out: dict[str, list[str]] = {}
    for protocol in sorted({record.protocol for record in records}, key=natural):
        out.setdefault(kind_of(protocol, apart), []).append(protocol)
    return dict(sorted(out.items(), key=lambda item: KINDS.index(item[0]) if item[0] in KINDS else len(KINDS)))


def scores(request: Request) -> list[Draft]:
    """One score per contender and data set: standings, ranks, time, the paper, data sets."""
    found = kinds([record for record in request.records if record.metric == "accuracy"])
    drafts = []
    for kind, protocols in found.items():
        table, name = grid(request.records, "accuracy", protocols), "" if len(found) == 1 else kind
        drafts += overall(table, request, name) + beside_paper(table, request, name) + per_data_set(table, name)
    return drafts


def low_label(request: Request) -> list[Draft]:
    """The same, with bars in front."""
    found = kinds([record for record in request.records if record.metric == "accuracy"])
    first = [grid(request.records, "accuracy", protocols) for protocols in found.values()][:1]
    return [draft for table in first for draft in average_bars(table)] + scores(request)


def knn(request: Request) -> list[Draft]:
    """Averages over labelled cases per class, then each number of cases by itself."""
    protocols = sorted({r.protocol for r in request.records if r.metric == "accuracy"}, key=natural)
    tables = {protocol: grid(request.records, "accuracy", [protocol]) for protocol in protocols}
    drafts: list[Draft] = [partial(_curves, tables)]
    for protocol, table in tables.items():
        drafts += in_brief(table, protocol) + beside_paper(table, request, protocol)
        drafts += per_data_set(table, protocol)
    return drafts


def _curves(tables: dict[str, Grid]) -> list[Part]:
    """The averages by every protocol as one table and one figure."""
    title = "Average over data sets by number of labelled cases"
    averages: list[Record] = []
    for protocol, table in tables.items():
        for block in blocks(table)[:1]:
            for line in block.lines:
                example = next(iter(table.runs(line, block.columns[0]).values()))
                averages += [
                    replace(example, source=protocol, target=protocol, protocol="knn", seed=seed, value=value)
                    for seed, value in table.over(line, block.columns).items()
                ]
    if not averages:
        return [Part(title, text=NO_BLOCK)]
    together = grid(averages, "accuracy")
    curves = {together.labels[line]: row.tolist() for line, row in zip(together.lines, together.means, strict=True)}
    ticks = [protocol.removeprefix("knn_") for protocol in together.columns]
    figure = {"knn-curves": reference_curves(curves, ticks, "labelled cases per class", "average accuracy")}
    sets = ", ".join(f"{p} {len(blocks(t)[0].columns)}" for p, t in tables.items() if blocks(t))
    text = f"Averages over the data sets that every contender has; number of sets: {sets}."
    return [Part(title, data_set_table(together), figure, text)]


def clustering(request: Request) -> list[Draft]:
    """NMI and ARI, and ranks over both as the paper's."""
    tables = [grid(request.records, metric) for metric in ("nmi", "ari")]
    drafts = overall(joined(tables), request, "NMI and ARI together")
    for table in tables:
        name = table.metric.upper()
        drafts += in_brief(table, name) + beside_paper(table, request, name) + per_data_set(table, name)
    return drafts


def generic(request: Request) -> list[Draft]:
    """Per data set and kind of protocol one table, contenders down, protocols across."""
    drafts: list[Draft] = []
    for column in sorted({column_of(record) for record in request.records}, key=natural):
        own = [record for record in request.records if column_of(record) == column]
        for kind, protocols in kinds([record for record in own if not is_cost(record)], apart=True).items():
            chosen = [record for record in own if record.protocol in protocols]
            drafts.append(partial(_by_protocol, chosen, f"{column}, {kind}"))
    return drafts + cost_drafts(request)


def _by_protocol(records: "Sequence[Record]", title: str) -> list[Part]:
    found = {record.metric for record in records}
    moved = [replace(r, source=r.protocol, target=r.protocol, protocol="") for r in records]
    grids = [grid(moved, metric) for metric in [m for m in MAIN_METRICS if m in found] or sorted(found)]
    return [Part(title, data_set_table(grids[0] if len(grids) == 1 else joined(grids)))]


def batch_scaling(request: Request) -> list[Draft]:
    """Costs by batch size; scores, where there are any, with each batch size as a contender."""
    others = [
        replace(r, contender=f"{r.contender}, batch {r.batch_size}") if r.batch_size else r
        for r in request.records
        if not is_cost(r)
    ]
    return cost_drafts(request) + generic(replace(request, records=tuple(others)))


LAYOUTS: dict[str, Callable[[Request], list[Draft]]] = {
    "smoke": generic,
    "large": scores,
    "low_label": low_label,
    "knn": knn,
    "clustering": clustering,
    "transfer": scores,
    "ucr": scores,
    "uea": scores,
    "ablation": variant_drafts,
    "extended_ablation": variant_drafts,
    "positive_selection": variant_drafts,
    "batch_scaling": batch_scaling,
}


def layout(suite: str) -> Callable[[Request], list[Draft]]:
    """How this suite is shown; one that is not known here is shown protocol by protocol."""
    return LAYOUTS.get(suite, generic)
