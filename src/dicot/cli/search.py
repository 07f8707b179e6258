"""dicot search: the windows that are most like one of a recording."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli import pictures
from dicot.cli.tables import cell, show
from dicot.core.errors import InputError, lookup

if TYPE_CHECKING:
    from dicot.store.search import EmbeddingIndex
    from dicot.store.vectors import Vectors


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

    --plot draws them beside it: all channels, each on one scale. Of a folder an index is made at first, beside the
    vectors and on disk, which later searches use again.
    """
    from rich.table import Table

    from dicot.store.search import EmbeddingIndex
    from dicot.store.vectors import read_vectors

    pictures.check_plot(plot, data)
    if vectors.is_dir():
        index = _index_of_folder(vectors, metric)
        known = _known_of_folder(vectors, index)
    else:
        known = read_vectors(vectors)
        index = EmbeddingIndex(known.x, metric=metric, **known.columns())
    columns = known.columns()
    row = opt.row_meant(index, like, "--like")
    placed = {"recording", "start", "end"} <= columns.keys()
    distances, rows = index.query(
        index.vectors([row])[0],
        k,
        leave_out=index.overlapping(row) if placed else [row],
        groups=None if groups is None else _like_stored(opt.names_in(groups), columns.get("group")),
        after=after,
        before=before,
    )
    table = Table()
    for title in ("row", "distance", *columns):
        table.add_column(title, justify="right" if title in ("row", "distance", "start", "end") else "left")
    for number, distance in zip(rows.tolist(), distances, strict=True):
        table.add_row(str(number), f"{distance:.4f}", *(cell(column[number]) for column in columns.values()))
    show(table)
    if plot is not None:
        found = {number: {"distance": f"{d:.4f}"} for number, d in zip(rows.tolist(), distances, strict=True)}
        lead = [f"The window that was asked for, and the {len(found)} nearest by {metric} distance, nearest first."]
        drawn = {row: {"distance": "0, asked for"}, **found}
        pictures.draw(plot, f"Windows like {like}", lead, vectors, known, drawn, data, marked=row)


def _like_stored(names: tuple[str, ...], stored: Any) -> Any:
    """Turn names of groups into numbers where the file has numbers."""
    import numpy as np

    if stored is None or stored.dtype.kind not in "iuf":
        return list(names)
    try:
        return np.array(names, float).astype(stored.dtype)
    except ValueError as error:
        raise InputError(f"The groups of this file are numbers; got --groups {','.join(names)}.") from error


def _index_of_folder(folder: Path, metric: str) -> "EmbeddingIndex":
    """Open the index of a folder of vectors; one that is missing, or of other vectors, is made first."""
    import hashlib

    from dicot.core.storage.locks import only_writer
    from dicot.store.corpus.embedding import MANIFEST, read_embedded
    from dicot.store.search import EmbeddingIndex
    from dicot.store.search.folder import source_of_index
    from dicot.store.search.index import METRICS
    from dicot.store.search.joining import join_index

    lookup(dict.fromkeys(METRICS), metric, "metric")
    read_embedded(folder)  # a folder that is not finished is an error
    source = f"{metric} {hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()}"
    place = folder / "index"
    if source_of_index(place) != source:
        embedded = read_embedded(folder, verify=True)
        with only_writer(folder, folder=True):
            join_index(embedded.files, place, metric=metric, source=source)
        typer.echo(f"Wrote {place}, an index of {embedded.rows} vectors")
    return EmbeddingIndex.load(place)


def _known_of_folder(folder: Path, index: "EmbeddingIndex") -> "Vectors":
    """Say what is known of the vectors of a folder, as a file of vectors says it."""
    import numpy as np

    from dicot.store.corpus.embedding import read_embedded
    from dicot.store.vectors import Vectors

    about = {name: getattr(index, name) for name in ("recording", "start", "end", "group", "label")}
    nothing = np.broadcast_to(np.float32(0), (len(index), index.n_features))  # nobody asks for the vectors themselves
    return Vectors(nothing, **about, source=read_embedded(folder).source())
