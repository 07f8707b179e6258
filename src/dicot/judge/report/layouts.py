"""What a suite's report shows: the parts that suites share, one layout per kind of suite, one for all others."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import pandas as pd

from dicot.judge.protocols.base import COSTS
from dicot.judge.report.best import SUBJECT, gains
from dicot.judge.report.figures import critical_difference, time_scatter, win_tie_loss
from dicot.judge.report.filenames import slug
from dicot.judge.report.frame import (
    ALL_LABELS,
    SETTINGS,
    by_data_set,
    contender_of,
    data_sets,
    metric_name,
    natural,
    placed,
    seeds_of,
    shown_metrics,
)
from dicot.judge.report.parts import Part
from dicot.judge.report.scores import cost_table, data_set_table, interval_table
from dicot.judge.report.standings import (
    Block,
    baseline_line,
    baseline_table,
    blocks,
    fit_times,
    outcomes,
    standing_table,
)
from dicot.judge.report.stats import friedman_text

JOIN = "+"  # between the names of suites that are one report
NO_BLOCK = "There is no data set on which both controls have a score, so nothing is averaged: see the failures."
KINDS = ("all labels", "few labels", "fine-tuning", "nearest neighbour")  # any other protocol is a kind of its own
FINE_TUNING = "finetune-"

Parts = Iterator[Part]


class Beside(Protocol):
    """Published numbers that ours are shown beside."""

    def parts(self, runs: pd.DataFrame, name: str) -> Parts:
        """Make the parts that stand beside one table of scores."""

    def closing(self) -> Parts:
        """Make the parts at the end of a report."""


@dataclass(frozen=True, eq=False)
class Request:
    """What to report: the rows of one suite, or of several as one, and how. Contenders `outside` have no rank."""

    suite: str
    data: pd.DataFrame
    beside: Beside | None = None  # published numbers
    baseline: str | None = None
    outside: tuple[str, ...] = ()

    def blocks(self, runs: pd.DataFrame) -> list[Block]:
        """Find the complete data sets of a table."""
        return blocks(runs, [line for line, name in contender_of(runs).items() if name in self.outside])


def every_part(runs: pd.DataFrame, request: Request, name: str = "", brief: bool = False) -> Parts:
    """Show standings, time and a baseline over complete data sets, the paper beside ours, and every data set.

    `brief` leaves out times, baseline and the second block: where a suite has many such tables.
    """
    yield from overall(runs, request, name, brief)
    if request.beside is not None:
        yield from request.beside.parts(runs, name)
    yield Part(titled("Scores per data set", name), data_set_table(runs))
    if len(seeds_of(runs)) > 1:
        yield Part(titled("95 % intervals per data set", name), interval_table(runs))


def overall(runs: pd.DataFrame, request: Request, name: str, brief: bool = False) -> Parts:
    """Show standings and critical difference, time and the baseline, for every block of complete data sets."""
    complete = request.blocks(runs)[: 1 if brief else 2]
    if not complete:
        yield Part(titled("Standings", name), text=NO_BLOCK)
    for number, block in enumerate(complete):
        which = name if number == 0 else f"{name}, contenders with every data set".removeprefix(", ")
        stem = stem_of(name) + ("" if number == 0 else "-complete")
        yield from _standings(block, which, stem)
        if not brief:
            yield from times(block, titled(f"Training time and {metric_name(runs)}", which), f"accuracy-time{stem}")
            yield from _baseline(block, which, stem, request.baseline)


def _standings(block: Block, which: str, stem: str) -> Parts:
    yield Part(titled("Standings", which), standing_table(block))
    if len(block.columns) > 1 and len(block.lines) > 1:
        merits = block.merits.to_numpy()
        figure = {f"critical-difference{stem}": partial(critical_difference, merits, block.lines)}
        text = f"{len(block.columns)} {block.unit}. {friedman_text(merits)}"
        yield Part(titled("Critical difference", which), figures=figure, text=text)


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
    figure = partial(time_scatter, points, f"average {metric}", [names.get(block.lines[0], "")])
    yield Part(title, figures={name: figure}, text=text)


def _baseline(block: Block, which: str, stem: str, wanted: str | None) -> Parts:
    against = baseline_line(block, wanted)
    if against is not None and len(block.lines) > 1:
        figure = {f"wins{stem}": partial(win_tie_loss, outcomes(block, against), against)}
        title = titled(f"{against} against each of the others", which)
        yield Part(title, baseline_table(block, against), figure)


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


def best(request: Request) -> Parts:
    """Show what the preset gains, by groups of data sets, and its seconds; then every protocol by itself."""
    for title, table in gains(request.data):
        yield Part(title, table)
    yield from by_protocol(request, brief=True)


def best_ablation(request: Request) -> Parts:
    """Show every protocol by itself, and the preset against each of its variants."""
    yield from by_protocol(replace(request, baseline=request.baseline or SUBJECT))


def by_protocol(request: Request, brief: bool = False) -> Parts:
    """Show every protocol and metric by itself."""
    scored = request.data[~request.data.metric.isin(COSTS)]
    for protocol in sorted(scored.protocol.unique(), key=natural):
        own = scored[scored.protocol == protocol]
        for metric in shown_metrics(own):
            name = protocol if metric == "accuracy" else f"{protocol}, {metric}"
            yield from every_part(by_data_set(own, [metric]), request, name, brief=brief)


def generic(request: Request) -> Parts:
    """Show one table per data set and kind of protocol: contenders down, protocols across; then what runs cost."""
    names = data_sets(request.data)
    for name in sorted(names.unique(), key=natural):
        own = request.data[names == name]
        scored = own[~own.metric.isin(COSTS)]
        for kind, protocols in kinds(scored, apart=True).items():
            chosen = scored[scored.protocol.isin(protocols)]
            chosen = chosen[chosen.metric.isin(shown_metrics(chosen))]
            columns = chosen.protocol if chosen.metric.nunique() == 1 else chosen.protocol + " " + chosen.metric
            yield Part(f"{name}, {kind}", data_set_table(placed(chosen, columns, SETTINGS)))
        if len(costs := own[own.metric.isin(COSTS)]):
            yield Part(f"{name}, cost", cost_table(placed(costs, costs.metric, SETTINGS)))


# A suite that is not here is shown by `generic`. Those of the paper are added by dicot.paper.reports.
LAYOUTS: dict[str, Callable[[Request], Parts]] = {"best": best, "best_ablation": best_ablation}


def layout_of(suite: str) -> Callable[[Request], Parts]:
    """Find what the report of a suite shows; of suites that are joined, what each of them would, if that is one."""
    found = {LAYOUTS.get(name, generic) for name in suite.split(JOIN)}
    return found.pop() if len(found) == 1 else generic


def titled(text: str, name: str) -> str:
    return f"{text}: {name}" if name else text


def stem_of(name: str) -> str:
    """Give a file name's part for `name`, which may be empty."""
    return f"-{slug(name)}".lower().replace("_", "-") if name else ""
