"""dicot why: which channel and which stretch of time made a window what it is."""

from typing import Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import check_plot, draw, show_columns
from dicot.core.errors import InputError

LISTED = 5  # pieces


def why(
    vectors: opt.VectorsArgument,
    window: Annotated[str, typer.Argument(metavar=opt.AT, help="The window, such as monday@12.5; or a row.")],
    target: Annotated[str | None, typer.Option(help=f"outlier, a label, or {opt.AT}; default: the likeliest.")] = None,
    labels: opt.Labels = None,
    model: Annotated[str | None, typer.Option(help="What embedded VECTORS; default: the model in the box.")] = None,
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
    check_inputs("file", labels)
    check_outputs(plot, overwrite=overwrite, inputs=(vectors, labels))

    import numpy as np

    from dicot.core.errors import naming
    from dicot.data.labels import labelled
    from dicot.model.deployed import open_model
    from dicot.store.modelplace import places_of_model
    from dicot.store.search import EmbeddingIndex
    from dicot.store.series import series_of
    from dicot.store.vectors import read_vectors
    from dicot.use.why import explain, model_behind, nearest_labelled, target_of

    check_plot(plot, data if plot is not None else None)  # the series are needed in any case
    known = read_vectors(vectors, finite=True)
    index = EmbeddingIndex(known.x, **known.columns())
    row = opt.row_meant(index, window, opt.AT)
    index.vectors([row])  # refuses a number that no row has
    near = index.overlapping(row)
    unlabelled = labels is None and (known.label is None or not labelled(known.label).any())
    given = None if unlabelled else opt.labels_of(vectors, known, labels)
    asked = opt.row_meant(index, target, "--target") if target is not None and "@" in target else target
    with naming(vectors):
        embedder = open_model(model_behind(known.model, model, usual=places_of_model(vectors, known.source)))
        series = series_of(known, data, {}, path=vectors)
        order = embedder.preparation_.channel_order(series.channels) or list(range(len(series.channels)))
        values = series.window(row)
        goal = target_of(known.x, row, given, near, asked)
    if values is None:
        raise InputError(series.lost[str(known.places()[0][row])])
    others = [other for one in goal.rows.tolist() if (other := series.window(one)) is not None]
    alike = [other[order] for other in others if other.shape == values.shape]  # cases may have other lengths
    found = explain(embedder, values[order], goal, reference=np.stack(alike) if alike else None)
    names, places = [series.channels[place] for place in order], found.strongest(LISTED)
    start, end = (0, len(values[0])) if known.start is None or known.end is None else (known.start[row], known.end[row])
    times = [f"{start + (end - start) * edge / len(values[0]):.6g}" for edge in found.edges]
    typer.echo(f"{found.target[0].upper()}{found.target[1:]}: {found.value:.4f}")
    shown = [(names[one], times[piece], times[piece + 1], f"{found.effect[one, piece]:.4f}") for one, piece in places]
    show_columns(dict(zip(("channel", "start", "end", "effect"), zip(*shown, strict=True), strict=True)))
    if found.channels is not None:
        show_columns({"whole channel": names, "effect": [f"{effect:.4f}" for effect in found.channels]})
    drawn = {row: {found.target: f"{found.value:.4f}"}}
    if given is not None:
        rows, distances = nearest_labelled(known.x, row, given, near)
        far = [f"{distance:.4f}" for distance in distances]
        about = {name: column[rows] for name, column in known.columns().items() if name != "label"}
        show_columns({"nearest labelled": rows, "label": given[rows], "distance": far, **about})
        drawn |= {one: {"label": str(given[one]), "distance": text} for one, text in zip(rows, far, strict=True)}
    if plot is not None:
        shades = np.zeros_like(found.effect)
        shades[order] = found.effect / max(float(np.abs(found.effect).max()), 1e-300)
        lead = [f"What makes the {found.target}: the darker a stretch, the more it adds. Red ones take away from it."]
        draw(
            plot,
            f"Why {window}",
            lead,
            vectors,
            known,
            drawn,
            data,
            marked=[row],
            shades={row: shades},
            allowance=opt.leaving_out(strict=True),
        )
