"""dicot search: the windows that are most like one of a recording."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import check_plot, draw, drawn_windows, show_columns
from dicot.core.errors import InputError, WrongCallError

METRICS = ("cosine", "euclidean")

if TYPE_CHECKING:
    from dicot.store.series import Series
    from dicot.store.vectors import Vectors


def search(
    vectors: opt.VectorsArgument,
    like: Annotated[str | None, typer.Option(help=f"The window: {opt.AT}, such as monday@12.5, or its row.")] = None,
    other: Annotated[Path | None, typer.Option("--from", help="Where it is: other vectors, or a recording.")] = None,
    model: Annotated[str | None, typer.Option(help="Where the model of VECTORS is now, if it was moved.")] = None,
    k: Annotated[int, typer.Option("-k", "--neighbours", min=1, help="How many to find.")] = 10,
    metric: Annotated[str, typer.Option(help="cosine or euclidean.")] = "cosine",
    plot: opt.Plot = None,
    data: opt.Series = None,
    strict: opt.Strict = False,
    overwrite: opt.Overwrite = False,
) -> None:
    """List the windows nearest to one of VECTORS; itself and what overlaps it in its recording are left out.

    Of windows that overlap or touch the nearest is listed. A recording that is named by --from is cut and
    embedded like those of VECTORS. Without --like all its windows are compared, and what is found is near one of them.
    --plot draws them beside it: all channels, each on one scale. To search among some windows only, of a group or a
    time, take them into a file first: `dicot vectors select`.
    """
    if metric not in METRICS:
        raise WrongCallError(f"--metric takes {' or '.join(METRICS)}; got {metric[:40]!r}.")
    check_inputs("vectors", vectors)
    check_inputs("file", other)
    check_outputs(plot, overwrite=overwrite, inputs=(vectors, other))

    import numpy as np

    from dicot.store.folder import Store
    from dicot.store.search import EmbeddingIndex
    from dicot.store.series import series_of
    from dicot.store.vectors import Vectors, are_vectors, made_of, read_vectors
    from dicot.use.events import first_hits

    check_plot(plot, data)
    allowance = opt.leaving_out(strict)
    if like is None and (other is None or are_vectors(other)):
        raise WrongCallError(f"Say which window to compare with: --like {opt.AT}, or the number of its row.")
    if model is not None and (other is None or are_vectors(other)):
        raise WrongCallError("--model is for a recording that is named by --from. Leave it out.")
    if vectors.is_dir():  # its vectors stay on disk
        index = EmbeddingIndex.load(vectors, metric=metric)
        nothing = np.broadcast_to(np.float32(0), (len(index), index.n_features))
        known = Vectors(nothing, **Store(vectors).columns(), source=made_of(Store(vectors)))
    else:
        known = read_vectors(vectors)
        index = EmbeddingIndex(known.x, metric=metric, **known.columns())
    columns = known.columns()
    asked, series = (known, None) if other is None else _asked(other, vectors, known, model)
    own = index if other is None else EmbeddingIndex(asked.x, **asked.columns())
    rows = [*range(len(asked))] if like is None else [opt.row_meant(own, like, "--like")]
    itself = None if other is not None else index.overlapping(rows[0])
    depth, more = k, True
    while more:  # of windows that overlap one is listed, so that k of them may take more than k
        distances, found = index.query(own.vectors(rows), depth, leave_out=itself)
        nearest: dict[int, str] = {}
        for distance, number in sorted(zip(distances.ravel().tolist(), found.ravel().tolist(), strict=True)):
            if number >= 0 and len(nearest) < depth:
                nearest.setdefault(number, f"{distance:.4f}")
        hits = first_hits([*nearest], known.places() if known.placed else None, k)
        more, depth = len(hits) < k and len(nearest) == depth, 4 * depth
    nearest = {row: nearest[row] for row in hits}
    about = {title: [column[number] for number in nearest] for title, column in columns.items()}
    show_columns({"row": nearest, "distance": nearest.values(), **about})
    if plot is not None:
        lead = [f"What was asked for, and the {len(nearest)} hits nearest by {metric} distance, nearest first."]
        like_this = {row: {"distance": "0, asked for"} for row in rows}
        shown, first = {number: {"distance": text} for number, text in nearest.items()}, []
        if other is None:
            shown = like_this | shown
        else:
            first = drawn_windows(
                other, asked, series or series_of(asked, None, {}, path=other), like_this, allowance, rows
            )
        title, marked = f"Windows like {like or other}", () if other else rows
        draw(plot, title, lead, vectors, known, shown, data, marked, first=first, allowance=allowance)
    opt.end(allowance)


def _asked(other: Path, vectors: Path, known: "Vectors", model: str | None) -> "tuple[Vectors, Series | None]":
    """Return what is compared with VECTORS: other vectors, or a recording, embedded by the model that made VECTORS."""
    from dicot.model.deployed import open_model
    from dicot.store.modelplace import places_of_model
    from dicot.store.series import CaseSeries, windows_like
    from dicot.store.vectors import Vectors, are_vectors, read_vectors
    from dicot.use.why import model_behind

    if are_vectors(other):
        asked = read_vectors(other)
        opt.check_models(other, asked.model, asked.x.shape[1], vectors, known)
        return asked, None
    if known.source is None or known.source.kind != "recordings":
        raise InputError(f"{vectors} does not say how recordings were cut for it. Embed {other}, and name its vectors.")
    cut = windows_like(known.source, other)
    usual = places_of_model(vectors, known.source)
    embedder = open_model(model_behind(known.model, model, usual=usual))
    return Vectors(embedder.transform(cut), cut.recording, cut.start, cut.end), CaseSeries(list(cut.x), cut.channels)
