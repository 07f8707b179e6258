"""dicot outliers: the windows that lie farthest from normal ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.tables import check_plot, draw, show_columns
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.data.cases import Array


def outliers(
    vectors: opt.VectorsArgument,
    reference: Annotated[Path | None, typer.Option(help="Vectors of normal windows; default: VECTORS.")] = None,
    n_neighbors: Annotated[int, typer.Option("--neighbours", "-k", help="Nearest normal windows to compare with.")] = 5,
    alpha: Annotated[float, typer.Option("--alarm", help="The share of false alarms to allow.")] = 0.05,
    top: Annotated[int, typer.Option(min=1, help="How many to list.")] = 20,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet for all windows.")] = None,
    plot: opt.Plot = None,
    data: opt.Series = None,
) -> None:
    """List the windows of VECTORS that lie farthest from normal ones: distance and conformal p-value.

    A distance is a multiple of how far normal windows lie from each other there. A p-value is the share of held-out
    normal windows that lie at least as far out. Whole groups are held out, or else recordings, where there are enough:
    then a p-value is larger by how much these differ, so that --alarm holds roughly for new ones too.
    """
    import numpy as np

    from dicot.core.errors import naming
    from dicot.store.vectors import TABLES, check_out, read_vectors, write_columns
    from dicot.use.outliers import EmbeddingOutlierDetector, compare_with_rest, distances_and_p

    if out is not None:
        check_out(out, TABLES)
    check_plot(plot, data)
    known = read_vectors(vectors, finite=True)
    detector = EmbeddingOutlierDetector(n_neighbors=n_neighbors, alpha=alpha)
    if reference is None:
        with naming(vectors):
            together = known.held_together(3)
            distance, p = compare_with_rest(detector, known.x, None if together is None else together[1])
        typer.echo(
            f"No --reference: {vectors} is dealt out to parts ({_how(together)}), and each part is compared with the "
            "others, which are taken as normal."
        )
        if together is None and known.recording is not None:
            opt.warn(f"{vectors} has fewer than 3 recordings: what lasts longer than a window may hide itself.")
    else:
        normal = read_vectors(reference, finite=True)
        both = normal.model is not None and known.model is not None
        if normal.x.shape[1] != known.x.shape[1] or (both and normal.model != known.model):
            raise InputError(
                f"{reference} and {vectors} were made by different models: distances between their vectors mean "
                "nothing. Embed both by the same model."
            )
        with naming(reference):
            together = normal.held_together(2)
            detector.fit(normal.x, groups=None if together is None else together[1])
            distance, p = distances_and_p(detector, known.x)
        typer.echo(
            f"Reference: {len(detector.reference_)} windows of {reference}; {len(detector.calibration_)} others are "
            f"held out for p-values ({_how(together)})."
        )
        if together is None and normal.recording is not None:
            opt.warn(f"{reference} has one recording: in others there may be more false alarms than --alarm says.")
    columns = {**known.columns(), "distance": distance, "p": p}
    listed = np.lexsort((-distance, p))[:top].tolist()
    shown = {name: values[listed] for name, values in known.columns().items()}
    far = {"distance": [f"{distance[row]:.4f}" for row in listed], "p": [f"{p[row]:.4f}" for row in listed]}
    show_columns({"row": listed, **shown, **far})
    flagged = p <= alpha
    but = "" if together is None else f", or more where a few {together[0]}s differ far more than the others"
    typer.echo(
        f"{flagged.sum()} of {len(known)} windows have p <= {alpha:g}; about {alpha * len(known):.1f} would if all "
        f"were normal{but}."
    )
    if out is not None:
        part = {} if known.part is None else {"part": known.part}
        write_columns(out, {**part, **columns, "alarm": flagged})
        typer.echo(f"Wrote {out}")
    if plot is not None:
        lead = [
            f"The {len(listed)} windows of {len(known)} that lie farthest from normal ones, farthest first. p is the "
            "share of held-out normal windows that lie at least as far out"
            + ("." if together is None else f", with an allowance for how {together[0]}s differ.")
        ]
        drawn = {row: {"p": f"{p[row]:.4f}", "distance": f"{distance[row]:.4f}"} for row in listed}
        draw(plot, f"Outliers of {vectors.name}", lead, vectors, known, drawn, data)


def _how(together: "tuple[str, Array] | None") -> str:
    return "one by one" if together is None else f"whole {together[0]}s"
