"""dicot monitor: whether a new week, device or class is still what the reference was."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import CHANGE_FOUND
from dicot.cli.models import warn_of_few_fitted
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import check_plot, draw, show_columns
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.data.cases import Array
    from dicot.store.vectors import Vectors

TIMES = {"week": "%G-W%V", "day": "%Y-%m-%d"}


def monitor(
    reference: Annotated[Path, typer.Argument(help="Vectors of what is known to be fine.")],
    new: Annotated[Path, typer.Argument(help="Vectors or predictions of what is new, by the same model.")],
    out: Annotated[Path, typer.Option(help="The page, an .html.")],
    by: Annotated[str | None, typer.Option(help="Compare parts of NEW: recording, group, label, week or day.")] = None,
    unit: Annotated[str | None, typer.Option(help="What is exchanged: group, recording, week, day or window.")] = None,
    head: Annotated[Path | None, typer.Option(help="A saved classifier: compare shares of predicted classes.")] = None,
    alpha: opt.Alpha = 0.05,
    top: Annotated[int, typer.Option(min=0, help="How many windows to draw; 0 needs no recordings.")] = 9,
    data: opt.Series = None,
    strict: opt.Strict = False,
    overwrite: opt.Overwrite = False,
) -> None:
    """Compare NEW with REFERENCE: distances, shares of classes, a test for a change, and a page with pictures.

    The test exchanges whole recordings, or groups where none is in both files: windows of one recording are no
    independent evidence. --by label compares each class with the same class of the reference. Shares are those of
    labels in both files, or of predictions by --head. Exit code 0: no change was found; 4: an alarm; 1: an error.
    """
    check_inputs("vectors", reference, new)
    check_inputs("classifier", head)
    check_outputs(out, overwrite=overwrite, inputs=(reference, new, head))

    import numpy as np

    from dicot.core.errors import naming
    from dicot.judge.report.drift import columns_of, drift_figure, verdict
    from dicot.model.fewlabels import Head
    from dicot.store.vectors import read_vectors
    from dicot.use.monitoring import compare

    check_plot(out, data)
    allowance = opt.leaving_out(strict)
    old, now = (read_vectors(path, finite=True) for path in (reference, new))
    opt.check_models(reference, old.model, old.x.shape[1], new, now)
    warn_of_few_fitted(reference, old.model)
    own: set[str] = set()
    classes = None if old.label is None or now.label is None else (old.label, now.label)
    if head is not None:
        kept = Head.load(head)
        opt.check_models(head, kept.model, kept.n_features, new, now)
        before, after = (kept.predict_proba(one.x).argmax(axis=1) for one in (old, now))
        classes = np.array(kept.classes)[before], np.array(kept.classes)[after]
        own = {*((kept.source or {}).get("data", ()))} & {*(() if old.source is None else old.source.data)}
        if own:
            opt.warn(f"{head} was trained with {reference}, so shares of its predictions are shown and not tested.")
    unit = unit or _usual_unit(old, now)
    units = None if unit == "window" else (_values(reference, old, unit), _values(new, now, unit))
    parts = None if by is None else _values(new, now, by)
    same = _values(reference, old, by) if by == "label" else None
    how: dict[str, Any] = {"classes": None if by == "label" else classes, "test_classes": not own, "alpha": alpha}
    with naming(reference):
        found = compare(old.x, now.x, units=units, parts=parts, reference_parts=same, **how)
    told, said = columns_of(found, unit), verdict(found, unit)
    show_columns(told)
    typer.echo(said)
    order = np.lexsort((-found.distance, found.outlier_p))
    if now.recording is not None:  # the first of each recording
        order = order[np.sort(np.unique(now.recording[order], return_index=True)[1])]
    facts = [("p", found.outlier_p), ("distance", found.distance)]
    rows = {row: {name: f"{values[row]:.3f}" for name, values in facts} for row in order[:top].tolist()}
    lead = [said, f"Reference: {reference}, {len(old)} windows. New: {new}, {len(now)} windows."]
    for row in zip(*told.values(), strict=True):
        lead.append(", ".join(f"{name} {text}" for name, text in zip(told, row, strict=True)))
    if rows:
        lead.append("Below: the new windows that lie farthest from the reference, one of each recording.")
    title, figure = f"{new.name} against {reference.name}", drift_figure(found)
    draw(out, title, lead, new, now, rows, data, figure=figure, allowance=allowance)
    if found.alarms():
        raise typer.Exit(CHANGE_FOUND)
    opt.end(allowance)


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
