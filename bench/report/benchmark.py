"""The report of a suite: what it comes to, then the parts that suites share, in one layout per kind of suite."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from bench.datasets.names import DEVELOPMENT
from bench.report import frame, scores
from bench.report.best import INSTANT, OF_THE_BOX, SEEN, SUBJECTS, SUITE, by_own_classifier, gains
from bench.report.figures import critical_difference, time_scatter
from bench.report.pages import slug, write_pages
from bench.report.stats import friedman_text
from dicot.core.errors import InputError, did_you_mean, lookup
from dicot.data.datasets import family_of
from dicot.judge.classical import CLASSICAL
from dicot.judge.protocols import PROTOCOLS
from dicot.judge.protocols.base import COSTS
from dicot.judge.report import frame as tidy
from dicot.judge.report.page import Part
from dicot.judge.report.ranking import SETS, Ranking, Trial, training_gaps
from dicot.judge.report.scores import equal_note, equal_protocols, failures, score_table, seeds_text
from dicot.judge.report.tables import text_table
from dicot.judge.report.verdict import decide
from dicot.judge.report.wording import GAP_COLUMNS, worded
from dicot.judge.result import BASELINE, CONTROL, PRETRAINED, SUPERVISED

JOIN = "+"  # between the names of suites that are one report
NO_BLOCK = "There is no data set on which both controls have a score, so nothing is averaged: see the failures."
HOW_TO_GET = (
    "`python -m bench list datasets NAME` says how to get a data set; after that, run the same "
    "`python -m bench run` again."
)
JOB = ["contender", "source", "target", "protocol", "schedule", "batch_size", "seed"]
KINDS = ("all labels", "few labels", "fine-tuning", "nearest neighbour")  # any other protocol is a kind of its own
FINE_TUNING = "finetune-"
ROLES = dict.fromkeys(frame.REFERENCES, SUPERVISED) | dict.fromkeys(CLASSICAL, BASELINE)
ROLES |= dict.fromkeys((*frame.CONTROLS, *OF_THE_BOX), CONTROL)
FAMILIES = {"ucr": "UCR", "uea": "UEA", "large": "Large sets"}
Parts = Iterator[Part]


@dataclass(frozen=True, eq=False)
class Request:
    """What to report: the newest rows of one suite, or of several as one, and how."""

    suite: str  # or several, joined: ucr+uea
    data: pd.DataFrame
    beside: Any = None  # published numbers: makes `parts(runs, name)` and the `closing()` ones of a report
    baseline: str | None = None
    lacking: Sequence[tuple[str, str]] = ()  # data sets (source, target) that the suite has no record of
    older: int = 0  # rows that were recorded again since

    @classmethod
    def of(cls, suite: str, data: pd.DataFrame, **how: Any) -> "Request":
        """Find the newest rows of a suite, or of several that are joined; `data` may hold other suites too."""
        asked, names = cls(suite, data, **how), suite.split(JOIN)
        own = data[data.suite.isin(names)]
        if SUITE in names:
            own = by_own_classifier(own)
        for name in (name for name in names if name not in set(own.suite)):
            near = did_you_mean(name, sorted(set(data.suite)))
            hint = f"It was to run on {asked.absent}. {HOW_TO_GET}" if asked.absent else near
            raise InputError(f"There are no records of the suite {name!r}. {hint}")
        if asked.baseline is not None:
            lookup(dict.fromkeys(own.contender), asked.baseline.partition(", ")[0], "contender")
        newest = frame.latest(own, ["batch_size"] if "batch_scaling" in names else [])
        return replace(asked, data=newest, older=len(own) - len(newest))

    @property
    def absent(self) -> str:
        """The data sets and transfers without a record."""
        names = {target if source == target else f"{source} > {target}" for source, target in self.lacking}
        return ", ".join(sorted(names, key=tidy.natural))

    def block(self, runs: pd.DataFrame) -> scores.Block | None:
        """Find the complete data sets of a table; a line that has less than half of them costs no other its sets."""
        names, sets = frame.contender_of(runs), frame.means(runs).notna().sum(axis=1)
        few = [line for line in sets.index[2 * sets < sets.max()] if names.get(line) not in frame.CONTROLS]
        return scores.block_of(runs, few)

    def parts(self) -> Parts:
        """Make everything the report shows, in order: what it comes to first; failures and the paper's sums last."""
        yield from decision_parts(self)
        layouts = {LAYOUTS.get(name, generic) for name in self.suite.split(JOIN)}
        yield from (layouts.pop() if len(layouts) == 1 else generic)(self)
        if (failed := scores.failure_table(self.data)) is not None:
            yield Part("Failed jobs", failed)
        if self.beside is not None:
            yield from self.beside.closing()

    def facts(self, command: str = "") -> dict[str, object]:
        """Say where the numbers come from."""
        facts = report_facts(self.data)
        facts |= {"no record of": f"{self.absent}. {HOW_TO_GET}"} if self.absent else {}
        facts |= {"left out": f"{self.older} older records of cells that were recorded again"} if self.older else {}
        return facts | ({"command": command} if command else {})


