"""dicot monitor: whether a new week, device or class is still what the reference was."""

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import CANNOT_TELL, CHANGE_FOUND
from dicot.cli.models import doubt_about_fit
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import check_plot, draw, show_columns
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.data.cases import Array
    from dicot.store.series import Series
    from dicot.store.vectors import Vectors
    from dicot.use.monitoring import Comparison

UNITS = ("group", "recording", "week", "day", "window")
SAMPLE = 200  # windows of each side that are read to say what has changed in the channels
TIMES = {"week": "%G-W%V", "day": "%Y-%m-%d"}


def monitor(
    reference: Annotated[Path, typer.Argument(help="Vectors of what is known to be fine.")],
    new: Annotated[Path, typer.Argument(help="Vectors or predictions of what is new, by the same model.")],
    out: Annotated[Path, typer.Option(help="The page, an .html.")],
    by: Annotated[str | None, typer.Option(help="Compare parts of NEW: recording, group, label, week or day.")] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="What the test exchanges as a whole: group, recording, week, day, window, or a time: 10min."),
    ] = None,
    head: Annotated[Path | None, typer.Option(help="A saved classifier: compare shares of predicted classes.")] = None,
    alpha: opt.Alpha = 0.05,
    top: Annotated[int, typer.Option(min=0, help="How many windows to draw; 0 needs no recordings.")] = 9,
    data: opt.Series = None,
    strict: opt.Strict = False,
    overwrite: opt.Overwrite = False,
) -> None:
    """Compare NEW with REFERENCE: distances, shares of classes, a test for a change, and a page with pictures.

    The test exchanges whole recordings, or groups where none is in both files: windows of one recording are no
    independent evidence. With few recordings compare blocks of time, such as --unit 10min. --by label compares each
    class with the same class of the reference. Shares of classes predicted by --head are tested, too; shares of labels
    that somebody gave are only shown. Exit code 0: no change was found; 4: an alarm; 5: too little for a verdict.
    """
    check_inputs("vectors", reference, new)
    check_inputs("classifier", head)
    check_outputs(out, overwrite=overwrite, inputs=(reference, new, head))

    from dicot.core.errors import naming
    from dicot.judge.report.drift import columns_of, drift_figure, verdict
    from dicot.judge.report.page import Summary
    from dicot.store.vectors import read_vectors
    from dicot.use.monitoring import compare

    check_plot(out, data, "--out")
    allowance = opt.leaving_out(strict)
    old, now = (read_vectors(path, finite=True) for path in (reference, new))
    opt.check_models(reference, old.model, old.x.shape[1], new, now)
    doubt = doubt_about_fit(reference, old.model)
    classes = _classes(reference, new, old, now, head)
    unit = unit or _usual_unit(old, now)
    seconds = _block_seconds(unit)
    short_blocks = seconds is not None and _warn_of_short_blocks(old, now, seconds, alpha)
    units = None if unit == "window" else (_unit_of(reference, old, unit), _unit_of(new, now, unit))
    with naming(reference):
        found = compare(
            old.x,
            now.x,
            units=units,
            classes=None if by == "label" else classes.values,
            test_classes=classes.are_evidence,
            parts=None if by is None else _values(new, now, by),
            reference_parts=_values(reference, old, by) if by == "label" else None,
            alpha=alpha,
        )
    unit_name = unit if seconds is None else f"{unit} block"
    remedy = _remedy(old, now, seconds, alpha) if found.undecided() else ""
    table = columns_of(found, unit_name)
    sentences = verdict(found, unit_name, remedy, short_blocks)
    if doubt and found.alarms():
        sentences = [f"Cannot tell whether anything has changed. {doubt}"]
    elif doubt:
        sentences.append(doubt)
    show_columns(table)
    changes = _changes(found, classes, (reference, new), (old, now), data if top else "")
    for sentence in (*sentences, *changes):
        typer.echo(sentence)

    rows = _farthest(found, now, top)
    title, figure = f"{new.name} against {reference.name}", drift_figure(found)
    lead = [*sentences, f"Reference: {reference}, {len(old)} windows. New: {new}, {len(now)} windows."]
    if rows:
        lead.append("Below: the new windows that lie farthest from the reference.")
    summary = Summary("What has changed most", changes, table, (shlex.join(["dicot", "explore", str(new)]),))
    draw(out, title, lead, new, now, rows, data, figure=figure, allowance=allowance, summary=summary)
    if found.alarms() and not doubt:
        raise typer.Exit(CHANGE_FOUND)
    if found.alarms() or found.undecided():
        raise typer.Exit(CANNOT_TELL)
    opt.end(allowance)


