"""Tables of scores: contenders by protocol, by data set and over all data sets; failures; everybody against one."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from dicot.judge.protocols import find_metric
from dicot.judge.protocols.base import COSTS
from dicot.judge.report import frame
from dicot.judge.report.stats import ALPHA, average_ranks, half_widths, wilcoxon_holm
from dicot.judge.report.tables import ABSENT, FAILED, NOT_RUN, Cell, Table, best_note, mark_best, signed

MANY_SETS = 8  # more data sets stand below one another, not side by side
MAX_REASON = 300  # letters of an error message in a table; the CSV file holds all
ENOUGH_SETS = 5  # below this, the line with the fewest sets is left out of a block, as long as there are others
NOT_MEASURED = "not measured"
DEVIATION = "Mean ± sample standard deviation over"
SHORT = 0.001  # seconds that are not worth a number
Time = tuple[float, str] | None  # seconds, and the device they were measured on
SPREAD = (
    "The average is taken over data sets per seed, its spread over seeds; 95 % intervals: 1.96 standard errors as in "
    "the paper, and Student's quantile, which fits few seeds (D-61)."
)


def score_cell(values: Sequence[float], seeds: Sequence[int], digits: int, n_seeds: int) -> Cell:
    """Print mean and sample standard deviation over seeds and draws, and say what is missing or failed (NaN)."""
    scored = [(seed, value) for seed, value in zip(seeds, values, strict=True) if value == value]
    if not scored:
        return Cell(FAILED, FAILED)
    numbers = [value for _, value in scored]
    mean, seen = fmean(numbers), len({seed for seed, _ in scored})
    text = f"{round(mean, digits) + 0.0:.{digits}f}"  # no minus zero
    text += f" ± {stdev(numbers):.{digits}f}" if len(numbers) > 1 else ""
    text += f" ({seen} of {n_seeds} seeds)" if seen < n_seeds else ""
    if len(scored) < len(values):  # an average over the runs that happened to survive cannot be called the best
        return Cell(f"{text}, rest {FAILED}", FAILED)
    return Cell(text, mean=round(mean, digits))


def score_table(runs: pd.DataFrame, note: str, fixed: Sequence[str] = ()) -> Table:
    """Show the mean of every line in every column, the best of a column marked by its metric's direction.

    Of costs nothing is marked, and nothing is missing: a control takes no steps. `fixed` names lines that are the same
    for every seed: where no draw differs either, they have no spread.
    """
    metrics, n_seeds = frame.metric_of(runs), len(frame.seeds_of(runs))
    lines, columns = list(runs.line.cat.categories), list(runs.column.cat.categories)
    groups = runs.groupby(["line", "column"], observed=True)
    rows = groups[["value", "seed", "draw"]].agg(list).to_dict("index")

    def shown(line: str, column: str) -> Cell:
        if (line, column) not in rows:
            return Cell("") if metrics[column].name in COSTS else Cell(NOT_RUN, ABSENT)
        values, seeds, draws = rows[line, column].values()
        constant = line in fixed and set(draws) == {1} and len(set(values)) == 1
        n = 1 if constant else len(values)
        return score_cell(values[:n], seeds[:n], metrics[column].decimals, 1 if constant else n_seeds)

    entries = {column: [shown(line, column) for line in lines] for column in columns}
    for column, metric in metrics.items():
        entries[column] = mark_best(entries[column], 0 if metric.name in COSTS else frame.direction(metric))
    return Table(pd.DataFrame(entries, pd.Index(lines, name="contender")), note)


def seeds_text(data: pd.DataFrame, what: str = DEVIATION, fixed: Sequence[str] = ()) -> str:
    """Say how many runs a number is made of, and what they differ by. `fixed` are the same for every seed."""
    seeds = ", ".join(map(str, frame.seeds_of(data)))
    one, draws = data.seed.nunique() == 1, data.groupby("protocol", sort=False).draw.max()
    drawn = "; ".join(
        f"{count} draws of the labelled cases{'' if one else ' with each seed'} for {', '.join(own.index)}"
        for count, own in draws[draws > 1].groupby(draws, sort=False)
    )
    if one:
        return f"One run (seed {seeds})" + (f"; {what[0].lower()}{what[1:]} {drawn}." if drawn else ", no spread.")
    same = f" The same for all seeds: {', '.join(fixed)}." if fixed else ""
    return f"{what} seeds {seeds}{f', and over {drawn}' if drawn else ''}.{same}"


def _broken(data: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of failed jobs, each with its reason in one line."""
    rows = data[data.error.notna()]
    return rows.assign(reason=rows.error.map(lambda text: " ".join(text.split())))