def write_report(folder: Path, suite: str, data: pd.DataFrame, *, command: str = "", **how: Any) -> list[Path]:
    """Write report.html, report.md and the figures as .svg into the folder; `how` names fields of a Request."""
    request = Request.of(suite, data, **how)
    title = f"Benchmark: {suite.replace(JOIN, ' and ')}"
    return write_pages(folder, title, request.parts(), request.facts(command), frame.trial_note(request.data))


def report_facts(data: pd.DataFrame) -> dict[str, object]:
    def listed(values: Iterable[str]) -> str:
        return ", ".join(sorted({value for value in values if value})) or "not said"

    jobs = data.error.notna().groupby([data[name] for name in JOB]).any()
    dates = sorted(set(data.recorded) - {""})
    return {
        "jobs": f"{len(jobs)}, of which {jobs.sum()} failed",
        "data sets": len({*data.source, *data.target}),
        "contenders": data.contender.nunique(),
        "seeds": ", ".join(map(str, tidy.seeds_of(data))),
        "devices": listed(data.device),
        "versions": listed(f"dicot {version}" if version else "" for version in data.version),
        "recorded": f"{dates[0]} to {dates[-1]}" if dates else "not said",
        "report made": date.today().isoformat(),
    }


# What it comes to


def decision_parts(request: Request) -> Parts:
    """Say of each family who is ahead, by how much, beyond noise or not, and what to do; then every protocol.

    It is the verdict of an evaluation, with data sets in the place of seeds. Nothing is said where no block of data
    sets has the controls. Families are not averaged with each other: of one with 89 sets and one with 3 the first would
    decide alone.
    """
    equal = equal_protocols(request.data)
    repeated = [name for alike in equal for name in alike[1:]]
    data = request.data[~request.data.protocol.isin(repeated) & ~request.data.metric.isin(COSTS)]
    chosen_on = frame.data_sets(data).isin(DEVELOPMENT) & bool(set(SUBJECTS) & set(data.contender))
    data = data[~chosen_on]
    sentences, rows = [], []
    families = frame.data_sets(data).map(_family)
    several = families.nunique() > 1
    sizes = frame.data_sets(data).groupby(families).nunique()
    for family in sorted(sizes.index, key=lambda name: (-sizes[name], tidy.natural(name))):  # the surest first
        rankings = list(_rankings(data[families == family], request))
        if not rankings:
            continue
        gaps = training_gaps(rankings)
        found = worded(decide(rankings[0], gaps), with_notes=False)
        sentences += [f"{family}. " * several + found.sentence, " ".join(found.more)]
        for gap in gaps:
            ranking = gap.ranking
            controls = [ranking.shown(name) if name in ranking.names else "" for name in frame.CONTROLS]
            sets = str(len(ranking.scores) if ranking.unit == SETS else 1)
            rows.append((f"{family}: " * several + ranking.measure, [*gap.row(), *controls, sets]))
    if sentences:
        yield Part("", lead=tuple(sentences))
    if rows:
        protocols = [name for name in sorted(data.protocol.unique(), key=tidy.natural) if name in PROTOCOLS]
        told_by = frame.note(
            data,
            "A difference above 0 is in favour of training. Intervals are over five data sets or more, of a single one "
            "over seeds, and allow for the choice among rivals (Bonferroni).",
            f"Development sets are left out. {SEEN[False]}" if chosen_on.any() else "",
            equal_note(equal),
            *(f"{name}: {PROTOCOLS[name]().description.rstrip('.')}." for name in protocols),
        )
        columns = [*GAP_COLUMNS, *frame.CONTROLS, "sets"]
        yield Part("Training beside none", text_table("family, protocol, metric", rows, columns, told_by))


