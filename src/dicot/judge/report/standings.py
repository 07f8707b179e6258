"""Where contenders stand over many data sets: averages, intervals, ranks, times, and everybody against one."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from dicot.judge.report.frame import (
    CONTROLS,
    contender_of,
    decimals,
    direction,
    means,
    metric_name,
    metric_of,
    note,
    require_controls,
    seed_averages,
    seeds_of,
)
from dicot.judge.report.scores import seeds_text
from dicot.judge.report.stats import ALPHA, average_ranks, half_widths, wilcoxon_holm
from dicot.judge.report.tables import Cell, Table, mark_best, signed, text_table

ENOUGH_SETS = 5  # below this, the line with the fewest sets is left out of a block, as long as there are others
WORTHWHILE = 0.9  # share of the sets; a first block with fewer is followed by one of the lines that have all
NOT_MEASURED = "not measured"
SHORT = 0.001  # seconds that are not worth a number
Times = dict[str, float]  # seconds by device
SPREAD = (
    "The average is taken over data sets per seed, its spread over seeds; 95 % intervals: 1.96 standard errors as in "
    "the paper, and Student's quantile, which fits few seeds (D-61)."
)


@dataclass(frozen=True, eq=False)
class Block:
    """Lines and the data sets on which all of them were scored; `left_out` says who lacks how many sets.

    Lines `beside` them are shown with the others and have no rank.
    """

    runs: pd.DataFrame  # every row of the table, also of what is left out
    means: pd.DataFrame  # lines x columns, complete
    left_out: dict[str, int] = field(default_factory=dict)
    beside: pd.DataFrame = field(default_factory=pd.DataFrame)  # the same columns, complete too

    @property
    def lines(self) -> list[str]:
        """The lines of the block."""
        return list(self.means.index)

    @property
    def columns(self) -> list[str]:
        """The data sets that all of them have."""
        return list(self.means.columns)

    @property
    def shown(self) -> pd.DataFrame:
        """The means of all that is shown, those without a rank last."""
        return pd.concat([self.means, self.beside]) if len(self.beside) else self.means

    @property
    def merits(self) -> pd.DataFrame:
        """The means (data sets x lines), turned so that more is better, whatever the metric."""
        return self.means.T.mul(metric_of(self.runs)[self.columns].map(direction), axis=0)

    @property
    def sign(self) -> int:
        """1 where a higher average is better, -1 where a lower one is."""
        return direction(metric_of(self.runs).iloc[0])

    @property
    def unit(self) -> str:
        """What a column is."""
        return "data set(s)" if self.runs.metric.nunique() == 1 else "pair(s) of data set and metric"

    def own_runs(self) -> pd.DataFrame:
        """The rows that the means are made of."""
        return self.runs[self.runs.line.isin(self.shown.index) & self.runs.column.isin(self.columns)]

    def missing_text(self) -> str:
        """Say on how many sets the lines are compared, and who is not among them."""
        total = self.runs.column.nunique()
        who = "ranked" if len(self.beside) else "shown"
        text = f"Over the {len(self.columns)} {self.unit} of {total} that every contender {who} has."
        lacking = ", ".join(f"{line} (lacks {count})" for line, count in self.left_out.items())
        return text + (f" Left out for want of sets: {lacking}." if lacking else "")


def blocks(runs: pd.DataFrame, outside: Collection[str] = ()) -> list[Block]:
    """Find at most two: as many lines as possible, and, where that costs a tenth of the sets, the lines with all sets.

    Ranks need a score of every line on every set. A line that leaves the others fewer than five sets in common is
    left out of the first block; a line that lacks any set, out of the second. The controls are never left out: without
    a set that both have there is no block. Lines `outside` have no rank and cost no sets: they are shown beside a block
    where they have all of its sets.
    """
    everything = means(runs)
    apart = everything.index.isin(list(outside))
    table, others = everything[~apart], everything[apart]
    scored = table.notna()
    controls = [line for line, name in contender_of(runs).items() if name in CONTROLS and line in table.index]
    wide = [line for line in table.index if scored.loc[line].any() or line in controls]
    while scored.loc[wide].all().sum() < min(ENOUGH_SETS, len(table.columns)):
        droppable = [line for line in reversed(wide) if line not in controls]
        if not droppable or len(wide) == 1:
            break
        wide.remove(min(droppable, key=lambda line: scored.loc[line].sum()))
    full = list(table.index[scored.all(axis=1)])
    costly = scored.loc[wide].all().mean() < WORTHWHILE
    chosen = [wide, full] if costly and len(full) > 1 and set(controls) <= set(full) else [wide]
    out = []
    for lines in filter(None, chosen):
        shared = table.columns[scored.loc[lines].all()]
        lacks = [scored[~table.index.isin(lines)].eq(False).sum(axis=1), others[shared].isna().sum(axis=1)]
        left_out = {**lacks[0], **lacks[1][lacks[1] > 0]}
        out += [Block(runs, table.loc[lines, shared], left_out, others[shared].dropna())] if len(shared) else []
    return out


def standings(block: Block) -> pd.DataFrame:
    """Give average, rank, number of seeds and both half widths of each line (NaN for one seed), best average first.

    The rank of what is shown beside the block is NaN.
    """
    shown = block.shown
    seeds = seed_averages(block.runs, block.columns).reindex(shown.index)
    ranks = pd.Series(average_ranks(block.merits), block.lines)
    out = pd.DataFrame({"average": shown.mean(axis=1), "rank": ranks.reindex(shown.index)})
    out["seeds"], out["deviation"] = seeds.count(axis=1), seeds.std(axis=1)
    out["normal"], out["student"] = half_widths(out.deviation, out.seeds)
    return out.sort_values("average", ascending=block.sign < 0, kind="stable")


def fit_times(block: Block) -> dict[str, Times]:
    """Sum the seconds to fit over the block's sets by device, mean over seeds, each source once.

    Empty for a line of which a run was not alone on its device, or cannot tell: part of a sum compares with nothing.
    """
    own = block.own_runs().drop_duplicates(["line", "source", "seed"], keep="last")
    out: dict[str, Times] = {line: {} for line in block.shown.index}
    for line, runs in own.groupby("line", observed=True):
        if runs.seconds.notna().all():
            per_source = runs.groupby(["on", "source"]).seconds.mean()
            out[line] = {on: math.fsum(per_source[on]) for on in sorted(set(runs.on))}
    return out


def same_device(times: Mapping[str, Times]) -> str:
    """The one device that all measured times are of; empty where there are several or none."""
    found = {device for one in times.values() for device in one}
    return min(found) if len(found) == 1 else ""


def times_text(times: Times, usual: str = "") -> str:
    """Print the times of each device by itself, with its name unless it is the `usual` one; they are never summed."""
    said = (seconds_text(time) + (f" ({on})" if on != usual else "") for on, time in times.items())
    return " and ".join(said) or NOT_MEASURED


def seconds_text(seconds: float) -> str:
    """Print a time that a reader can compare at a glance."""
    if math.isnan(seconds):
        return NOT_MEASURED
    if seconds < SHORT:
        return f"under {SHORT:g} s"
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.2f} h"


def rank_cell(rank: float) -> Cell:
    """Print an average rank; nothing where there is none."""
    return Cell("") if math.isnan(rank) else Cell(f"{rank:.2f}", mean=round(rank, 2))


def standing_table(block: Block) -> Table:
    """Show average with its spread and both 95 % intervals, average rank, time to fit; best average first."""
    require_controls(block.own_runs(), "Standings")
    table, times, d = standings(block), fit_times(block), decimals(block.runs)
    usual, many = same_device(times), bool((table.seeds > 1).any())

    def spread(width: float, alone: str) -> str:
        return alone if math.isnan(width) else f"± {width:.{d}f}"

    averages = [
        Cell(f"{row.average:.{d}f} {spread(row.deviation, '')}".rstrip(), mean=round(row.average, d))
        for row in table.itertuples()
    ]
    columns = {
        f"average {metric_name(block.runs)}": mark_best(averages, block.sign),
        "average rank": mark_best([rank_cell(rank) for rank in table["rank"]], -1),
    }
    if many:
        columns["95 %, normal"] = [Cell(spread(width, "one seed")) for width in table.normal]
        columns["95 %, t"] = [Cell(spread(width, "one seed")) for width in table.student]
    columns["time to fit"] = [Cell(times_text(times[line], usual)) for line in table.index]
    return text_table(
        "contender",
        zip(table.index, zip(*columns.values(), strict=True), strict=True),
        list(columns),
        note(
            block.runs,
            block.missing_text(),
            seeds_text(seeds_of(block.runs)),
            SPREAD if many else "",
            "Rank 1 is best, ties share their mean rank. Time to fit: sum over these sets"
            f"{f' on {usual}' if usual else ''}, where each run was alone.",
            "Without a rank: controls, which come along." if len(block.beside) else "",
            "Less is better." if block.sign < 0 else "",
        ),
    )


def baseline_line(block: Block, wanted: str | None) -> str | None:
    """Find the block's line called `wanted`, by its label or contender; the first if nothing is wanted."""
    contender = contender_of(block.runs)
    return next((line for line in block.lines if wanted in (None, line, contender[line])), None)