def failures(data: pd.DataFrame) -> str:
    """Give each reason once, with the contenders it hit."""
    by_reason = _broken(data).groupby("reason", sort=False).contender.unique()
    return " ".join(f"{', '.join(names)} {FAILED}: {reason}" for reason, names in by_reason.items())


def comparison(data: pd.DataFrame, fixed: Sequence[str] = ()) -> Table:
    """Compare the contenders of an evaluation: a row each, a column per protocol and headline metric, as they come."""
    data = data[data.metric.isin([name for name in data.metric.unique() if find_metric(name).headline])]
    columns = data.protocol + " " + data.metric
    runs = data.assign(
        line=pd.Categorical(data.contender, data.contender.unique()), column=pd.Categorical(columns, columns.unique())
    )
    bold = best_note(frame.metric_of(runs).map(frame.direction))
    sentences = (seeds_text(data, fixed=fixed), *frame.subset_notes(data), bold, failures(data))
    return score_table(runs, " ".join(filter(None, sentences)), fixed)


def equal_protocols(data: pd.DataFrame, own: str = "protocol", other: str = "contender") -> list[list[str]]:
    """Find protocols, or contenders, that are equal in all their numbers. What failed has none, and stays apart."""
    alike: dict[object, list[str]] = {}
    for name, rows in data.groupby(own, sort=False):
        numbers = rows[[other, "metric", "seed", "draw", "value"]].itertuples(index=False, name=None)
        key = name if rows.value.isna().any() else frozenset(numbers)
        alike.setdefault(key, []).append(str(name))
    return [names for names in alike.values() if len(names) > 1]


def equal_note(equal: Sequence[Sequence[str]]) -> str:
    """Say who is shown once; empty where nobody is."""
    told = (f"{', '.join(names[:-1])} and {names[-1]}" for names in equal)
    return f"Equal in every number, so shown once: {'; '.join(told)}." if equal else ""


def merged(data: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Keep protocols, and then contenders, once where all their numbers are equal; give who shares which name."""
    shared: dict[str, list[str]] = {}
    for own, other in (("protocol", "contender"), ("contender", "protocol")):
        equal = equal_protocols(data, own, other)
        shared |= {", ".join(names): names for names in equal}
        data = data[~data[own].isin([name for names in equal for name in names[1:]])]
        data = data.assign(**{own: data[own].replace({names[0]: ", ".join(names) for names in equal})})
    return data, shared


def evaluation_table(data: pd.DataFrame, fixed: Sequence[str] = (), descriptions: Mapping[str, str] = {}) -> Table:
    """Compare contenders: a column each, a row per protocol and metric with its description; equal ones shown once."""
    rows, shared = merged(data)
    alike = [*fixed, *(title for title, names in shared.items() if set(names) <= set(fixed))]
    table = comparison(rows, alike).turned("protocol, metric")
    about: dict[str, str] = {}
    for title in rows.protocol.unique():
        words = [(name, descriptions.get(name, "")) for name in shared.get(title, [title])]
        text = "; ".join(f"{name}: {said}" if len(words) > 1 else said for name, said in words if said)
        name = next((name for name in table.cells.index if name.startswith(f"{title} ")), None)
        about |= {name: text} if text and name else {}
    return replace(table, note=" ".join(filter(None, (table.note, equal_note(list(shared.values()))))), about=about)


def data_set_table(runs: pd.DataFrame) -> Table:
    frame.require_controls(runs, "Scores per data set")
    few = runs.column.nunique() <= MANY_SETS
    about = frame.note(
        runs,
        seeds_text(runs),
        f"Shown: {frame.metric_name(runs)}. {best_note(frame.metric_of(runs).map(frame.direction))}",
        failures(runs) if few else "Failures are listed with their reasons.",
    )
    table = score_table(runs, about)
    return table if few else table.turned("data set")


def failure_table(data: pd.DataFrame) -> Table | None:
    """List every job that failed, with its reason, its seeds and protocols; None without any."""
    broken = _broken(data)
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
        signs = frame.metric_of(self.runs)[self.columns].map(frame.direction)
        return self.shown.loc[self.lines].T.mul(signs, axis=0)

    @property
    def sign(self) -> int:
        """1 where a higher average is better, -1 where a lower one is."""
        return frame.direction(frame.metric_of(self.runs).iloc[0])

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
