"""The paper's tables as parts of a page: ours beside the paper's numbers, or these alone where nothing is recorded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bench.paper.grid import (
    EXPECTED,
    Grid,
    column_of,
    data_set_key,
    digits_of,
    grid,
    number,
    of_the_paper,
    paper_ranks,
    side_by_side,
    with_interval,
)
from bench.paper.numbers import ARCHIVES, AVERAGE, LARGE, METHODS, NAMES, VARIANTS, paper_tables, printed
from bench.paper.times import both_parts
from bench.report.frame import CONTROLS, PAPER_SCHEDULE, SAME_LABELS, latest
from bench.report.scores import MANY_SETS, NOT_MEASURED, fit_times, times_text
from dicot.data.datasets import DATASETS, family_of
from dicot.data.datasets.base import DataSet, Sizes
from dicot.judge.protocols import PROTOCOLS
from dicot.judge.protocols.base import AUTHORS
from dicot.judge.report.frame import natural
from dicot.judge.report.page import Part
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, Table, mark_best, signed, text_table

FAMILIES = ("large", *ARCHIVES)
MAPS = "maps.npz"  # beside the records
AUTHORS_SCHEDULE = "per_epoch"
RANKS = "Ranks are over the paper's lines alone, on the data sets that all of them have; ties share their mean rank."
SHORT = {"Sup_B": "Supervised_B", "R. Init": "Random Init."}  # names in the paper's Table 4
MANY_COLUMNS = 20
TWO_BLOCKS = "Global Fixed Splits (k) -> 2"
# Where the method itself stands under another name.
BASES = {"extended_ablation": "Uniform Splits Sampling (k_{max}) -> 10", "positive_selection": "Preceding Sub-block"}
VARIED = {  # columns of the paper's tables of variants: the family of data sets, the protocol and the metric
    "large": ("large", "linear", "accuracy"),
    "linear": ("large", "linear", "accuracy"),  # what one of the tables calls it
    "ucr": ("ucr", "linear", "accuracy"),
    "uea": ("uea", "linear", "accuracy"),
    "linear_1pct": ("large", "few_1pct", "accuracy"),
    "knn_500": ("large", "knn_500", "accuracy"),
    "nmi": ("large", "clustering", "nmi"),
    "ari": ("large", "clustering", "ari"),
    "transfer": ("transfer", "linear", "accuracy"),
}
PLAIN = ("linear", "accuracy", "clustering")  # words that go without saying in the name of such a column
SIZED = "batch_scaling"  # the suite whose contenders differ in their batch size too
SIZES = {  # columns of the paper's table of data sets, by field of ours
    "n_train": ("training cases", "Train set"),
    "n_test": ("test cases", "Test set"),
    "n_times": ("time steps", "Sequence Length"),
    "n_channels": ("channels", "Channel"),
    "n_classes": ("classes", "Class"),
}


@dataclass(frozen=True, eq=False)
class Records:
    """What a page about the paper is made of: the newest rows of all suites, and the folder that they are in."""

    data: pd.DataFrame
    beside: Path | None = None

    @property
    def maps(self) -> Path | None:
        """The file of maps, if there is one."""
        path = None if self.beside is None else self.beside / MAPS
        return path if path is not None and path.is_file() else None

    def of(self, *suites: str) -> pd.DataFrame:
        """The rows of these suites; a job that several of them share counts once."""
        own = self.data[self.data.suite.isin(suites)]
        return own if len(suites) == 1 else latest(own)

    def scored(self, labels: str, *suites: str, as_paper: bool = False) -> pd.DataFrame:
        """The accuracies of these suites by the protocols that see these labels.

        `as_paper` keeps the paper's sets, or what stands in for one, and its schedule.
        """
        data = self.of(*suites)
        seen = data.protocol.map(lambda name: SAME_LABELS.get(name, name))
        own = data[(data.metric == "accuracy") & (seen == labels)]
        return own[of_the_paper(own) & own.schedule.isin(("", PAPER_SCHEDULE))] if as_paper else own


def newest(data: pd.DataFrame, beside: Path | None = None) -> Records:
    """Keep the newest row of every cell of every suite, on the labelled cases that the paper's tables are on."""
    both = data.groupby(["suite", "protocol"]).subsets.transform("nunique") > 1
    theirs = data.protocol.map(lambda name: PROTOCOLS[name]().subsets if name in PROTOCOLS else AUTHORS)
    data = data[~both | (data.subsets == theirs)]
    parts = [latest(own, ["batch_size"] if suite == SIZED else []) for suite, own in data.groupby("suite", sort=False)]
    return Records(pd.concat(parts) if parts else data, beside)


