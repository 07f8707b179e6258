"""The paper's figures as parts of a page."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from dicot.judge.report.benchmark import times
from dicot.judge.report.figures import time_scatter
from dicot.judge.report.frame import (
    CONTROLS,
    SAME_LABELS,
    contender_of,
    decimals,
    means,
    natural,
    note,
    placed,
    seeds_of,
)
from dicot.judge.report.page import Part, slug
from dicot.judge.report.scores import failures, score_table, seeds_text
from dicot.judge.report.standings import seconds_text
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, text_table
from dicot.paper.exhibits.archives import ranks_over_everything
from dicot.paper.exhibits.grids import average_cells, reading, table_of
from dicot.paper.exhibits.records import Records
from dicot.paper.exhibits.tables import printed_averages, printed_hours, time_cells
from dicot.paper.exhibits.variants import without_loss
from dicot.paper.figures import drawn_maps, power_curves, reference_curves, sub_blocks
from dicot.paper.lines import Column, Lines, columns_of, in_lines
from dicot.paper.numbers import LARGE, NAMES, paper_tables, printed, printed_names

HERO = NAMES["dicot"]
FIXED, UNIFORM = "Global Fixed Splits (k) -> ", "Uniform Splits Sampling (k_{max}) -> "
CURVES = {FIXED: "k fixed", UNIFORM: "k from 2 to k_max"}
UNTRAINED = "no batches"
TIMES = {"step_ms": ("Time per step", "milliseconds per step"), "peak_mib": ("Memory", "peak memory in MiB")}


def time_part(records: Records) -> Iterator[Part]:
    """Figure 1: accuracy with 1 % of the labels against time to fit, ours and the paper's."""
    data, labels = records.of("low_label"), "few_1pct"
    own = data[(data.metric == "accuracy") & (data.protocol.map(lambda p: SAME_LABELS.get(p, p)) == labels)]
    accuracy, hours = printed_averages("low_label", labels), printed_hours()
    if len(own):
        names, columns = columns_of(own, LARGE)
        lines = in_lines(own, names, printed_names(["low_label"]))
        yield from _times(lines, columns, accuracy)
    points = {name: (3600 * hours[name], accuracy[name]) for name in accuracy if name in hours}
    figure = {"figure1-paper": partial(time_scatter, points, "average accuracy", [HERO])}
    text = "From the numbers of the paper's Tables 1 and 3; it prints no time for what has no pretraining."
    yield Part("The paper's", figures=figure, text=text)


def _times(lines: Lines, columns: list[Column], accuracy: Mapping[str, float]) -> Iterator[Part]:
    block = lines.block()
    if block is None:
        yield Part("", text="There is no data set that all of the paper's lines have.")
        return
    digits = decimals(lines.runs)
    cells = {
        "average accuracy": average_cells(lines, block, columns, printed("low_label"), accuracy, digits, True),
        "time to fit": time_cells(lines),
    }
    yield Part("", table_of(lines, cells, block.missing_text(), reading(columns)))
    yield from times(block, "Ours", "figure1")


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


def ranks_part(records: Records) -> Iterator[Part]:
    """Figure 3: ranks over all families of data sets together."""
    yield from ranks_over_everything(records.of("ucr", "uea", "large"))


def neighbours_part(records: Records) -> Iterator[Part]:
    """Figure 4: the average accuracy of nearest neighbours by the number of labelled cases."""
    counts = list(paper_tables()["knn"])
    data = records.of("knn")
    own = data[(data.metric == "accuracy") & data.protocol.isin([f"knn_{count}" for count in counts])]
    names = printed_names(["knn"])
    if len(own):
        yield from _neighbours(own, counts, names)
    rows = {count: printed("knn", f"knn_{count}") for count in counts}
    curves = {name: [_mean(rows[count], name) for count in counts] for name in names}
    figure = partial(reference_curves, curves, counts, "labelled cases per class", "average accuracy")
    text = "Averages over the six sets of the paper's Tables 11 to 15, recomputed from their entries (D-98)."
    yield Part("The paper's", figures={"figure4-paper": figure}, text=text)


def _mean(rows: Mapping[tuple[str, str], float], name: str) -> float:
    return sum(rows[name, column] for column in LARGE) / len(LARGE)


def _neighbours(own: pd.DataFrame, counts: list[str], names: list[str]) -> Iterator[Part]:
    """Show the averages by every number of cases as a table and a figure, each over the sets that its lines share."""
    cells: dict[str, dict[str, Cell]] = {}
    curves: dict[str, dict[str, float]] = {}
    sets, every, known = [], [], []
    for count in counts:
        part = own[own.protocol == f"knn_{count}"]
        if part.empty:
            continue
        labels, columns = columns_of(part, LARGE)
        known = columns
        lines = in_lines(part, labels, names)
        block, digits = lines.block(), decimals(part)
        numbers, averages = printed("knn", f"knn_{count}"), printed_averages("knn", f"knn_{count}")
        column = average_cells(lines, block, columns, numbers, averages, digits)
        cells[count] = dict(zip(lines.every, column, strict=True))
        every += [line for line in lines.every if line not in every]
        if block is not None:
            sets.append(f"{count}: {len(block.columns)}")
            for line, mean in block.shown.mean(axis=1).items():
                curves.setdefault(str(line), {})[count] = float(mean)
    everyone = [*names, *(line for line in every if line not in names)]
    absent = Cell(NOT_RUN, ABSENT)
    rows = ((line, [cells[count].get(line, absent) for count in cells]) for line in everyone)
    about = f"Average accuracy by labelled cases per class; data sets: {', '.join(sets)}. {reading(known)}"
    heads = [f"{count} per class" for count in cells]
    yield Part("", text_table("contender", rows, heads, f"{seeds_text(seeds_of(own), 'Means over')} {about}"))
    if curves:
        lists = {line: [row.get(count, math.nan) for count in cells] for line, row in curves.items()}
        figure = partial(reference_curves, lists, list(cells), "labelled cases per class", "average accuracy")
        yield Part("Ours", figures={"figure4": figure})