class Classes(NamedTuple):
    """Classes of the windows of reference and new."""

    values: "tuple[Array, Array] | None" = None
    are_predicted: bool = False
    are_evidence: bool = False  # whether a change of their shares may raise an alarm


def _classes(reference: Path, new: Path, old: "Vectors", now: "Vectors", head: Path | None) -> Classes:
    """Return predictions of a classifier, or else the labels in both files, which somebody gave and prove nothing."""
    import numpy as np

    from dicot.model.fewlabels import Head

    if head is None:
        return Classes() if old.label is None or now.label is None else Classes((old.label, now.label))
    loaded = Head.load(head)
    opt.check_models(head, loaded.model, loaded.n_features, new, now)
    before, after = (loaded.predict_proba(known.x).argmax(axis=1) for known in (old, now))
    names = np.array(loaded.classes)
    trained_with = {*((loaded.source or {}).get("data", ()))}
    is_of_reference = bool(trained_with & {*(() if old.source is None else old.source.data)})
    if is_of_reference:
        opt.warn(f"{head} was trained with {reference}, so shares of its predictions are shown and not tested.")
    return Classes((names[before], names[after]), True, not is_of_reference)


def _farthest(found: "Comparison", now: "Vectors", top: int) -> dict[int, dict[str, str]]:
    """Return the rows of the new windows that lie farthest from the reference, with facts.

    The farthest of each recording comes first; then others that do not overlap.
    """
    import numpy as np

    from dicot.use.events import first_hits

    if not top:
        return {}
    order = np.lexsort((-found.distance, found.outlier_p))
    if now.recording is not None:
        firsts = order[np.sort(np.unique(now.recording[order], return_index=True)[1])].tolist()
        apart = first_hits(order.tolist(), now.places() if now.placed else None, top)
        order = np.array(list(dict.fromkeys([*firsts, *apart])))
    facts = [("p", found.outlier_p), ("distance", found.distance)]
    return {row: {name: f"{values[row]:.3f}" for name, values in facts} for row in order[:top].tolist()}


def _changes(
    found: "Comparison",
    classes: Classes,
    paths: tuple[Path, Path],
    both: "tuple[Vectors, Vectors]",
    data: str | None,
) -> list[str]:
    """Say in words what has changed most: shares of classes, and the channels, where the series are at hand.

    `data` is where the new series are; "" where no series is wanted.
    """
    from dicot.store.series import series_of
    from dicot.use.changes import changed_channels, changed_shares

    most = max(found.parts, key=lambda part: part.shift)
    sentences = changed_shares(most.shares, classes.are_predicted)
    if data == "":
        return sentences
    try:
        all_series = [
            series_of(known, where, {}, path=path) for known, where, path in zip(both, (None, data), paths, strict=True)
        ]
        samples = [_sample(series, len(known)) for series, known in zip(all_series, both, strict=True)]
    except InputError as error:
        return [*sentences, f"What has changed in the channels cannot be told: {error}"]
    if not all(samples) or all_series[0].channels != all_series[1].channels:
        return sentences
    changes = changed_channels(samples[0], samples[1], all_series[0].channels, all_series[0].rate)
    return [*sentences, *(change.sentence for change in changes)]


def _sample(series: "Series", n_rows: int) -> "list[Array]":
    """Read windows from all over the recordings; those of lost ones are missing."""
    import numpy as np

    rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, SAMPLE)).astype(int)).tolist()
    windows = [series.window(row) for row in rows]
    return [window for window in windows if window is not None]


def _block_seconds(unit: str) -> float | None:
    """Return how long blocks of time are; None where the unit is no time."""
    from dicot.data.reading import seconds_of

    if unit in UNITS:
        return None
    try:
        seconds = seconds_of(unit, "--unit")
    except InputError as error:
        raise InputError(f"--unit is {', '.join(UNITS)}, or a time such as 10min; got {unit[:40]!r}.") from error
    if seconds <= 0:
        raise InputError(f"--unit {unit}: a block of time must last longer than nothing. Say, for example, 10min.")
    return seconds


def _unit_of(path: Path, known: "Vectors", unit: str) -> "Array":
    """Return for each window which unit it is of."""
    from dicot.core.errors import naming
    from dicot.use.blocks import blocks_of

    seconds = _block_seconds(unit)
    if seconds is None:
        return _values(path, known, unit)
    with naming(path):
        recording, start, _ = known.places()
    return blocks_of(recording, start, seconds)