def _family(name: str) -> str:
    """Name the family of a data set or transfer; a set that no registry knows is its own."""
    first = name.partition(" > ")[0].partition(" (")[0]
    found = family_of(first)
    return first if found is None else FAMILIES.get(found, found)


def _rankings(data: pd.DataFrame, request: Request) -> Iterator[Ranking]:
    """Rank by each protocol that the controls have too, those with all labels and the most contenders first."""
    who = data.groupby("protocol").contender.unique()
    measures = Trial(data, {}).measures()
    order = {name: (name not in frame.ALL_LABELS, -len(who[name]), tidy.natural(name)) for name in measures}
    for protocol in sorted(measures, key=order.__getitem__):
        if set(frame.CONTROLS) <= set(who[protocol]):
            own = data[(data.protocol == protocol) & (data.metric == measures[protocol])]
            block = request.block(frame.by_data_set(own, [measures[protocol]]))
            if block is not None and len((ranking := _ranking(block, protocol, measures[protocol])).names) > 1:
                yield ranking


def _ranking(block: scores.Block, protocol: str, metric: str) -> Ranking:
    """Rank the lines of a block by their mean over its data sets; on a single one, over seeds."""
    who: Mapping[str, str] = frame.contender_of(block.runs)
    trial = Trial(block.runs, {line: ROLES.get(who[line], PRETRAINED) for line in block.shown.index})
    if len(block.columns) == 1:
        runs = block.own_runs
        table = runs.pivot_table(index=["seed", "draw"], columns="line", values="value", observed=True).dropna(axis=1)
        return Ranking(trial, protocol, metric, table).ordered()
    table = block.shown.T.copy()
    table.index = pd.MultiIndex.from_arrays([range(len(table)), [0] * len(table)], names=["seed", "draw"])
    return Ranking(trial, protocol, metric, table, SETS).ordered()


# What suites show


def every_part(runs: pd.DataFrame, request: Request, name: str = "", brief: bool = False) -> Parts:
    """Show standings over complete data sets, times and a baseline unless `brief`, the paper's, and every data set."""
    block, stem = request.block(runs), f"-{slug(name)}".lower().replace("_", "-") if name else ""
    if block is None:
        yield Part(titled("Standings", name), text=NO_BLOCK)
    else:
        yield Part(titled("Standings", name), scores.standing_table(block))
        if len(block.columns) > 1 and len(block.lines) > 1:
            merits = block.merits.to_numpy()
            figure = {f"critical-difference{stem}": partial(critical_difference, merits, block.lines)}
            text = f"{len(block.columns)} {block.unit}. {friedman_text(merits)}"
            yield Part(titled("Critical difference", name), figures=figure, text=text)
        if not brief:
            title = titled(f"Training time and {frame.metric_name(runs)}", name)
            yield from times(block, title, f"accuracy-time{stem}")
            against = scores.baseline_line(block, request.baseline)
            if against is not None and len(block.lines) > 1:
                yield Part(titled(f"{against} against each of the others", name), scores.baseline_table(block, against))
    if request.beside is not None:
        yield from request.beside.parts(runs, name)
    yield Part(titled("Scores per data set", name), scores.data_set_table(runs))


