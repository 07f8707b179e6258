"""The paper's figures: what each is made of, as parts of a page."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from bench.paper import times as alone
from bench.paper.drawings import power_curves, reference_curves, sub_blocks
from bench.paper.grid import EXPECTED, column_of, grid, paper_ranks, side_by_side
from bench.paper.mapfile import read_maps
from bench.paper.numbers import AVERAGE, COUNTS, LARGE, METHODS, NAMES, printed, printed_hours, printed_names
from bench.paper.tables import FAMILIES, RANKS, Records, number_cell
from bench.report import frame
from bench.report.benchmark import times
from bench.report.figures import critical_difference, time_scatter
from bench.report.pages import slug
from bench.report.scores import standings
from bench.report.stats import friedman_text
from dicot.judge.report import frame as tidy
from dicot.judge.report.figures import map_panels
from dicot.judge.report.page import Part
from dicot.judge.report.scores import failures, score_table, seeds_text
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell

HERO = NAMES["dicot"]
UNTRAINED = "no batches"
TIMES = {"step_ms": ("Time per step", "milliseconds per step"), "peak_mib": ("Memory", "peak memory in MiB")}


def time_part(records: Records, suite: str) -> Iterator[Part]:
    """Figure 1: accuracy with 1 % of the labels against time to fit, ours and the paper's."""
    own, theirs, hours = records.scored("few_1pct", suite), printed(suite), printed_hours()
    if len(own):
        made = grid(own, theirs, LARGE)
        if made.block is None:
            yield Part("", text="There is no data set that all of the paper's lines have.")
        else:
            cells = {"average accuracy": made.average(), "time to fit": made.times()}
            yield Part("", made.table(cells, made.over, made.reading))
            yield from times(made.block, "Ours", "figure1")
    points = {name: (3600 * hours[name], mean) for name, mean in theirs[AVERAGE].items() if name in hours}
    figure = {"figure1-paper": partial(time_scatter, points, "average accuracy", [HERO])}
    text = "From the numbers of the paper's Tables 1 and 3; it prints no time for what has no pretraining."
    yield Part("The paper's", figures=figure, text=text)
    yield from alone.methods_parts(records.beside)


def method_part(records: Records) -> Iterator[Part]:
    """Figure 2: the method, drawn."""
    t = np.linspace(0, 1, 160)
    case = (np.sin(2 * np.pi * 3 * t) + 0.6 * np.sin(2 * np.pi * 7 * t + 1) * t).tolist()
    text = (
        "Drawn here with k = 4; in training k is drawn anew for every step, from 2 to 10. Sub-blocks share half of "
        "their time steps, the encoder turns each into one vector, and cross entropy asks each to pick its predecessor "
        "among the sub-blocks of its own case."
    )
    yield Part("", figures={"figure2": partial(sub_blocks, case, 4)}, text=text)


def ranks_part(records: Records, *suites: str) -> Iterator[Part]:
    """Figure 3: ranks of the methods over all data sets: ours, the paper's over the same and over all of its own."""
    own = records.scored("linear", *suites, as_paper=True)
    own = own[own.contender.isin((*METHODS, *frame.CONTROLS)) & (own.protocol == "linear")]
    expected = [name for family in FAMILIES for name in EXPECTED[family]]
    theirs = pd.concat([printed(suite) for suite in FAMILIES], axis=1).loc[[NAMES[name] for name in METHODS], expected]
    made = grid(own, theirs, expected)
    if (block := made.block) is None:
        yield Part("", text="There is no data set that the paper's methods have in common.")
        return
    exact = [column.label for column in made.columns if column.exact and column.label in block.columns]
    averages = standings(block).average.map("{:.2f}".format)
    same, every = paper_ranks(theirs, block.lines, exact), paper_ranks(theirs, made.names, expected)
    cells = {
        f"rank over {len(block.columns)} sets": made.ranks({}),
        f"the paper's, {len(exact)} of these": [number_cell(same.get(line)) for line in made.every],
        f"the paper's, all {len(expected)}": [number_cell(every.get(line)) for line in made.every],
        "average accuracy": [
            Cell(averages[line]) if line in averages else Cell(NOT_RUN, ABSENT) for line in made.every
        ],
    }
    counts = made.runs[made.runs.column.isin(block.columns)].groupby("suite").column.nunique()
    by_suite = ", ".join(f"{count} {suite}" for suite, count in counts.items())
    yield Part("", made.table(cells, f"{block.missing_text()} By suite: {by_suite}.", RANKS))
    if len(block.columns) > 1 and len(block.lines) > 1:
        yield _critical_difference("Ours", "figure3", block.merits, "")
    words = "The same from the numbers that the paper prints, "
    yield _critical_difference("From the paper's tables", "figure3-paper", theirs.dropna(axis=1).T, words)


def _critical_difference(title: str, stem: str, merits: pd.DataFrame, words: str) -> Part:
    """Draw the ranks of merits (data sets x lines)."""
    scores = merits.to_numpy()
    text = f"{words}{len(merits)} data sets. {friedman_text(scores)}"
    return Part(title, figures={stem: partial(critical_difference, scores, list(merits))}, text=text)


