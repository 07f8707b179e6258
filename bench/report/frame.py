"""What the tables of a benchmark add to the tidy frame: times, the order of lines and columns, means, notes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dicot.core.errors import InputError
from dicot.data.datasets import DATASETS
from dicot.judge.classical import CLASSICAL
from dicot.judge.protocols import PROTOCOLS, find_metric
from dicot.judge.protocols.base import fixed_per_class, stratified_fraction
from dicot.judge.report import frame as tidy
from dicot.judge.report.frame import NOISE, SUBSET_NOTES, metric_names, natural

SETTINGS = ("contender", "schedule", "precision", "trial")
LINE = (*SETTINGS, "protocol")  # rows that differ in one of these have lines of their own, where nothing else is said
CONTROLS = ("random", "calibrated")  # every table of methods has them; as in dicot.model.controls, without torch
REFERENCES = ("supervised", "end-to-end")  # what sees every label
FIRST: list[str] = []  # contenders that stand first in a table, in this order; bench.paper.numbers adds the paper's
# Protocols that answer the same question: with all labels, with one in a hundred.
ALL_LABELS = ("linear", "ridge", "forest", "finetune-100")
SAME_LABELS = dict.fromkeys(ALL_LABELS, "linear") | dict.fromkeys(("forest_1pct", "finetune-1"), "few_1pct")
PAPER_SCHEDULE = "per_step"
ALONE, SHARED = ", alone", " (shared)"  # behind the name of a device
FORESTS = ("forest", "forest_1pct")  # which are trained when they score


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Make the frame of tidy rows; each needs contender, protocol, metric, seed and value, a failed one an error.

    It has two more columns, `seconds` and `on`: how long a run trained where it was alone on a device with a name, NaN
    and "" elsewhere. A row tells that by its device (", alone"), or is one that measures a fit; the same fit of its
    suite has its time. A forest is trained when it scores, so that counts too.
    """
    data = tidy.frame(rows)
    timed = (data.metric == "fit_seconds") & data.error.isna() & ~data.device.isin(("", "cpu"))
    alone = (timed | data.device.str.endswith(ALONE)) & ~data.device.str.endswith(SHARED)
    forest = data.score_seconds.where(data.protocol.isin(FORESTS), 0.0)
    data = data.assign(
        seconds=(data.fit_seconds.where(~timed, data.value) + forest).where(alone),
        on=data.device.str.removesuffix(ALONE).where(alone, ""),
    )
    fit = ["suite", *SETTINGS, "batch_size", "source", "seed"]
    measured = data[timed & alone].drop_duplicates(fit, keep="last").set_index(fit)[["seconds", "on"]]
    if measured.empty:
        return data
    found = data[fit].join(measured, on=fit)
    plain = ~alone & found.seconds.notna() & ~data.protocol.str.startswith("finetune") & ~data.protocol.isin(FORESTS)
    return data.assign(seconds=found.seconds.where(plain, data.seconds), on=found.on.where(plain, data.on))


def latest(data: pd.DataFrame, varied: Sequence[str] = ()) -> pd.DataFrame:
    """Keep one row per cell, seed and draw: the one recorded last. `varied` names more columns that make a cell.

    A protocol that was run on both choices of labelled cases becomes two: scores on different ones do not compare.
    """
    cell = [*LINE, "subsets", "source", "target", "metric", "seed", "draw", *varied]
    kept = data.sort_values("recorded", kind="stable").drop_duplicates(cell, keep="last")
    both = kept.groupby("protocol").subsets.transform("nunique") > 1
    return kept.assign(protocol=kept.protocol.where(~both, kept.protocol + " (" + kept.subsets + ")"))


def data_sets(data: pd.DataFrame) -> pd.Series:
    """Name the data set of each row: source > target where they differ."""
    return data.target.where(data.source == data.target, data.source + " > " + data.target)


def placed(data: pd.DataFrame, columns: Iterable[str], fields: Sequence[str] = LINE) -> pd.DataFrame:
    """Add where each row stands in a table: the categories `line` and `column`, both in the order of a table.

    `columns` names the column of each row; rows that differ in one of `fields` have lines of their own. A line is
    called by its contender, and by those settings in which the contender's lines differ.
    """
    names = pd.Series(list(columns), index=data.index, dtype=object)
    lines = data.assign(**{} if "protocol" in fields else {"protocol": ""})[list(LINE)].drop_duplicates()
    order = sorted(lines.contender.unique(), key=contender_order)
    lines = lines.assign(place=lines.contender.map(order.index), other=lines.schedule != PAPER_SCHEDULE)
    lines = lines.sort_values(["place", "protocol", "other", "schedule", "precision", "trial"])
    several = lines.groupby("contender")[["protocol", "schedule", "precision"]].nunique() > 1
    labels: list[str] = []
    for line in lines.to_dict("records"):
        differ = [name for name in several.columns if several.loc[line["contender"], name]]
        label = ", ".join([line["contender"], *(line[name] or f"no {name}" for name in differ)])
        label += " (trial)" if line["trial"] else ""
        labels.append(label if label not in labels else f"{label} ({len(labels)})")
    own = data[list(fields)].merge(lines.assign(label=labels)[[*fields, "label"]], on=list(fields), how="left")
    return data.assign(
        line=pd.Categorical(own.label, labels, ordered=True),
        column=pd.Categorical(names, sorted(names.unique(), key=natural), ordered=True),
    )