def baseline_table(block: Block, against: str) -> Table:
    """Compare one line with each of the others, the strongest rival first."""
    require_controls(block.own_runs(), "Comparison with a baseline")
    p = pd.DataFrame(wilcoxon_holm(block.merits), block.lines, block.lines)[against]
    ahead = block.merits.rsub(block.merits[against], axis=0)
    gaps = (block.means.loc[against] - block.means.drop(index=against)).mean(axis=1)
    rivals = (block.sign * gaps).sort_values(kind="stable").index

    def row(line: str) -> Sequence[str]:
        counts = [str(found.sum()) for found in (ahead[line] > 0, ahead[line] == 0, ahead[line] < 0)]
        verdict = "differs" if p[line] <= ALPHA else "no difference shown"
        return [*counts, signed(gaps[line], decimals(block.runs)), f"{p[line]:.2g}", verdict]

    return text_table(
        f"{against} against",
        ((line, row(line)) for line in rivals),
        [
            *(f"{against} better", "equal", f"{against} worse"),
            *("mean difference", "p, corrected", f"at {100 * ALPHA:g} %"),
        ],
        note(
            block.runs,
            block.missing_text(),
            f"Difference: {against} minus the other. p: Wilcoxon signed-rank, Holm's correction over all pairs of the "
            "block.",
        ),
    )