def neighbours_part(records: Records, suite: str) -> Iterator[Part]:
    """Figure 4: the average accuracy of nearest neighbours by the number of labelled cases, ours and the paper's.

    Each of our averages is over the sets that its lines share.
    """
    names, theirs = printed_names([suite]), {count: printed(suite, f"knn_{count}") for count in COUNTS}
    own = {count: records.scored(f"knn_{count}", suite) for count in COUNTS}
    grids = {count: grid(rows, theirs[count], LARGE) for count, rows in own.items() if len(rows)}
    axes = "labelled cases per class", "average accuracy"
    if grids:
        sets = ", ".join(f"{count}: {len(made.counted())}" for count, made in grids.items())
        reading = f"{list(grids.values())[-1].reading}"
        about = f"Average accuracy by labelled cases per class; data sets: {sets}. {reading}"
        columns = {f"{count} per class": made for count, made in grids.items()}
        cells = [made.average() for made in grids.values()]
        yield Part("", side_by_side("contender", columns, cells, about))
        means = {count: made.means() for count, made in grids.items()}
        lines = dict.fromkeys(line for own in means.values() for line in own.index)
        curves = {line: [float(own.get(line, math.nan)) for own in means.values()] for line in lines}
        if curves:
            yield Part("Ours", figures={"figure4": partial(reference_curves, curves, list(grids), *axes)})
    curves = {name: [theirs[count].loc[name, list(LARGE)].mean() for count in COUNTS] for name in names}
    text = "Averages over the six sets of the paper's Tables 11 to 15, recomputed from their entries (D-98)."
    figure = {"figure4-paper": partial(reference_curves, curves, COUNTS, *axes)}
    yield Part("The paper's", figures=figure, text=text)


def maps_part(records: Records) -> Iterator[Part]:
    """Figure 5: maps of the embeddings, every point of the test part, contenders in the order of the tables."""
    if records.maps is None:
        return
    maps = read_maps(records.maps)
    names = sorted(maps.points, key=frame.contender_order)
    panels = {name: (maps.points[name].astype(np.float64), maps.labels) for name in names}
    alike: dict[str, list[str]] = {}  # how maps came about -> whose did
    for name in names:
        alike.setdefault(maps.titles[name], []).append(name)
    made = "; ".join(f"{', '.join(own)}: {how}" for how, own in alike.items())
    trial = f" A trial: every training had {maps.steps} steps." if maps.steps else ""
    title = f"Maps of the test part of {maps.data_set}"
    yield Part(title, figures={"figure5": partial(map_panels, panels)}, text=f"{made}; seed {maps.seed}.{trial}")


def scaling_part(records: Records, suite: str) -> Iterator[Part]:
    """Figure 6: time and memory of a step against the batch size, a table and a figure per data set and measure."""
    yield from (measured := list(alone.batches_parts(records.beside)))
    data = records.of(suite)
    names = data.target[data.metric.isin(TIMES)].unique()  # of a stand-in the runs that were alone say it better
    for name in sorted((one for one in names if not measured or column_of(one, one).exact), key=tidy.natural):
        for metric, (title, axis) in TIMES.items():
            own = data[(data.metric == metric) & (data.target == name)]
            if len(own):
                runs = frame.placed(own, own.batch_size.map(lambda size: str(size) if size else UNTRAINED))
                stem = f"figure6-{metric.replace('_', '-')}-{slug(name).lower()}"
                yield _by_batch_size(runs, f"{title} on {name}", axis, stem)
    yield from alone.exponents_parts(records.beside)


def _by_batch_size(runs: pd.DataFrame, title: str, axis: str, stem: str) -> Part:
    about = f"{axis[0].upper()}{axis[1:]} by batch size. A control takes no steps and has no batches."
    table = score_table(runs, frame.note(runs, seeds_text(runs), about, failures(runs)))
    curves: dict[str, tuple[list[float], list[float]]] = {}
    ends: dict[str, float] = {}
    for line, row in frame.means(runs).drop(columns=UNTRAINED, errors="ignore").iterrows():
        measured = row[row > 0]
        sizes = [float(size) for size in measured.index]
        failed = runs[(runs.line == line) & runs.error.notna() & (runs.column != UNTRAINED)].column
        beyond = [float(size) for size in failed if sizes and float(size) > sizes[-1]]
        if len(sizes) > 1 or beyond:
            curves[line] = (sizes, measured.tolist())
            ends |= {line: min(beyond)} if beyond else {}
    figures = {stem: partial(power_curves, curves, "batch size", axis, ends)} if curves else {}
    text = "A cross: the batch size at which a line ends, because the job failed." if ends else ""
    return Part(title, table, figures, text)


def splits_part(records: Records) -> Iterator[Part]:
    """Figure 7: the time of a step against the number of sub-blocks."""
    parts = list(alone.splits_parts(records.beside))
    yield from parts or [Part("", text="Not measured: there is no file times.csv beside the records.")]
