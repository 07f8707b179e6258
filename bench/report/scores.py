"""Tables of a benchmark: contenders by data set and over all data sets; failures; everybody against one."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.report import frame
from bench.report.stats import average_ranks, half_widths, wilcoxon_holm
from dicot.judge.report import frame as tidy
from dicot.judge.report.scores import failed_rows, failures, score_table, seeds_text
from dicot.judge.report.stats import ALPHA
from dicot.judge.report.tables import FAILED, Cell, Table, best_note, mark_best, signed

MANY_SETS = 8  # more data sets stand below one another, not side by side
MAX_REASON = 300  # letters of an error message in a table; the CSV file holds all
ENOUGH_SETS = 5  # below this, the line with the fewest sets is left out of a block, as long as there are others
NOT_MEASURED = "not measured"
SHORT = 0.001  # seconds that are not worth a number
Time = tuple[float, str] | None  # seconds, and the device they were measured on
SPREAD = (
    "The average is taken over data sets per seed, its spread over seeds; 95 % intervals: 1.96 standard errors as in "
    "the paper, and Student's quantile, which fits few seeds (D-61)."
)


def data_set_table(runs: pd.DataFrame) -> Table:
    frame.require_controls(runs, "Scores per data set")
    few = runs.column.nunique() <= MANY_SETS
    about = frame.note(
        runs,
        seeds_text(runs),
        f"Shown: {frame.metric_name(runs)}. {best_note(tidy.metric_of(runs).map(tidy.direction))}",
        failures(runs) if few else "Failures are listed with their reasons.",
    )
    table = score_table(runs, about)
    return table if few else table.turned("data set")


def failure_table(data: pd.DataFrame) -> Table | None:
    """List every job that failed, with its reason, its seeds and protocols; None without any."""
    broken = failed_rows(data)
    if broken.empty:
        return None
    jobs = broken.assign(data=frame.data_sets(broken), schedule=broken.schedule.replace("", "none"))
    jobs = jobs.groupby(["contender", "data", "schedule", "reason"], sort=False).agg(
        seeds=("seed", lambda seeds: ", ".join(map(str, sorted(seeds.unique())))),
        protocols=("protocol", lambda names: ", ".join(names.unique())),
    )
    shown = jobs.reset_index().set_index("contender")
    cuts = (text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]} …" for text in shown.pop("reason"))
    shown = shown.rename(columns={"data": "data set"}).assign(reason=[Cell(text, FAILED) for text in cuts])
    return Table(shown, f"{len(jobs)} reason(s) in all. A failed job has no number anywhere in this report.")


@dataclass(frozen=True, eq=False)
class Block:
    """Lines and the data sets on which all of them were scored."""

    runs: pd.DataFrame  # every row of the table, also of what is left out
    shown: pd.DataFrame  # the means, lines x columns, complete; lines without a rank last
    lines: list[str]  # that have a rank
    left_out: dict[str, int]  # who lacks how many sets

    @property
    def columns(self) -> list[str]:
        return list(self.shown.columns)

    @property
    def merits(self) -> pd.DataFrame:
        """The means (data sets x lines with a rank), turned so that more is better, whatever the metric."""
        signs = tidy.metric_of(self.runs)[self.columns].map(tidy.direction)
        return self.shown.loc[self.lines].T.mul(signs, axis=0)

    @property
    def sign(self) -> int:
        """1 where a higher average is better, -1 where a lower one is."""
        return tidy.direction(tidy.metric_of(self.runs).iloc[0])

    @property
    def unit(self) -> str:
        return "data set(s)" if self.runs.metric.nunique() == 1 else "pair(s) of data set and metric"

    @property
    def own_runs(self) -> pd.DataFrame:
        """The rows that the means are made of."""
        return self.runs[self.runs.line.isin(self.shown.index) & self.runs.column.isin(self.columns)]

    def missing_text(self) -> str:
        """Say on how many sets the lines are compared, and who is not among them."""
        total = self.runs.column.nunique()
        who = "ranked" if len(self.lines) < len(self.shown) else "shown"
        text = f"Over the {len(self.columns)} {self.unit} of {total} that every contender {who} has."
        lacking = ", ".join(f"{line} (lacks {count})" for line, count in self.left_out.items())
        return text + (f" Left out for want of sets: {lacking}." if lacking else "")


def block_of(runs: pd.DataFrame, outside: Collection[str] = ()) -> Block | None:
    """Find as many lines as possible with data sets that all of them have; None where there is nothing in common.

    Ranks need a score of every line on every set. A line that leaves the others fewer than five sets in common is
    left out. The controls are never left out: without a set that both have there is no block. Lines `outside` have no
    rank and cost no sets: they are shown beside the block where they have all of its sets.
    """
    everything = frame.means(runs)
    apart = everything.index.isin(list(outside))
    table, others = everything[~apart], everything[apart]
    scored = table.notna()
    who = frame.contender_of(runs)
    controls = [line for line in table.index if who.get(line) in frame.CONTROLS]
    lines = [line for line in table.index if scored.loc[line].any() or line in controls]
    while scored.loc[lines].all().sum() < min(ENOUGH_SETS, len(table.columns)):
        droppable = [line for line in reversed(lines) if line not in controls]
        if not droppable or len(lines) == 1:
            break
        lines.remove(min(droppable, key=lambda line: scored.loc[line].sum()))
    shared = table.columns[scored.loc[lines].all()]
    if not lines or not len(shared):
        return None
    lacking = others[shared].isna().sum(axis=1)
    left_out = {**(~scored).sum(axis=1).drop(lines), **lacking[lacking > 0]}
    return Block(runs, pd.concat([table.loc[lines, shared], others[shared].dropna()]), lines, left_out)


def standings(block: Block) -> pd.DataFrame:
    """Give average, rank (NaN for lines without one), seeds and both half widths of each line, best average first."""
    shown = block.shown
    seeds = frame.seed_averages(block.runs, block.columns).reindex(shown.index)
    ranks = pd.Series(average_ranks(block.merits), block.lines)
    out = pd.DataFrame({"average": shown.mean(axis=1), "rank": ranks.reindex(shown.index)})
    out["seeds"], out["deviation"] = seeds.count(axis=1), seeds.std(axis=1)
    out["normal"], out["student"] = half_widths(out.deviation, out.seeds)
    return out.sort_values("average", ascending=block.sign < 0, kind="stable")


def fit_times(block: Block) -> dict[str, Time]:
    """Sum the seconds to fit over the block's sets, mean over seeds, each source once.

    None for a line of which a run was not alone, or on another device: part of a sum compares with nothing.
    """
    own = block.own_runs.drop_duplicates(["line", "source", "seed"], keep="last")
    out: dict[str, Time] = dict.fromkeys(block.shown.index)
    for line, runs in own.groupby("line", observed=True):
        if runs.seconds.notna().all() and runs.on.nunique() == 1:
            out[line] = (math.fsum(runs.groupby("source").seconds.mean()), runs.on.iloc[0])
    return out


def times_text(time: Time, usual: str = "") -> str:
    """Print a time with the name of its device, unless that is the `usual` one."""
    return NOT_MEASURED if time is None else seconds_text(time[0]) + (f" ({time[1]})" if time[1] != usual else "")


def seconds_text(seconds: float) -> str:
    """Print a time that a reader can compare at a glance."""
    if math.isnan(seconds):
        return NOT_MEASURED
    if seconds < SHORT:
        return f"under {SHORT:g} s"
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.2f} h"


def standing_table(block: Block) -> Table:
    """Show average with its spread and both 95 % intervals, average rank, time to fit; best average first."""
    frame.require_controls(block.own_runs, "Standings")
    table, times, d = standings(block), fit_times(block), frame.decimals(block.runs)
    devices, many = {time[1] for time in times.values() if time is not None}, bool((table.seeds > 1).any())
    usual = min(devices) if len(devices) == 1 else ""
    on = f" on {usual}" if usual else ""
    ranks = [Cell("") if math.isnan(rank) else Cell(f"{rank:.2f}", mean=round(rank, 2)) for rank in table["rank"]]
    spread = table[["deviation", "normal", "student"]].map(lambda w: "" if math.isnan(w) else f"± {w:.{d}f}")
    averages = [
        Cell(f"{average:.{d}f} {text}".rstrip(), mean=round(average, d))
        for average, text in zip(table.average, spread.deviation, strict=True)
    ]
    columns: dict[str, Any] = {
        f"average {frame.metric_name(block.runs)}": mark_best(averages, block.sign),
        "average rank": mark_best(ranks, -1),
    }
    if many:
        columns["95 %, normal"] = spread.normal.replace("", "one seed")
        columns["95 %, t"] = spread.student.replace("", "one seed")
    columns["time to fit"] = [times_text(times[line], usual) for line in table.index]
    about = frame.note(
        block.runs,
        block.missing_text(),
        seeds_text(block.runs),
        SPREAD if many else "",
        f"Rank 1 is best, ties share their mean rank. Time to fit: sum over these sets{on}, where each run was alone.",
        "Without a rank: controls, which come along." if len(block.lines) < len(table) else "",
        "Less is better." if block.sign < 0 else "",
    )
    return Table(pd.DataFrame(columns, table.index).rename_axis("contender"), about)


def baseline_line(block: Block, wanted: str | None) -> str | None:
    """Find the block's line called `wanted`, by its label or contender; the first if nothing is wanted."""
    contender = frame.contender_of(block.runs)
    return next((line for line in block.lines if wanted in (None, line, contender[line])), None)


