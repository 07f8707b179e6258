"""dicot search: the windows that are most like one of a recording."""

from typing import Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.tables import check_plot, draw, show_columns
from dicot.core.errors import InputError


def search(
    vectors: opt.VectorsArgument,
    like: Annotated[str, typer.Option(help=f"The window to compare with: {opt.AT}, such as monday@12.5, or its row.")],
    k: Annotated[int, typer.Option("-k", "--neighbours", help="How many to find.")] = 10,
    metric: Annotated[str, typer.Option(help="cosine or euclidean.")] = "cosine",
    groups: Annotated[str | None, typer.Option(help="Only windows of these groups, separated by commas.")] = None,
    after: Annotated[float | None, typer.Option(help="Only windows that start at this second or later.")] = None,
    before: Annotated[float | None, typer.Option(help="Only windows that end at this second or earlier.")] = None,
    plot: opt.Plot = None,
    data: opt.Series = None,
) -> None:
    """List the windows nearest to one of VECTORS; itself and what overlaps it in its recording are left out.

    --plot draws them beside it: all channels, each on one scale.
    """
    import numpy as np

    from dicot.store.folder import Store
    from dicot.store.search import EmbeddingIndex
    from dicot.store.vectors import Vectors, made_of, read_vectors

    check_plot(plot, data)
    if vectors.is_dir():  # its vectors stay on disk
        index = EmbeddingIndex.load(vectors, metric=metric)
        nothing = np.broadcast_to(np.float32(0), (len(index), index.n_features))
        placed = (index.recording, index.start, index.end, index.group, index.label)
        known = Vectors(nothing, *placed, source=made_of(Store(vectors)))
    else:
        known = read_vectors(vectors)
        index = EmbeddingIndex(known.x, metric=metric, **known.columns())
    columns = known.columns()
    row = opt.row_meant(index, like, "--like")
    distances, rows = index.query(
        index.vectors([row])[0],
        k,
        leave_out=index.overlapping(row) if {"recording", "start", "end"} <= columns.keys() else [row],
        groups=None if groups is None else _like_stored(opt.names_in(groups), columns.get("group")),
        after=after,
        before=before,
    )
    found = {number: f"{distance:.4f}" for number, distance in zip(rows.tolist(), distances, strict=True)}
    about = {title: [column[number] for number in found] for title, column in columns.items()}
    show_columns({"row": found, "distance": found.values(), **about})
    if plot is not None:
        lead = [f"The window that was asked for, and the {len(found)} nearest by {metric} distance, nearest first."]
        drawn = {row: {"distance": "0, asked for"}} | {number: {"distance": text} for number, text in found.items()}
        draw(plot, f"Windows like {like}", lead, vectors, known, drawn, data, marked=row)


def _like_stored(names: tuple[str, ...], stored: Any) -> Any:
    """Turn names of groups into numbers where the file has numbers."""
    import numpy as np

    if stored is None or stored.dtype.kind not in "iuf":
        return list(names)
    try:
        return np.array(names, float).astype(stored.dtype)
    except ValueError as error:
        raise InputError(f"The groups of this file are numbers; got --groups {','.join(names)}.") from error