def by_data_set(data: pd.DataFrame, metrics: Sequence[str], protocols: Sequence[str] | None = None) -> pd.DataFrame:
    """Place the rows of these metrics (by these protocols), a column per data set, for several metrics one for each."""
    chosen = data[data.metric.isin(metrics) & (True if protocols is None else data.protocol.isin(protocols))]
    sets = data_sets(chosen)
    return placed(chosen, sets if len(metrics) == 1 else sets + " " + chosen.metric)


def contender_order(name: str) -> tuple[int, int, str]:
    """Sort those of FIRST before all others; then what sees labels or has no network; the controls are last."""
    last = (*REFERENCES, *CLASSICAL, *CONTROLS)
    if name in FIRST:
        return 0, FIRST.index(name), ""
    return (2, last.index(name), "") if name in last else (1, 0, name)


def compact(runs: pd.DataFrame) -> pd.DataFrame:
    """Forget lines and columns that have no rows any more."""
    return runs.assign(**{name: runs[name].cat.remove_unused_categories() for name in ("line", "column")})


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Average the runs of each cell: lines x columns, NaN where a run failed or was not made."""
    value = runs.groupby(["line", "column"], observed=False).value
    return value.mean().where(value.count() == value.size()).unstack().round(NOISE)


def seed_averages(runs: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Average over these columns per seed: lines x seeds, NaN for a seed that one of them lacks."""
    chosen = runs[runs.column.isin(list(columns))]
    per_set = chosen.groupby(["line", "seed", "column"], observed=True).value.agg(lambda v: v.mean(skipna=False))
    return per_set.unstack().reindex(columns=list(columns)).mean(axis=1, skipna=False).unstack()


def metric_name(runs: pd.DataFrame) -> str:
    return " and ".join(metric_names(runs))


def decimals(runs: pd.DataFrame) -> int:
    """Print all numbers of a table alike, as the most precise metric wants it."""
    return max(find_metric(name).decimals for name in runs.metric.unique())


def contender_of(runs: pd.DataFrame) -> dict[str, str]:
    return dict(zip(runs.line, runs.contender, strict=True))


def trial_note(data: pd.DataFrame) -> str:
    """Say that trials are no results; empty where there are none."""
    steps = sorted(data[data.trial].steps.unique().tolist())
    shown = " or ".join(map(str, steps))
    return f"Not a result: {shown} step{'' if steps == [1] else 's'}, to show that the code runs." if steps else ""


def note(runs: pd.DataFrame, *sentences: str) -> str:
    """Write what stands below a table: whether it shows trials, what its schedules are, and these sentences."""
    both = runs.schedule[runs.schedule != ""].nunique() > 1
    schedules = "per_step is the paper's schedule, per_epoch that of the authors' code (D-01)." if both else ""
    known = runs[runs.target_data != ""].groupby("target").target_data.nunique()
    several = ", ".join(known.index[known > 1])
    mixed = f"Not to be compared: {several} changed between these runs. Run the older ones again." if several else ""
    return " ".join(filter(None, (trial_note(runs), mixed, schedules, *sentences, *subset_notes(runs))))


def subset_notes(runs: pd.DataFrame) -> list[str]:
    """Say which labelled cases were drawn, where a protocol draws them, and how many: the authors' or by each seed."""
    drawn = runs[runs.subsets.isin(list(SUBSET_NOTES))]
    out = tidy.subset_notes(runs)
    for share, targets in drawn.groupby(drawn.protocol.replace(SAME_LABELS)).target.unique().items():
        counts = [f"{name} {count}" for name in sorted(targets, key=natural) if (count := labelled_count(name, share))]
        # "5 per class" speaks for itself, unless it is all there is.
        telling = share.endswith("pct") or any(" all " in one for one in counts)
        out += [f"{share} is, by data set: {', '.join(counts)}."] if counts and telling else []
    return out


def labelled_count(data_set: str, protocol: str) -> str:
    """Say how many of its training cases a protocol sees the labels of; empty where that is not known."""
    known = DATASETS.registered(data_set)
    if known is None or not known.class_sizes or protocol not in PROTOCOLS:
        return ""
    y, made = np.repeat(np.arange(len(known.class_sizes)), known.class_sizes), PROTOCOLS[protocol]()
    for name, draw in (("fraction", stratified_fraction), ("per_class", fixed_per_class)):
        if (share := getattr(made, name, None)) is not None:
            count = len(draw(y, share, 0))
            return f"all {count:,}" if count == len(y) else f"{count:,} of {len(y):,}"
    return ""


def require_controls(runs: pd.DataFrame, what: str) -> None:
    """Refuse a table of methods without both controls (D-02)."""
    if missing := [name for name in CONTROLS if name not in set(runs.contender)]:
        raise InputError(
            f"{what}: a table of methods needs the controls {' and '.join(CONTROLS)}; there is no record of "
            f"{' and '.join(missing)}. Run them (`python -m bench run` does by default) and report again."
        )
