"""dicot why: which channel and which stretch of time made a window what it is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, final

import typer

from dicot.cli import options as opt
from dicot.cli.pages import check_plot, write_page
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import show_columns

if TYPE_CHECKING:
    from dicot.data.cases import Array
    from dicot.judge.report.windows import WindowsPage
    from dicot.store.vectors import Vectors
    from dicot.use.explained import ExplainedWindow

LISTED = 5  # pieces
Facts = dict[int, dict[str, str]]  # by row


@final
@dataclass(frozen=True)
class ComparedOptions:
    """What is explained, and by what."""

    target: Annotated[
        str | None,
        typer.Option(help=f"outlier, a label, or {opt.AT}; default: the likeliest label."),
    ] = None
    labels: opt.Labels = None
    model: Annotated[str | None, typer.Option(help="What embedded VECTORS; default: the model in the box.")] = None


def why(
    vectors: opt.VectorsArgument,
    window: Annotated[str, typer.Argument(metavar=opt.AT, help="The window, such as monday@12.5; or a row.")],
    compared: ComparedOptions,
    plot: opt.Plot = None,
    data: opt.Series = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Say which channel and which stretch of time made a window of VECTORS what it is, and what it is most like.

    An effect is how much of a number a piece makes: of the probability of a label, or of the distance from the other
    windows or from one of them. Pieces are replaced by other stretches of their channel, and the window is embedded
    again; whole channels are replaced by those of the windows that it is compared with.
    """
    check_inputs("vectors", vectors)
    check_inputs("file", compared.labels)
    check_outputs(plot, overwrite=overwrite, inputs=(vectors, compared.labels))
    # The series are needed in any case.
    check_plot(plot, data if plot is not None else None)

    from dicot.store.search import EmbeddingIndex
    from dicot.store.vectors import read_vectors
    from dicot.use.explained import explain_window
    from dicot.use.labels.given import has_labels, labels_of

    known = read_vectors(vectors, finite=True)
    index = EmbeddingIndex(known.x, **known.columns())
    row = opt.row_meant(index, window, opt.AT)
    index.vectors([row])  # refuses a number that no row has
    target: str | int | None = compared.target
    if compared.target is not None and "@" in compared.target:
        target = opt.row_meant(index, compared.target, "--target")
    labels = None
    if compared.labels is not None or has_labels(known):
        labels = labels_of(vectors, known, compared.labels)
    near = index.overlapping(row)
    explained = explain_window(
        vectors, known, row, target, labels=labels, leave_out=near, model=compared.model, data=data
    )

    _show(explained)
    facts: Facts = {row: {explained.why.target: f"{explained.why.value:.4f}"}}
    if labels is not None:
        facts |= _show_nearest(known, row, labels, near)
    if plot is not None:
        page = _page(window, row, explained, facts)
        write_page(plot, page, vectors, known, opt.SeriesOptions(data, strict=True))


def _show(explained: "ExplainedWindow") -> None:
    """List the pieces that raise the number most, and what whole channels do to it."""
    why, names = explained.why, explained.channels
    times = [f"{time:.6g}" for time in explained.times]
    typer.echo(f"{why.target[0].upper()}{why.target[1:]}: {why.value:.4f}")
    pieces = why.strongest(LISTED)
    show_columns(
        {
            "channel": [names[channel] for channel, _ in pieces],
            "start": [times[piece] for _, piece in pieces],
            "end": [times[piece + 1] for _, piece in pieces],
            "effect": [f"{why.effect[channel, piece]:.4f}" for channel, piece in pieces],
        }
    )
    if why.channels is not None:
        effects = [f"{effect:.4f}" for effect in why.channels]
        show_columns({"whole channel": names, "effect": effects})


def _show_nearest(known: "Vectors", row: int, labels: "Array", near: "Array") -> Facts:
    """List the nearest windows that have a label, and return what a page says of them."""
    from dicot.use.why import nearest_labelled

    rows, distances = nearest_labelled(known.x, row, labels, near)
    texts = [f"{distance:.4f}" for distance in distances]
    columns = {name: values[rows] for name, values in known.columns().items() if name != "label"}
    show_columns({"nearest labelled": rows, "label": labels[rows], "distance": texts, **columns})
    pairs = zip(rows, texts, strict=True)
    return {other: {"label": str(labels[other]), "distance": text} for other, text in pairs}


def _page(window: str, row: int, explained: "ExplainedWindow", facts: Facts) -> "WindowsPage":
    from dicot.judge.report.windows import WindowsPage

    lead = f"What makes the {explained.why.target}: the darker a stretch, the more it adds. Red ones take away from it."
    return WindowsPage(f"Why {window}", [lead], facts, marked=[row], shades={row: explained.shades})
