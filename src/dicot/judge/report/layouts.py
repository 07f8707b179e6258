"""What a suite's report shows: the parts that suites share, one layout per kind of suite, one for all others."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd

from dicot.judge.report.best import SUBJECT, gains
from dicot.judge.report.figures import (
    critical_difference,
    dots,
    paper_scatter,
    reference_curves,
    time_scatter,
    win_tie_loss,
)
from dicot.judge.report.filenames import slug
from dicot.judge.report.frame import (
    SETTINGS,
    by_data_set,
    compact,
    contender_of,
    data_sets,
    decimals,
    means,
    metric_name,
    natural,
    placed,
    seed_averages,
    seeds_of,
    shown_metrics,
)
from dicot.judge.report.parts import Part
from dicot.judge.report.scores import MANY_SETS, data_set_table, interval_table
from dicot.judge.report.standings import (
    Block,
    baseline_line,
    baseline_table,
    blocks,
    favourite,
    fit_times,
    outcomes,
    standing_table,
)
from dicot.judge.report.stats import friedman_text
from dicot.paper.against import average_table, cell_table, pairs
from dicot.paper.numbers import ALL_LABELS
from dicot.paper.timing import TITLES as TIMINGS
from dicot.paper.timing import timing_parts
from dicot.paper.variants import groups, variant_tables

JOIN = "+"  # between the names of suites that are one report
NO_BLOCK = "There is no data set on which both controls have a score, so nothing is averaged: see the failures."
KINDS = ("all labels", "few labels", "fine-tuning", "nearest neighbour")  # any other protocol is a kind of its own
FINE_TUNING = "finetune-"


@dataclass(frozen=True, eq=False)
class Request:
    """What to report: the rows of one suite, or of several as one, and how. Contenders `outside` have no rank."""

    suite: str
    data: pd.DataFrame
    against_paper: bool = False
    baseline: str | None = None
    features: Path | None = None
    outside: tuple[str, ...] = ()

    def blocks(self, runs: pd.DataFrame) -> list[Block]:
        """Find the complete data sets of a table."""
        return blocks(runs, [line for line, name in contender_of(runs).items() if name in self.outside])


Parts = Iterator[Part]


def every_part(runs: pd.DataFrame, request: Request, name: str = "", brief: bool = False) -> Parts:
    """Show standings, time and a baseline over complete data sets, the paper beside ours, and every data set.

    `brief` leaves out times, baseline and the second block: where a suite has many such tables.
    """
    yield from overall(runs, request, name, brief)
    if request.against_paper:
        yield from beside_paper(runs, name)
    yield Part(_title("Scores per data set", name), data_set_table(runs))
    if len(seeds_of(runs)) > 1:
        yield Part(_title("95 % intervals per data set", name), interval_table(runs))


def overall(runs: pd.DataFrame, request: Request, name: str, brief: bool = False) -> Parts:
    """Show standings and critical difference, time and the baseline, for every block of complete data sets."""
    complete = request.blocks(runs)[: 1 if brief else 2]
    if not complete:
        yield Part(_title("Standings", name), text=NO_BLOCK)
    for number, block in enumerate(complete):
        which = name if number == 0 else f"{name}, contenders with every data set".removeprefix(", ")
        stem = _stem(name) + ("" if number == 0 else "-complete")
        yield from _standings(block, which, stem)
        if not brief:
            yield from times(block, _title(f"Training time and {metric_name(runs)}", which), f"accuracy-time{stem}")
            yield from _baseline(block, which, stem, request.baseline)


def _standings(block: Block, which: str, stem: str) -> Parts:
    yield Part(_title("Standings", which), standing_table(block))
    if len(block.columns) > 1 and len(block.lines) > 1:
        merits = block.merits.to_numpy()
        figure = {f"critical-difference{stem}": partial(critical_difference, merits, block.lines)}
        text = f"{len(block.columns)} {block.unit}. {friedman_text(merits)}"
        yield Part(_title("Critical difference", which), figures=figure, text=text)


def times(block: Block, title: str, name: str) -> Parts:
    """Show the average score against the time to fit; nothing where fewer than two times were measured."""
    times, averages = fit_times(block), block.shown.mean(axis=1)
    single = {line: next(iter(one.items())) for line, one in times.items() if len(one) == 1}
    usual = Counter(device for device, _ in single.values()).most_common(1)
    names = {line: line + (f" ({on})" if on != usual[0][0] else "") for line, (on, _) in single.items()}
    points = {names[line]: (time, float(averages[line])) for line, (_, time) in single.items() if time > 0}
    if len(points) < 2:
        return
    missing = [line for line in times if names.get(line) not in points]
    text = "Fitting alone, summed over the data sets of the standings: embedding and scoring are not counted."
    text += f" On {usual[0][0]} where nothing else is said: times on different devices do not compare."
    text += f" Not measured alone on one device, or too short to measure: {', '.join(missing)}." if missing else ""
    metric = metric_name(block.runs)
    figure = partial(time_scatter, points, f"average {metric}", [names.get(favourite(block), "")])
    yield Part(title, figures={name: figure}, text=text)


def _baseline(block: Block, which: str, stem: str, wanted: str | None) -> Parts:
    against = baseline_line(block, wanted)
    if against is not None and len(block.lines) > 1:
        figure = {f"wins{stem}": partial(win_tie_loss, outcomes(block, against), against)}
        title = _title(f"{against} against each of the others", which)
        yield Part(title, baseline_table(block, against), figure)


def beside_paper(runs: pd.DataFrame, name: str = "") -> Parts:
    """Show averages and data sets beside the paper's, and a point per data set; nothing where it has no numbers."""
    points = {line: (both.paper.tolist(), both.ours.tolist()) for line, both in pairs(runs).items()}
    if not points:
        return
    figure = {f"against-paper{_stem(name)}": partial(paper_scatter, points, metric_name(runs), decimals(runs))}
    text = "One point per data set; above the line ours is higher. Above each panel the mean difference."
    yield Part(_title("Ours beside the paper", name), average_table(runs), figure, text)
    if runs.column.nunique() <= MANY_SETS:
        yield Part(_title("Ours beside the paper, per data set", name), cell_table(runs))