def printed_only(theirs: pd.DataFrame) -> Part:
    """Show the paper's numbers alone."""
    digits = digits_of(theirs)
    cells = theirs.map(lambda value: Cell("" if pd.isna(value) else f"{value:.{digits}f}", ABSENT))
    table = Table(cells.rename_axis("contender"), "The paper's numbers; there is no record of ours.")
    return Part("", table.turned("data set") if len(cells.columns) > MANY_COLUMNS else table)


def scores_part(records: Records, suite: str, labels: str = "linear", hours: bool = False) -> Iterator[Part]:
    """Show contenders and data sets by the protocols that see these labels; `hours` adds the times."""
    # Of the archives the paper leaves sets out; and two schedules would make 124 rows twice as wide.
    own, theirs = records.scored(labels, suite, as_paper=suite in ARCHIVES), printed(suite, labels)
    if own.empty:
        yield printed_only(theirs)
        return
    made = grid(own, theirs, EXPECTED.get(suite, LARGE))
    cells = made.scores()
    cells[f"average of {len(made.counted())}"] = made.average()
    cells |= {"time to fit": made.times()} if hours else {}
    yield Part("", made.table(cells, made.over, made.reading, turned=len(made.columns) > MANY_SETS))


def clustering_part(records: Records, suite: str, averages: bool = False) -> Iterator[Part]:
    """Show NMI and ARI on every data set, or only averages, with the rank over both."""
    data, theirs = records.of(suite), printed(suite)
    own = data[data.metric.isin(("nmi", "ari"))]
    table = pd.DataFrame(paper_tables()["clustering_average"]).rename(SHORT)
    if own.empty:
        yield printed_only(table if averages else theirs)
        return
    made = grid(own, theirs, LARGE, ("nmi", "ari"))
    cells = {} if averages else made.scores()
    cells |= {f"average {metric.upper()}": made.average(metric) for metric in ("nmi", "ari")}
    if averages:
        cells["average rank"] = made.ranks(table.AvgRank.dropna().to_dict())
    yield Part("", made.table(cells, made.over, made.reading))


def archives_part(records: Records, *suites: str) -> Iterator[Part]:
    """Show the summary of both archives, and what the schedule of the authors' code makes of each method."""
    if records.of(*suites).empty:
        yield printed_only(pd.DataFrame(paper_tables()["ucr_uea_summary"]).T.astype(float))
        return
    yield Part("", summary_of_archives(records))
    if (schedules := schedule_table(records)) is not None:
        yield Part("Both schedules", schedules)


def summary_of_archives(records: Records) -> Table:
    """Show accuracy, rank and time of both archives, ours beside the paper's over the same sets and as printed."""
    summary = pd.DataFrame(paper_tables()["ucr_uea_summary"]).T.astype(float)
    whole = grid(records.scored("linear", *ARCHIVES, as_paper=True), summary, ())
    cells: dict[str, list[Cell]] = {}
    times: dict[str, dict[str, str]] = {line: {} for line in whole.every}
    notes = []
    for suite in ARCHIVES:
        part, word = whole.of(suite), suite.upper()
        if (block := part.block) is None:
            cells |= {f"{word} accuracy": part.average(), f"{word} rank": part.ranks({})}
            continue
        cells[f"{word} accuracy, {len(block.columns)} sets"] = part.average()
        cells[f"{word} rank"] = part.ranks(paper_ranks(part.theirs, block.lines, block.columns))
        for line, time in fit_times(block).items():
            times[line][word] = times_text(time)
        notes.append(f"{word}: {block.missing_text()}")
    cells["time to fit"] = [_time_cell(times[line]) for line in whole.every]
    for name in summary:
        suite, _, kind = str(name).rpartition("_")
        numbers = (number(summary, line, str(name)) for line in whole.every)
        cells[f"printed: {f'{suite.upper()} {kind}'.strip()}"] = list(map(number_cell, numbers))
    sets = ", ".join(f"{len(EXPECTED[name])} {name.upper()}" for name in ARCHIVES)
    about = f"Ours (the paper's over the same sets, difference); printed: the paper's over {sets} sets."
    return whole.table(cells, *notes, RANKS, about)


