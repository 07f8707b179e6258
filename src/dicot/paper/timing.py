"""What training takes against the batch size: time per step, memory, seconds to fit."""

from collections.abc import Iterator
from functools import partial

import pandas as pd

from dicot.judge.report.filenames import slug
from dicot.judge.report.frame import CONTROLS, contender_of, means, natural, note, placed, seeds_of
from dicot.judge.report.parts import Part
from dicot.judge.report.scores import failures, score_table, seeds_text
from dicot.paper.figures import power_curves

UNTRAINED = "no batches"
TITLES = {  # of the metrics that measure a run, whatever the protocol is called
    "step_ms": ("Time per step", "milliseconds per step"),
    "peak_mib": ("Memory", "peak memory in MiB"),
    "fit_seconds": ("Time to fit", "seconds to fit"),
    "embed_seconds": ("Time to embed", "seconds to embed"),
    "encoded": ("Time steps encoded", "time steps encoded for each time step of a case"),
}


def timing_parts(data: pd.DataFrame) -> Iterator[Part]:
    """Make a table and a figure per data set and measure, batch sizes across."""
    for name in sorted(data.target[data.metric.isin(TITLES)].unique(), key=natural):
        for metric, (title, axis) in TITLES.items():
            own = data[(data.metric == metric) & (data.target == name)]
            if len(own):
                runs = placed(own, own.batch_size.map(lambda size: str(size) if size else UNTRAINED))
                yield _part(runs, f"{title} on {name}", axis, f"{metric.replace('_', '-')}-{slug(name).lower()}")


def _part(runs: pd.DataFrame, title: str, axis: str, stem: str) -> Part:
    about = f"{axis[0].upper()}{axis[1:]} by batch size. A control takes no steps and has no batches."
    contender = contender_of(runs)
    table = score_table(
        runs,
        note(runs, seeds_text(seeds_of(runs)), about, failures(runs)),
        marked=False,
        empty=lambda line, column: contender[line] in CONTROLS or column == UNTRAINED,
    )
    curves = {}
    for line, row in means(runs).drop(columns=UNTRAINED, errors="ignore").iterrows():
        measured = row[row > 0]
        if len(measured) > 1 or (len(measured) and _failed_sizes(runs, line, 0)):
            curves[line] = ([float(size) for size in measured.index], measured.tolist())
    ends = {line: min(sizes) for line in curves if (sizes := _failed_sizes(runs, line, max(curves[line][0])))}
    figures = {stem: partial(power_curves, curves, "batch size", axis, ends)} if curves else {}
    text = "A cross: the batch size at which a line ends, because the job failed." if ends else ""
    return Part(title, table, figures, text)


def _failed_sizes(runs: pd.DataFrame, line: str, largest: float) -> list[float]:
    """List the batch sizes beyond the largest measured one at which this line failed."""
    failed = runs[(runs.line == line) & runs.error.notna()].column
    return [float(size) for size in failed if size != UNTRAINED and float(size) > largest]