def kinds(data: pd.DataFrame, apart: bool = False) -> dict[str, list[str]]:
    """Group the protocols that use as many labels; `apart` keeps fine-tuning, which trains, by itself."""

    def kind(protocol: str) -> str:
        if apart and protocol.startswith(FINE_TUNING):
            return KINDS[2]
        if protocol in ALL_LABELS:
            return KINDS[0]
        if protocol.startswith(("few_", "semi_", "forest_", FINE_TUNING)):
            return KINDS[1]
        return KINDS[3] if protocol.startswith("knn_") else protocol

    out: dict[str, list[str]] = {}
    for protocol in sorted(data.protocol.unique(), key=natural):
        out.setdefault(kind(protocol), []).append(protocol)
    return dict(sorted(out.items(), key=lambda item: KINDS.index(item[0]) if item[0] in KINDS else len(KINDS)))


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
    families = groups(request.data)
    yield from variant_tables(request.suite, families, request.against_paper)
    for group in families:
        yield from every_part(compact(group.runs), request, group.name, brief=True)


def best(request: Request) -> Parts:
    """Show what the preset gains, by groups of data sets, and its seconds; then every protocol by itself."""
    for title, table in gains(request.data):
        yield Part(title, table)
    yield from _by_protocol(request, brief=True)


def best_ablation(request: Request) -> Parts:
    """Show every protocol by itself, and the preset against each of its variants."""
    yield from _by_protocol(replace(request, baseline=request.baseline or SUBJECT))


def _by_protocol(request: Request, brief: bool = False) -> Parts:
    scored = request.data[~request.data.metric.isin(TIMINGS)]
    for protocol in sorted(scored.protocol.unique(), key=natural):
        own = scored[scored.protocol == protocol]
        for metric in shown_metrics(own):
            name = protocol if metric == "accuracy" else f"{protocol}, {metric}"
            yield from every_part(by_data_set(own, [metric]), request, name, brief=brief)


def generic(request: Request) -> Parts:
    """Show one table per data set and kind of protocol: contenders down, protocols across; then times."""
    data = request.data[~request.data.metric.isin(TIMINGS)]
    names = data_sets(data)
    for name in sorted(names.unique(), key=natural):
        own = data[names == name]
        for kind, protocols in kinds(own, apart=True).items():
            chosen = own[own.protocol.isin(protocols)]
            chosen = chosen[chosen.metric.isin(shown_metrics(chosen))]
            columns = chosen.protocol if chosen.metric.nunique() == 1 else chosen.protocol + " " + chosen.metric
            runs = placed(chosen, columns, SETTINGS)
            yield Part(f"{name}, {kind}", data_set_table(runs))
    yield from timing_parts(request.data)


def batch_scaling(request: Request) -> Parts:
    """Show times by batch size; scores, where there are any, with each batch size as a contender."""
    yield from timing_parts(request.data)
    data = request.data[~request.data.metric.isin(TIMINGS)]
    sized = data.contender + ", batch " + data.batch_size.astype(str)
    yield from generic(replace(request, data=data.assign(contender=sized.where(data.batch_size > 0, data.contender))))


LAYOUTS: dict[str, Callable[[Request], Parts]] = {  # a suite that is not here is shown by `generic`
    "large": scores,
    "low_label": low_label,
    "knn": knn,
    "clustering": clustering,
    "transfer": scores,
    "ucr": scores,
    "uea": scores,
    "ablation": variants,
    "extended_ablation": variants,
    "positive_selection": variants,
    "batch_scaling": batch_scaling,
    "best": best,
    "best_ablation": best_ablation,
}


def layout_of(suite: str) -> Callable[[Request], Parts]:
    """Find what the report of a suite shows; of suites that are joined, what each of them would, if that is one."""
    found = {LAYOUTS.get(name, generic) for name in suite.split(JOIN)}
    return found.pop() if len(found) == 1 and (JOIN not in suite or found == {scores}) else generic


def _title(text: str, name: str) -> str:
    return f"{text}: {name}" if name else text


def _stem(name: str) -> str:
    """Give a file name's part for `name`, which may be empty."""
    return f"-{slug(name)}".lower().replace("_", "-") if name else ""