def times(block: scores.Block, title: str, name: str) -> Parts:
    """Show the average score against the time to fit; nothing where fewer than two times were measured."""
    found, averages = scores.fit_times(block), block.shown.mean(axis=1)
    known = {line: time for line, time in found.items() if time is not None}
    usual = Counter(device for _, device in known.values()).most_common(1)
    names = {line: line + (f" ({on})" if on != usual[0][0] else "") for line, (_, on) in known.items()}
    points = {names[line]: (time, float(averages[line])) for line, (time, _) in known.items() if time > 0}
    if len(points) < 2:
        return
    missing = [line for line in found if names.get(line) not in points]
    text = "Fitting alone, summed over the data sets of the standings: embedding and scoring are not counted."
    text += f" On {usual[0][0]} where nothing else is said: times on different devices do not compare."
    text += f" Not measured alone on one device, or too short to measure: {', '.join(missing)}." if missing else ""
    figure = partial(time_scatter, points, f"average {frame.metric_name(block.runs)}", [names.get(block.lines[0], "")])
    yield Part(title, figures={name: figure}, text=text)


def kinds(data: pd.DataFrame, apart: bool = False) -> dict[str, list[str]]:
    """Group the protocols that use as many labels; `apart` keeps fine-tuning, which trains, by itself."""

    def kind(protocol: str) -> str:
        if apart and protocol.startswith(FINE_TUNING):
            return KINDS[2]
        if protocol in frame.ALL_LABELS:
            return KINDS[0]
        if protocol.startswith(("few_", "semi_", "forest_", FINE_TUNING)):
            return KINDS[1]
        return KINDS[3] if protocol.startswith("knn_") else protocol

    out: dict[str, list[str]] = {}
    for protocol in sorted(data.protocol.unique(), key=tidy.natural):
        out.setdefault(kind(protocol), []).append(protocol)
    return dict(sorted(out.items(), key=lambda item: KINDS.index(item[0]) if item[0] in KINDS else len(KINDS)))


def best(request: Request) -> Parts:
    """Show gains by groups of data sets and seconds; then every protocol, and which sets were seen."""
    for title, table in gains(request.data):
        yield Part(title, table)
    known = frame.data_sets(request.data).isin(DEVELOPMENT)
    for seen, where in ((False, "reported sets"), (True, "development sets")):
        for part in by_protocol(replace(request, data=request.data[known == seen]), brief=True):
            if part.table is not None:
                told = replace(part.table, note=f"{part.table.note} {SEEN[seen]}")
                yield replace(part, title=f"{part.title}, {where}", table=told)
            elif not seen:
                yield part


def by_protocol(request: Request, brief: bool = False) -> Parts:
    scored = request.data[~request.data.metric.isin(COSTS)]
    for protocol in sorted(scored.protocol.unique(), key=tidy.natural):
        own = scored[scored.protocol == protocol]
        for metric in tidy.shown_metrics(own):
            name = protocol if metric == "accuracy" else f"{protocol}, {metric}"
            yield from every_part(frame.by_data_set(own, [metric]), request, name, brief=brief)


def generic(request: Request) -> Parts:
    """Show one table per data set and kind of protocol: contenders down, protocols across; then what runs cost."""
    names = frame.data_sets(request.data)
    for name in sorted(names.unique(), key=tidy.natural):
        own = request.data[names == name]
        scored = own[~own.metric.isin(COSTS)]
        for kind, protocols in kinds(scored, apart=True).items():
            chosen = scored[scored.protocol.isin(protocols)]
            chosen = chosen[chosen.metric.isin(tidy.shown_metrics(chosen))]
            columns = chosen.protocol if chosen.metric.nunique() == 1 else chosen.protocol + " " + chosen.metric
            yield Part(f"{name}, {kind}", scores.data_set_table(frame.placed(chosen, columns, frame.SETTINGS)))
        if len(costs := own[own.metric.isin(COSTS)]):
            about = frame.note(costs, seeds_text(costs), failures(costs))
            yield Part(f"{name}, cost", score_table(frame.placed(costs, costs.metric, frame.SETTINGS), about))


# A suite that is not here is shown by `generic`. Those of the paper are added by bench.paper.reports.
LAYOUTS: dict[str, Callable[[Request], Parts]] = {
    "best": best,
    "best_ablation": lambda asked: by_protocol(replace(asked, baseline=asked.baseline or INSTANT)),
}


def titled(text: str, name: str) -> str:
    return f"{text}: {name}" if name else text
