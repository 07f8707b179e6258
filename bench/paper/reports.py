"""What the paper adds to a report: layouts of its suites, its numbers beside ours, a short table for pages."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from bench.paper.grid import published
from bench.paper.numbers import paper_audit, paper_name
from bench.paper.tables import newest, summary_of_archives
from bench.report import frame
from bench.report.benchmark import LAYOUTS, Request, by_protocol, every_part, generic, kinds, titled
from bench.report.best import SUITE, short_table
from bench.report.pages import to_markdown
from dicot.core.errors import InputError
from dicot.judge.protocols.base import COSTS
from dicot.judge.report import frame as tidy
from dicot.judge.report.page import Part
from dicot.judge.report.tables import FAILED, Cell, Table, signed, text_table

CAVEATS = (
    "The paper's numbers come from the authors' code, whose learning rate hardly rises (D-01), whose raw features and "
    "forest see the means of the channels (D-35, D-36) and whose MiniRocket is refitted per batch and scored by a "
    "forest (D-37)."
)


def scores(request: Request) -> Iterator[Part]:
    """Show standings, ranks, time and data sets, for protocols that see as many labels in one table."""
    data = request.data[~request.data.metric.isin(COSTS)]
    groups = {
        (kind, metric): frame.by_data_set(data, [metric], protocols)
        for kind, protocols in kinds(data).items()
        for metric in tidy.shown_metrics(data[data.protocol.isin(protocols)])
    }
    for (kind, metric), runs in groups.items():
        several = len([one for one, _ in groups if one == kind]) > 1
        name = f"{kind}, {metric}" if several else kind
        yield from every_part(runs, request, name if len(groups) > 1 else "")


def batch_scaling(request: Request) -> Iterator[Part]:
    """Show each batch size as a contender."""
    data = request.data
    sized = data.contender + ", batch " + data.batch_size.astype(str)
    yield from generic(replace(request, data=data.assign(contender=sized.where(data.batch_size > 0, data.contender))))


LAYOUTS |= dict.fromkeys(("large", "low_label", "transfer", "ucr", "uea"), scores)
LAYOUTS |= dict.fromkeys(
    ("knn", "clustering", "ablation", "extended_ablation", "positive_selection"), partial(by_protocol, brief=True)
)
LAYOUTS["batch_scaling"] = batch_scaling


def parts(runs: pd.DataFrame, name: str = "") -> Iterator[Part]:
    """Show averages beside the paper's; nothing where it has no numbers."""
    theirs = paper_means(runs)
    if (frame.means(runs).notna() & theirs.notna()).any(axis=None):
        yield Part(titled("Ours beside the paper", name), average_table(runs))


def closing() -> Iterator[Part]:
    """Show where the paper's own arithmetic does not hold."""
    yield Part("Where the paper's own arithmetic does not hold", audit_table())


def paper_means(runs: pd.DataFrame) -> pd.DataFrame:
    """Give the paper's numbers, lines x columns, NaN where it prints none."""
    cells = runs.drop_duplicates(["line", "column"]).set_index(["line", "column"])
    keys = cells[["suite", "contender", "source", "target", "protocol", "metric"]].itertuples(index=False)
    return (
        pd.Series([published(*key) for key in keys], cells.index, dtype=float).unstack().reindex_like(frame.means(runs))
    )


def average_table(runs: pd.DataFrame) -> Table:
    """Show per line the average of ours and of the paper's over the sets both have, and the difference."""
    frame.require_controls(runs, "Ours beside the paper")
    ours, paper, d = frame.means(runs), paper_means(runs), frame.decimals(runs)
    lines = runs.drop_duplicates("line").set_index("line")

    def row(line: str) -> list[Cell | str]:
        scored = ours.loc[line].dropna()
        theirs = paper.loc[line, scored.index].dropna()
        if len(theirs):
            name = paper_name(lines.contender[line], lines.protocol[line]) or ""
            scored = scored[theirs.index]
            gap = signed((scored - theirs).mean(), d)
            return [name, str(len(theirs)), f"{scored.mean():.{d}f}", f"{theirs.mean():.{d}f}", gap]
        own = Cell(f"{scored.mean():.{d}f}") if len(scored) else Cell(FAILED, FAILED)
        return ["no such number", str(len(scored)), own, "", ""]

    metric = frame.metric_name(runs)
    about = f"Average {metric} over the data sets both have; where the paper has no such number, over all of ours."
    columns = ["in the paper", "data sets", "ours", "the paper's", "difference"]
    return text_table(
        "contender", ((line, row(line)) for line in ours.index), columns, frame.note(runs, about, CAVEATS)
    )


def audit_table() -> Table:
    """Show where the paper's own arithmetic does not hold as printed."""
    audit = paper_audit()
    right = audit["checks"] - len(audit["rows"])
    text = (
        f"{audit['checks']} printed averages, average ranks, repetitions and statements were recomputed from the "
        f"paper's own entries; {right} hold as printed. See: rows of docs/divergences.md."
    )
    rows = ((table, row) for table, *row in audit["rows"])
    return text_table("table", rows, ["what", "printed", "recomputed", "see", "verdict"], text)


def summary_markdown(data: pd.DataFrame) -> str:
    """Write Table 2 of the paper, or the table of the suite "best", the same whenever it is made."""
    dates = sorted(data.recorded)
    made = f"Recorded {dates[0][:10]} to {dates[-1][:10]}." if dates and dates[0] else ""
    table = short_table(data) if set(data.suite) == {SUITE} else summary_of_archives(newest(data))
    return f"{to_markdown(table)}{made}".rstrip() + "\n"


def with_summary(text: str, block: str, suites: Sequence[str]) -> str:
    """Put the block into a text, between the two marks of the archives' table, or of the one about the preset."""
    name = "bench report best" if list(suites) == [SUITE] else "bench report"
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise InputError(f"It needs one line {begin} and after it one line {end}. Put them where the table goes.")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{block.strip()}\n{end}{rest.split(end)[1]}"
