"""Ours beside the paper's: the same cell of the same table, over the data sets that both have."""

from functools import partial

import pandas as pd

from dicot.judge.report.frame import decimals, means, metric_name, note, require_controls
from dicot.judge.report.layouts import Parts, stem_of, titled
from dicot.judge.report.parts import Part
from dicot.judge.report.scores import MANY_SETS
from dicot.judge.report.tables import ABSENT, FAILED, NOT_RUN, Cell, Table, signed, text_table
from dicot.paper.figures import paper_scatter
from dicot.paper.numbers import paper_audit, paper_name, published

CAVEATS = (
    "The paper's numbers come from the authors' code, whose learning rate hardly rises (D-01), whose raw features and "
    "forest see the means of the channels (D-35, D-36) and whose MiniRocket is refitted per batch and scored by a "
    "forest (D-37)."
)


def paper_means(runs: pd.DataFrame) -> pd.DataFrame:
    """Give the paper's number for each cell of ours: lines x columns, NaN where it prints none."""
    cells = runs.drop_duplicates(["line", "column"]).set_index(["line", "column"])
    keys = cells[["suite", "contender", "source", "target", "protocol", "metric"]].itertuples(index=False)
    values = pd.Series([published(*key) for key in keys], cells.index, dtype=float)
    return values.unstack().reindex_like(means(runs))


def pairs(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Give `ours` and `paper` of each line over the data sets that both have and where no run of ours failed."""
    ours, paper = means(runs), paper_means(runs)
    both = {line: pd.DataFrame({"ours": ours.loc[line], "paper": paper.loc[line]}).dropna() for line in ours.index}
    return {line: table for line, table in both.items() if len(table)}


def average_table(runs: pd.DataFrame) -> Table:
    """Show per line the average of ours and of the paper's over the sets both have, and the difference."""
    require_controls(runs, "Ours beside the paper")
    beside, ours, d = pairs(runs), means(runs), decimals(runs)
    lines = runs.drop_duplicates("line").set_index("line")

    def row(line: str) -> list[Cell | str]:
        if line in beside:
            both = beside[line]
            name = paper_name(lines.contender[line], lines.protocol[line]) or ""
            gap = signed((both.ours - both.paper).mean(), d)
            return [name, str(len(both)), f"{both.ours.mean():.{d}f}", f"{both.paper.mean():.{d}f}", gap]
        scored = ours.loc[line].dropna()
        own = Cell(f"{scored.mean():.{d}f}") if len(scored) else Cell(FAILED, FAILED)
        return ["no such number", str(len(scored)), own, "", ""]

    about = (
        f"Average {metric_name(runs)} over the data sets both have; where the paper has no such number, over all of "
    )
    about += "ours."
    columns = ["in the paper", "data sets", "ours", "the paper's", "difference"]
    return text_table("contender", ((line, row(line)) for line in ours.index), columns, note(runs, about, CAVEATS))


def cell_table(runs: pd.DataFrame) -> Table:
    """Show per data set `ours (the paper's, difference)`."""
    require_controls(runs, "Ours beside the paper, per data set")
    ours, paper, d = means(runs), paper_means(runs), decimals(runs)
    made = set(zip(runs.line, runs.column, strict=True))

    def shown(line: str, column: str) -> Cell:
        own, printed = ours.loc[line, column], paper.loc[line, column]
        if pd.isna(own):
            return Cell(FAILED, FAILED) if (line, column) in made else Cell(NOT_RUN, ABSENT)
        beside = "" if pd.isna(printed) else f" ({printed:.{d}f}, {signed(own - printed, d)})"
        return Cell(f"{own:.{d}f}{beside}")

    rows = ((line, [shown(line, column) for column in ours.columns]) for line in ours.index)
    about = f"{metric_name(runs)}, mean over seeds: ours (the paper's, difference)."
    return text_table("contender", rows, list(ours.columns), note(runs, about, CAVEATS))


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


def parts(runs: pd.DataFrame, name: str = "") -> Parts:
    """Show averages and data sets beside the paper's, and a point per data set; nothing where it has no numbers."""
    points = {line: (both.paper.tolist(), both.ours.tolist()) for line, both in pairs(runs).items()}
    if not points:
        return
    figure = {f"against-paper{stem_of(name)}": partial(paper_scatter, points, metric_name(runs), decimals(runs))}
    text = "One point per data set; above the line ours is higher. Above each panel the mean difference."
    yield Part(titled("Ours beside the paper", name), average_table(runs), figure, text)
    if runs.column.nunique() <= MANY_SETS:
        yield Part(titled("Ours beside the paper, per data set", name), cell_table(runs))


def closing() -> Parts:
    """Show where the paper's own arithmetic does not hold."""
    yield Part("Where the paper's own arithmetic does not hold", audit_table())