def _time_cell(times: Mapping[str, str]) -> Cell:
    """Show the time on each archive by itself: their devices may differ."""
    if set(times.values()) <= {NOT_MEASURED}:
        return Cell(NOT_MEASURED if times else NOT_RUN, ABSENT)
    return Cell("; ".join(f"{word}: {time}" for word, time in times.items()))


def number_cell(value: float | None) -> Cell:
    """Print a number of the paper's; nothing where there is none."""
    return Cell("" if value is None or pd.isna(value) else f"{value:.2f}")


def schedule_table(records: Records) -> Table | None:
    """Compare the paper's schedule with that of the authors' code, on the data sets that a method has both on."""
    own = records.scored("linear", *FAMILIES)
    both = own[own.protocol == "linear"].pivot_table("value", ["target", "seed"], ["contender", "schedule"])
    rows = []
    for method in METHODS:
        columns = [(method, PAPER_SCHEDULE), (method, AUTHORS_SCHEDULE), *((name, "") for name in CONTROLS)]
        if all(column in both for column in columns):
            shared = both[columns].dropna().groupby("target").mean()
            step, epoch, *controls = shared.mean()
            gaps = shared[columns[0]] - shared[columns[1]]
            counts = f"{(gaps > 0).sum()} / {(gaps == 0).sum()} / {(gaps < 0).sum()}"
            cells = [str(len(shared)), f"{step:.2f}", f"{epoch:.2f}", signed(step - epoch, 2), counts]
            rows.append((NAMES[method], [*cells, *(f"{value:.2f}" for value in controls)]))
    if not rows:
        return None
    headings = ["data sets", "per_step", "per_epoch", "difference", "better / equal / worse", *CONTROLS]
    about = (
        "Average accuracy by linear probe with all labels over the data sets that a method has both schedules on, "
        "others for each method, so that only its own row compares. per_step is the paper's schedule; per_epoch that "
        "of the authors' code, whose rate hardly rises (D-01), so that the encoder stays close to calibrated."
    )
    return text_table("method", rows, headings, about)


def variants_part(records: Records, suite: str) -> Iterator[Part]:
    """Show the variants of Di-COT: averages as differences from the method itself, then beside the paper's."""
    theirs, data = pd.DataFrame(paper_tables()[VARIANTS[suite]]).T, records.of(suite)
    family = data.target.map(lambda name: found if (found := family_of(name)) in ARCHIVES else "large")
    family = family.where(data.source == data.target, "transfer")
    grids = {}
    for column in filter(theirs.__contains__, VARIED):
        place, protocol, metric = VARIED[column]
        own = _of_common_seeds(data[(family == place) & (data.protocol == protocol) & (data.metric == metric)])
        made = grid(own, theirs[[column]].set_axis([AVERAGE], axis=1), EXPECTED[place])
        name = ", ".join(word for word in VARIED[column] if word not in PLAIN)
        of = str(made.runs.column.nunique()) if len(own) else f"the paper's {len(EXPECTED[place])}"
        grids[f"{name} ({len(made.counted())} of {of} sets)"] = made
    recorded = {heading: made for heading, made in grids.items() if len(made.runs)}
    if not recorded:
        yield printed_only(theirs)
        return
    base, lost = BASES.get(suite, NAMES["dicot"]), without_loss(data)
    about = f"Over the seeds that all lines have. In brackets the difference from {base!r}."
    table = side_by_side("variant", recorded, [_differences(made, base) for made in recorded.values()], about, lost)
    yield Part("Averages and differences from the method itself", table)
    about = "Ours (the paper's, difference). No difference where the paper's average is over other data sets."
    table = side_by_side("variant", grids, [made.average() for made in grids.values()], about, lost)
    yield Part("Ours beside the paper", table)


