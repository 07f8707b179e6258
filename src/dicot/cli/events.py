"""dicot events: more of an event from a few examples of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dicot.cli import options as opt
from dicot.cli.behind import judged
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import check_plot, draw, show_columns
from dicot.core.errors import InputError, WrongCallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dicot.data.cases import Array
    from dicot.use.events import EventDetector


class _Fitted(NamedTuple):
    model: "EventDetector"
    scores: "Array"  # (N,)
    again: int  # windows of examples that are found by the others


class _Examples(NamedTuple):
    """How many windows have the label of the event, and in how many events they lie."""

    windows: int
    events: int

    def __str__(self) -> str:
        return f"{self.windows} example windows ({self.events} events)"


def events(
    label: Annotated[str, typer.Argument(help="The label of the event.")],
    vectors: opt.VectorsArgument,
    out: Annotated[Path, typer.Option(help="A .csv or .parquet for the events that are found.")],
    labels: opt.Labels = None,
    known_only: Annotated[bool, typer.Option("--known-only", help="Treat only labelled windows as normal.")] = False,
    alarms: Annotated[
        float, typer.Option(help="Maximum false hits per hour of normal time, of all groups together.")
    ] = 1.0,
    features: opt.Features = None,
    top: Annotated[int, typer.Option(min=1, help="How many to list.")] = 20,
    plot: opt.Plot = None,
    data: opt.Series = None,
    strict: opt.Strict = False,
    overwrite: opt.Overwrite = False,
) -> None:
    """Find events in VECTORS that are like the few windows with LABEL.

    A window is scored by how much nearer it lies to the examples than to ordinary windows: those with another label
    and, unless --known-only, those without one. Windows above the threshold that overlap or touch are one event.

    Where the examples are not found again because windows without a label hold the event too, these are not taken as
    normal, and it says so. It also says first how many false hits per hour a new group, or else recording, may give.
    """
    if not alarms >= 0:
        raise WrongCallError(f"--alarms takes a number of hits per hour, 0 or more; got {alarms:g}.")
    check_inputs("vectors", vectors)
    check_inputs("file", labels)
    check_outputs(out, plot, overwrite=overwrite, inputs=(vectors, labels))

    import numpy as np

    from dicot.core.errors import did_you_mean, naming
    from dicot.data.labels import as_text
    from dicot.store.vectors import TABLES, check_out, read_vectors, write_columns
    from dicot.use.events import EventDetector, beside, merge_hits
    from dicot.use.features import judged_by

    check_out(out, TABLES)
    if plot is not None:
        check_plot(plot, data)
    allowance = opt.leaving_out(strict)
    by = judged(features, vectors, read_vectors(vectors, finite=True), data, allowance)
    known, kind, levels = by.known, by.kind, by.levels
    with naming(vectors):
        place = known.places()
    given = as_text(opt.labels_of(vectors, known, labels))
    event = given == label
    if not event.any():
        there = did_you_mean(label, set(given.tolist()) - {""})
        raise InputError(f"{labels or vectors} has no label {label[:40]!r}. {there}")
    # A window is judged without its own group or recording, where examples of others remain.
    unit = next((one for one in (known.group, place[0]) if one is not None and len(np.unique(one[event])) > 1), None)

    def fitted(ordinary: "Array") -> _Fitted:
        (x,) = judged_by(kind, known.x, levels, ordinary if ordinary.any() else slice(None))
        with naming(labels or vectors):
            model = EventDetector(alarms).fit(x, event, ordinary, *place, groups=unit)
        scores = model.scores(x, np.arange(len(x)) if unit is None else unit)
        return _Fitted(model, scores, int((scores[event] > model.threshold_).sum()))

    example_rows = np.flatnonzero(event)
    examples = _Examples(len(example_rows), len(merge_hits(example_rows.tolist(), *place)[0]))
    normal = ~event & ~beside(event, *place)
    labelled = normal & (given != "")
    best = first_fit = fitted(labelled if known_only else normal)
    if not known_only and 2 * best.again < examples.windows:
        best, note = _without_unlabelled(best, fitted, labelled, label, examples)
        opt.warn(note)
    model, scores, again = best
    only_labelled = known_only or best is not first_fit
    hits = model.hits(scores, *place)
    rows = {name: [getattr(hit, name) for hit in hits] for name in ("row", "first", "last")}
    which = {"start": "first", "start_time": "first", "end": "last", "end_time": "last"}
    own = {name: values[rows[which.get(name, "row")]] for name, values in known.columns().items() if name != "label"}
    inside = [(event & beside(np.arange(len(event)) == hit.row, *place)).any() for hit in hits]
    about = {"windows": [hit.windows for hit in hits], "score": scores[rows["row"]], "example": np.array(inside, bool)}
    columns = {**own, **about}
    first = {name: values[:top] for name, values in columns.items()}
    show_columns({**first, "score": [f"{value:.3f}" for value in first["score"]]})
    noun = "group" if unit is known.group else "recording"
    remedy = "Label more windows of normal time." if only_labelled else "Add recordings of normal time."
    unknown = "The examples are of one recording: what a new one gives is not known."
    expectation = model.expectation(noun, remedy) or unknown
    said = (
        f"{expectation} {len(hits)} event(s), {sum(inside)} of them with an example in it; judged by: {kind}. "
        f"{again} of {examples} are found again by the others. The threshold is such that normal time, "
        f"{_time(model.hours_)}, gives at most {alarms:g} hit(s) per hour."
    )
    typer.echo(said)
    write_columns(out, {name: np.asarray(values) for name, values in columns.items()})
    typer.echo(f"Wrote {out}")
    if plot is not None:
        drawn = {hit.row: {"score": f"{scores[hit.row]:.3f}"} for hit in hits[:top]}
        draw(plot, f"{label} in {vectors.name}", [said], vectors, known, drawn, data, allowance=allowance)
    opt.end(allowance)


def _time(hours: float) -> str:
    """Write how much normal time there is: in seconds where it is a few minutes, which 0.00 h would hide."""
    return f"{3600 * hours:.0f} s" if hours < 0.1 else f"{hours:.2f} h"


def _without_unlabelled(
    first: _Fitted, fitted: "Callable[[Array], _Fitted]", labelled: "Array", label: str, examples: _Examples
) -> tuple[_Fitted, str]:
    """Try again with labelled windows alone as normal, where examples were missed; say what came of it, or what to do.

    An event that is frequent among windows without a label looks normal while these are taken as normal.
    """
    missed = f"Only {first.again} of {examples} were found again while windows without a label were normal"
    try:
        second = fitted(labelled)
    except InputError:
        return first, (
            f"{missed}: many of them may hold {label!r} too. Label some windows of two recordings or more that hold "
            "none, with any other label, and run this again with --known-only."
        )
    if second.again <= first.again:
        return first, f"{missed}, and no more with --known-only. Label more examples of {label!r}."
    return second, (
        f"{missed}: many of them hold {label!r} too. So only labelled windows are normal now, as with --known-only, "
        f"and {second.again} of {examples.windows} are found again."
    )