def maps_part(records: Records) -> Iterator[Part]:
    """Figure 5: maps of the embeddings, every point of the test part."""
    if records.maps is not None:
        part = drawn_maps(records.maps)
        yield replace(part, figures=dict(zip(["figure5"], part.figures.values(), strict=True)))


def scaling_part(records: Records) -> Iterator[Part]:
    """Figure 6: time and memory of a step against the batch size, a table and a figure per data set and measure."""
    data = records.of("batch_scaling")
    for name in sorted(data.target[data.metric.isin(TIMES)].unique(), key=natural):
        for metric, (title, axis) in TIMES.items():
            own = data[(data.metric == metric) & (data.target == name)]
            if len(own):
                runs = placed(own, own.batch_size.map(lambda size: str(size) if size else UNTRAINED))
                stem = f"figure6-{metric.replace('_', '-')}-{slug(name).lower()}"
                yield _by_batch_size(runs, f"{title} on {name}", axis, stem)


def _by_batch_size(runs: pd.DataFrame, title: str, axis: str, stem: str) -> Part:
    about = f"{axis[0].upper()}{axis[1:]} by batch size. A control takes no steps and has no batches."
    contender = contender_of(runs)
    table = score_table(
        runs,
        note(runs, seeds_text(seeds_of(runs)), about, failures(runs)),
        marked=False,
        empty=lambda line, column: contender[line] in CONTROLS or column == UNTRAINED,
    )
    curves: dict[str, tuple[list[float], list[float]]] = {}
    ends: dict[str, float] = {}
    for line, row in means(runs).drop(columns=UNTRAINED, errors="ignore").iterrows():
        measured = row[row > 0]
        if not len(measured):
            continue
        sizes = [float(size) for size in measured.index]
        failed = runs[(runs.line == line) & runs.error.notna()].column
        beyond = [float(size) for size in failed if size != UNTRAINED and float(size) > sizes[-1]]
        if len(sizes) > 1 or beyond:
            curves[line] = (sizes, measured.tolist())
            ends |= {line: min(beyond)} if beyond else {}
    figures = {stem: partial(power_curves, curves, "batch size", axis, ends)} if curves else {}
    text = "A cross: the batch size at which a line ends, because the job failed." if ends else ""
    return Part(title, table, figures, text)


def splits_part(records: Records) -> Iterator[Part]:
    """Figure 7: the number of sub-blocks against the time to fit, summed over every data set that all of them have."""
    data = records.of("extended_ablation")
    own = data[data.contender.str.startswith(tuple(CURVES)) & (data.schedule == "per_step") & data.error.isna()]
    own = own.drop_duplicates(["contender", "source", "seed"], keep="last")
    if own.empty:
        return
    seconds = own.groupby(["contender", "source"]).seconds.agg(lambda s: s.mean(skipna=False)).unstack()
    one_device = own.groupby("source").on.nunique() == 1
    shared = seconds.columns[seconds.notna().all() & one_device.reindex(seconds.columns)]
    devices = sorted(set(own.on[own.source.isin(shared)]))
    if len(devices) != 1:
        found = "there is no data set on which each of these variants ran alone on one device with a name"
        why = f"these runs are of {' and '.join(devices)}, which do not compare" if devices else found
        yield Part("", text=f"Not measured: {why}. The paper prints no numbers for this figure.")
        return
    total = seconds[shared].sum(axis=1)
    counts = sorted({name.rpartition(" ")[2] for name in total.index}, key=natural)
    curves = {
        words: [float(total.get(start + count, math.nan)) for count in counts]
        for start, words in CURVES.items()
        if any(start + count in total.index for count in counts)
    }
    rows = ((words, [seconds_text(value) if value == value else "" for value in row]) for words, row in curves.items())
    about = (
        f"Time to fit, summed over {len(shared)} data set(s) that all {len(seconds)} variants have, mean over seeds, "
        f"on {devices[0]}, where each run was alone. {HERO} is k from 2 to k_max = 10. The paper prints no numbers for "
        f"this figure. {without_loss(own[own.source.isin(shared)])}"
    )
    figure = partial(reference_curves, curves, counts, "sub-blocks (k or k_max)", "seconds to fit, all data sets")
    yield Part("", text_table("sub-blocks", rows, counts, about), {"figure7": figure})