def _warn_of_short_blocks(old: "Vectors", now: "Vectors", seconds: float, alpha: float) -> bool:
    """Tell whether blocks are so short that they are no independent evidence, and warn if they are."""
    from dicot.use.blocks import LONGER, block_text

    alike = _seconds_alike(old, now)
    least = LONGER * alike
    if seconds >= least:
        return False
    should = "Windows stay alike over the whole recordings, so blocks of no length are independent."
    if math.isfinite(least):
        should = (
            f"Blocks should last {block_text(least)} or more, twenty times as long as windows stay alike "
            f"({block_text(alike)})."
        )
    opt.warn(f"{should} With shorter ones there may be more false alarms than --alarm {alpha:g} says.")
    return True


def _seconds_alike(old: "Vectors", now: "Vectors") -> float:
    """Return how many seconds apart windows of a recording are before they are no longer alike; inf if they stay so."""
    from dicot.use.blocks import seconds_alike

    return max(seconds_alike(known.x, *known.places()[:2]) for known in (old, now))


def _remedy(old: "Vectors", now: "Vectors", seconds: float | None, alpha: float) -> str:
    """Say what to do where there are too few units: the option, ready to paste, or more recordings.

    `seconds` is how long the blocks were that were too few; None where the units were no blocks of time.
    """
    from dicot.use.blocks import LONGER, suggested_block

    more = "Record longer, or compare more recordings."
    has_seconds = old.source is None or old.source.rate is not None
    if not (old.placed and now.placed and has_seconds):
        return more
    sides = [known.places()[:2] for known in (old, now)]
    alike = _seconds_alike(old, now)
    independent = suggested_block(sides, LONGER * alike)
    if independent is not None and seconds is None:
        caution = "Any difference between recordings then counts as a change."
        return f"Compare more recordings, or blocks of time: --unit {independent}. {caution}"
    if independent is not None:
        return f"Record longer, compare more recordings, or take shorter blocks: --unit {independent}."
    shorter = suggested_block(sides, 0)
    if shorter is not None:
        more = (
            "Record longer, compare more recordings, or take shorter blocks, which alarm more often than --alarm "
            f"{alpha:g} says: --unit {shorter}."
        )
    return f"{_why_no_blocks(old, now, alike)} {more}"


def _why_no_blocks(old: "Vectors", now: "Vectors", alike: float) -> str:
    """Say how long blocks of time would have to last, and how long the recordings are."""
    from dicot.use.blocks import ENOUGH, LONGER, block_text
    from dicot.use.events import covered

    lengths = [block_text(covered(*known.places())) for known in (old, now)]
    holding = f"the reference holds {lengths[0]}, the new windows {lengths[1]}"
    if not math.isfinite(alike):
        return f"Windows stay alike over whole recordings, so no block of time is independent: {holding}."
    block = LONGER * alike
    return (
        f"Windows stay alike for {block_text(alike)}, so a block must last {block_text(block)} to be independent of "
        f"the next. Each side needs {ENOUGH} of them, {block_text(ENOUGH * block)}, and {holding}."
    )


def _usual_unit(old: "Vectors", new: "Vectors") -> str:
    """Return groups where both files have some and share none, or else recordings; a recording alone is no group."""
    groups = [set() if one.group is None else set(one.group.tolist()) for one in (old, new)]
    if old.recording is None or new.recording is None:
        raise InputError("The files do not say which windows belong together. If each counts alone: --unit window.")
    recordings = set(old.recording), set(new.recording)
    told = [bool(has) and has != own for has, own in zip(groups, recordings, strict=True)]
    if told[0] != told[1]:
        opt.warn("Only one of the files has groups, so recordings count. Tell groups of both: --names ... --group ...")
    return "group" if all(told) and not groups[0] & groups[1] else "recording"


def _values(path: Path, known: "Vectors", name: str) -> "Array":
    """Return what a column says of each window; a week and a day are those of its start, in UTC."""
    import numpy as np
    import pandas as pd

    values: Array | None = known.columns().get("start_time" if name in TIMES else name)
    if values is None:
        how = "with dates (--time)" if name in TIMES else "that have one (--names)"
        raise InputError(f"{path} does not say the {name} of its windows. Embed recordings {how}.")
    if name not in TIMES:
        return values
    times = pd.Series(values)
    if times.isna().any():
        raise InputError(
            f"{path}: row {int(times.isna().argmax())} has no date. Embed only recordings with time stamps."
        )
    return np.array(times.dt.strftime(TIMES[name]))