def _of_common_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep the seeds that every contender has: another one draws other labels, so that averages would not compare."""
    seeds = set.intersection(*rows.groupby("contender").seed.agg(set)) if len(rows) else set[int]()
    return rows[rows.seed.isin(seeds)] if seeds else rows


def positives_part(records: Records, suite: str) -> Iterator[Part]:
    """Show which neighbour is the positive one, and what a second one costs."""
    yield from variants_part(records, suite)
    yield from both_parts(records.beside)


def _differences(made: Grid, base: str) -> list[Cell]:
    """Show averages, those of the paper's lines with the difference from one of them."""
    means, digits, halves, cells = made.means(), made.digits, made.half_widths(), []
    for line in made.every:
        if line not in means:
            cells.append(Cell(made.lack(line), ABSENT))
            continue
        gap = line in made.names and line != base and base in means
        text = with_interval(float(means[line]), halves.get(line), digits)
        text += f" ({signed(means[line] - means[base], digits)})" if gap else ""
        cells.append(Cell(text, mean=round(float(means[line]), digits)))
    return mark_best(cells)


def without_loss(runs: pd.DataFrame) -> str:
    """Name the sets on which two fixed sub-blocks become one by the paper's rounding, so that nothing is learned."""
    sets = [name for name in runs.source[runs.contender == TWO_BLOCKS].unique() if _one_block(name)]
    if not sets:
        return ""
    return (
        f"{TWO_BLOCKS}: one sub-block by the paper's rounding on {', '.join(sorted(sets, key=natural))} (D-03): the "
        "loss is 0 there, and nothing is learned."
    )


def _one_block(name: str) -> bool:
    known = DATASETS.registered(name)
    if known is None or known.sizes is None or known.sizes.n_times is None:
        return False
    length = 2 * round(known.sizes.n_times / 1.5 / 2)  # k = 2 with half of a block shared
    return length + round(length / 2) > known.sizes.n_times


def data_sets_part(records: Records) -> Iterator[Part]:
    """Show the sizes of the paper's large sets and of what stands in for them: ours beside the paper's."""
    recorded = set(records.data.target) | set(records.data.source)
    known = [one for name in DATASETS if (one := DATASETS.registered(name)) is not None]
    rows = []
    for name in LARGE:
        own = [one for one in known if data_set_key(one.stands_in_for or one.name) == name]
        for one in sorted(own, key=lambda one: (bool(one.stands_in_for), one.name)):
            sizes = _sizes(one, paper_tables()["datasets"][name])
            rows.append((one.name, [name, *sizes, "yes" if one.name in recorded else "none"]))
    about = (
        "Ours (the paper's). A stand-in is another data set of the same kind. Where ours differ from the paper's, "
        "docs/divergences.md says why (D-42 to D-49, D-92 to D-96)."
    )
    heads = ["in the paper", "is", *(head for head, _ in SIZES.values()), "records"]
    yield Part("", text_table("data set", rows, heads, about))


def _sizes(one: DataSet, paper: Mapping[str, float]) -> Iterator[str]:
    """Say what a set is to the paper, then its sizes."""
    same = "the paper's" if column_of(one.name, one.name).exact else "another preparation"
    yield "a stand-in" if one.stands_in_for else same
    own = (one.sizes or Sizes())._asdict()
    for name, (_, column) in SIZES.items():
        shown = "differs" if own[name] is None else f"{own[name]:,}"
        yield shown if one.stands_in_for else f"{shown} ({paper[column]:,.0f})"