def baseline_table(block: Block, against: str) -> Table:
    """Compare one line with each of the others, the strongest rival first."""
    frame.require_controls(block.own_runs, "Comparison with a baseline")
    p = pd.DataFrame(wilcoxon_holm(block.merits), block.lines, block.lines)[against]
    ahead = block.merits.rsub(block.merits[against], axis=0)
    gaps = (block.shown.loc[against] - block.shown.loc[block.lines]).mean(axis=1)
    table = pd.DataFrame(
        {
            f"{against} better": (ahead > 0).sum(),
            "equal": (ahead == 0).sum(),
            f"{against} worse": (ahead < 0).sum(),
            "mean difference": gaps.map(lambda gap: signed(gap, frame.decimals(block.runs))),
            "p, corrected": p.map("{:.2g}".format),
            f"at {100 * ALPHA:g} %": p.map(lambda one: "differs" if one <= ALPHA else "no difference shown"),
        }
    )
    rivals = (block.sign * gaps).drop(against).sort_values(kind="stable").index
    about = "minus the other. p: Wilcoxon signed-rank, Holm's correction over all pairs of the block."
    about = frame.note(block.runs, block.missing_text(), f"Difference: {against} {about}")
    return Table(table.loc[rivals].rename_axis(f"{against} against"), about)
