"""What the reports of the paper's suites show."""

from dataclasses import replace
from functools import partial

import pandas as pd

from dicot.judge.report.figures import dots
from dicot.judge.report.frame import (
    SETTINGS,
    by_data_set,
    compact,
    data_sets,
    means,
    metric_name,
    natural,
    placed,
    seed_averages,
    shown_metrics,
)
from dicot.judge.report.layouts import JOIN, LAYOUTS, NO_BLOCK, Parts, Request, every_part, generic, kinds, overall
from dicot.judge.report.parts import Part
from dicot.judge.report.scores import data_set_table
from dicot.paper.figures import reference_curves
from dicot.paper.timing import TITLES as TIMINGS
from dicot.paper.timing import timing_parts
from dicot.paper.variants import groups, variant_tables


def _tables(data: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Give the runs of each kind of protocol and each metric shown, by name; a single one needs none."""
    out = {}
    for kind, protocols in kinds(data).items():
        own = data[data.protocol.isin(protocols)]
        metrics = shown_metrics(own)
        for metric in metrics:
            out[kind if len(metrics) == 1 else f"{kind}, {metric}"] = by_data_set(own, [metric])
    return out if len(out) != 1 else dict(zip([""], out.values(), strict=True))


def scores(request: Request) -> Parts:
    """Show one score per contender and data set: standings, ranks, time, the paper, data sets."""
    data = request.data[~request.data.metric.isin(TIMINGS)]
    for name, runs in _tables(data).items():
        yield from every_part(runs, request, name)
    yield from timing_parts(request.data)


def low_label(request: Request) -> Parts:
    """Show the same, with a figure in front: averages over data sets, each seed a dot."""
    runs = next(iter(_tables(request.data).values()))
    for block in request.blocks(runs)[:1]:
        seeds = seed_averages(runs, block.columns)
        values = {line: seeds.loc[line].dropna().tolist() for line in block.shown.index}
        values |= {line: [] for line in block.left_out}
        text = f"Average over {len(block.columns)} {block.unit}; large dots: mean over seeds, small dots: seeds."
        figure = {"averages": partial(dots, values, f"average {metric_name(runs)}")}
        yield Part("Averages", figures=figure, text=text)
    yield from scores(request)


def knn(request: Request) -> Parts:
    """Show averages over labelled cases per class, then each number of cases by itself."""
    data = request.data[request.data.metric == "accuracy"]
    yield _label_curve(placed(data, data_sets(data), SETTINGS), request)
    for protocol in sorted(data.protocol.unique(), key=natural):
        yield from every_part(by_data_set(data, ["accuracy"], [protocol]), request, protocol, brief=True)


def _label_curve(runs: pd.DataFrame, request: Request) -> Part:
    """Show the averages by every protocol as one table and one figure."""
    title = "Average over data sets by number of labelled cases"
    averages, sets = [], []
    for protocol in sorted(runs.protocol.unique(), key=natural):
        own = compact(runs[runs.protocol == protocol])
        for block in request.blocks(own)[:1]:
            values = seed_averages(own, block.columns).loc[block.shown.index].stack().rename("value")
            per_seed = own.drop_duplicates(["line", "seed"]).set_index(["line", "seed"]).drop(columns="value")
            averages.append(per_seed.join(values, how="inner").reset_index().assign(column=protocol, error=None))
            sets.append(f"{protocol} {len(block.columns)}")
    if not averages:
        return Part(title, text=NO_BLOCK)
    rows = pd.concat(averages, ignore_index=True)
    together = placed(rows, rows.column, SETTINGS)
    table = means(together)
    ticks = [protocol.removeprefix("knn_") for protocol in table.columns]
    curves = {line: row.tolist() for line, row in table.iterrows()}
    figure = partial(reference_curves, curves, ticks, "labelled cases per class", "average accuracy")
    text = f"Averages over the data sets that every contender has; number of sets: {', '.join(sets)}."
    return Part(title, data_set_table(together), {"knn-curves": figure}, text)


def clustering(request: Request) -> Parts:
    """Show NMI and ARI, and ranks over both as the paper's."""
    yield from overall(by_data_set(request.data, ["nmi", "ari"]), request, "NMI and ARI together")
    for metric in ("nmi", "ari"):
        yield from every_part(by_data_set(request.data, [metric]), request, metric.upper(), brief=True)


def variants(request: Request) -> Parts:
    """Show the differences from the method itself, then every family of data sets by itself."""
    if JOIN in request.suite:
        yield from generic(request)
        return
    families = groups(request.data)
    yield from variant_tables(request.suite, families, request.beside is not None)
    for group in families:
        yield from every_part(compact(group.runs), request, group.name, brief=True)


def batch_scaling(request: Request) -> Parts:
    """Show times by batch size; scores, where there are any, with each batch size as a contender."""
    yield from timing_parts(request.data)
    data = request.data[~request.data.metric.isin(TIMINGS)]
    sized = data.contender + ", batch " + data.batch_size.astype(str)
    yield from generic(replace(request, data=data.assign(contender=sized.where(data.batch_size > 0, data.contender))))


LAYOUTS.update(
    dict.fromkeys(("large", "transfer", "ucr", "uea"), scores)
    | dict.fromkeys(("ablation", "extended_ablation", "positive_selection"), variants)
    | {"low_label": low_label, "knn": knn, "clustering": clustering, "batch_scaling": batch_scaling}
)
