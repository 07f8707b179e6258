"""dicot monitor: whether a new week, device or class is still what the reference was."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.tables import cell, check_plot, show_columns
from dicot.core import __version__
from dicot.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from dicot.data.cases import Array
    from dicot.judge.report.page import DrawnWindow
    from dicot.store.vectors import Vectors

ALARM = 4  # exit code: something has changed
BY = ("recording", "group", "label", "week", "day")
UNITS = ("group", "recording", "week", "day", "window")


def monitor(
    reference: Annotated[Path, typer.Argument(help="Vectors of what is known to be fine.")],
    new: Annotated[Path, typer.Argument(help="Vectors of what is new, by the same model.")],
    out: Annotated[Path, typer.Option(help="The page, an .html.")],
    by: Annotated[str | None, typer.Option(help=f"Compare parts of NEW: {', '.join(BY)}.")] = None,
    unit: Annotated[
        str | None, typer.Option(help=f"What belongs together: {', '.join(UNITS)}; default: group, or else recording.")
    ] = None,
    head: Annotated[Path | None, typer.Option(help="A saved classifier: shares of predicted classes.")] = None,
    alpha: Annotated[float, typer.Option("--alarm", help="The share of false alarms to allow.")] = 0.05,
    top: Annotated[int, typer.Option(min=0, help="How many windows to draw.")] = 9,
    data: opt.Series = None,
) -> None:
    """Compare NEW with REFERENCE: distances, shares of classes, a test for a change, and a page with pictures.

    Whole recordings are exchanged by the test, or groups where no group is in both: windows of one recording are no
    independent evidence. With --by label each class is compared with the same class of the reference. Without --head,
    labels in both files are compared. Exit code 0: no change was found; 4: an alarm; 1: an error.
    """
    from dicot.core.errors import naming
    from dicot.core.storage import write_atomic
    from dicot.judge.report.drift import columns_of, drift_page, verdict
    from dicot.store.vectors import read_vectors
    from dicot.use.monitoring import compare
    from dicot.use.projection import principal_components

    check_plot(out, data)
    for option, word, words in (("--by", by, BY), ("--unit", unit, UNITS)):
        if word is not None and word not in words:
            raise InputError(f"{option} takes one of {', '.join(words)}; got {word!r}. {did_you_mean(word, words)}")
    files, known = (reference, new), (read_vectors(reference, finite=True), read_vectors(new, finite=True))
    if known[0].x.shape[1] != known[1].x.shape[1] or (
        None not in (models := [v.model for v in known]) and models[0] != models[1]
    ):
        raise InputError(
            f"{reference} and {new} were made by different models: distances between their vectors mean nothing. Embed "
            "both by the same model."
        )
    name, together, strata = _together(files, known, unit)
    classes = _classes(known, head)
    parts = None if by is None else _values(new, known[1], by)
    same = _values(reference, known[0], by) if by == "label" else None
    with naming(new):
        found = compare(
            known[0].x,
            known[1].x,
            units=together,
            strata=strata,
            classes=None if by == "label" else classes,
            parts=parts,
            reference_parts=same,
            alpha=alpha,
        )
    show_columns(columns_of(found, name))
    for sentence in (said := verdict(found, name)):
        typer.echo(sentence)
    import numpy as np

    points = principal_components(np.concatenate([v.x for v in known]))[:, :2]
    points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
    rows = np.lexsort((-found.distance, found.outlier_p))[:top].tolist()
    windows, channels = _windows(new, known[1], rows, found, data)
    facts = {
        "reference": f"{reference}, {len(known[0])} windows",
        "new": f"{new}, {len(known[1])} windows",
        "version": f"dicot {__version__}",
        "command": shlex.join(["dicot", *sys.argv[1:]]),
    }
    both = points[: len(known[0])], points[len(known[0]) :]
    title = f"{new.name} against {reference.name}"
    write_atomic(out, drift_page(title, found, name, both, windows, channels, facts).encode())
    typer.echo(f"Wrote {out}")
    if found.alarms():
        raise typer.Exit(ALARM)


def _values(path: Path, known: "Vectors", name: str) -> "Array":
    """Return what a column says of each window; a week and a day are those of its start, in UTC."""
    import pandas as pd

    columns = known.columns()
    column = "start_time" if name in ("week", "day") else name
    if column not in columns:
        hint = "Its recordings need dates." if column == "start_time" else f"Embed recordings that have a {name}."
        raise InputError(f"{path} does not say the {name} of its windows. {hint}")
    if column != "start_time":
        return columns[column]
    times = pd.Series(columns[column])
    if times.isna().any():
        raise InputError(f"{path}: row {int(times.isna().argmax())} has no date, so its {name} is not known.")
    return times.dt.strftime("%G-W%V" if name == "week" else "%Y-%m-%d").to_numpy(str)


def _together(
    files: tuple[Path, Path], known: "tuple[Vectors, Vectors]", unit: str | None
) -> "tuple[str, tuple[Array, Array] | None, tuple[Array, Array] | None]":
    """Choose what is exchanged as a whole, and within what."""
    import numpy as np

    old, new = (None if one.group is None else one.group for one in known)
    shared = np.empty(0) if old is None or new is None else np.intersect1d(old.astype(str), new.astype(str))
    if unit is None:
        recorded = all(one.recording is not None for one in known)
        unit = (
            "group"
            if old is not None and new is not None and not len(shared)
            else "recording"
            if recorded
            else "window"
        )
        if unit == "window":
            opt.warn(
                "The files do not say which windows belong together. Each counts for itself: overlapping ones alarm too often."
            )
    if unit == "window":
        return unit, None, None
    within = old is not None and new is not None and unit == "recording" and set(new.astype(str)) <= set(shared)
    units = _values(files[0], known[0], unit), _values(files[1], known[1], unit)
    return unit, units, (old, new) if within else None


def _classes(known: "tuple[Vectors, Vectors]", head: Path | None) -> "tuple[Array, Array] | None":
    """Return a class for each window: predicted, or the labels of both files."""
    import numpy as np

    if head is None:
        old, new = known[0].label, known[1].label
        return None if old is None or new is None else (old, new)
    from dicot.model.fewlabels import Head

    kept = Head.load(head)
    if (
        kept.n_features != known[0].x.shape[1]
        or None not in (kept.model, known[1].model)
        and kept.model != known[1].model
    ):
        raise InputError(
            f"{head} is of vectors of another model. Train it on vectors of this one: dicot classify --save."
        )
    names = np.array(kept.classes)
    old, new = (names[kept.predict_proba(one.x).argmax(axis=1)] for one in known)
    return old, new


def _windows(
    path: Path, known: "Vectors", rows: list[int], found: Any, data: str | None
) -> "tuple[list[DrawnWindow], tuple[str, ...]]":
    """Return the series of some windows; none, and a warning, where they are not at hand."""
    from dicot.judge.report.page import DrawnWindow
    from dicot.store.series import AbsentSeriesError, series_of

    try:
        series = series_of(known, data, {}, path=path)
    except AbsentSeriesError as error:
        if data is not None:
            raise
        opt.warn(f"No windows are drawn. {error}")
        return [], ()
    shown = []
    for row in rows:
        if (values := series.window(row)) is not None:
            about = {name: cell(values[row]) for name, values in known.columns().items()}
            title = f"{about.get('recording', f'row {row}')} @ {about.get('start', '')}".rstrip(" @")
            facts = {"p": f"{found.outlier_p[row]:.3f}", "distance": f"{found.distance[row]:.2f}"}
            shown.append(DrawnWindow(title, values, {**facts, **{n: about[n] for n in ("label",) if n in about}}))
    return shown, series.channels
