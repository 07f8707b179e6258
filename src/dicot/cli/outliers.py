"""dicot outliers: the windows that lie farthest from normal ones."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.behind import judged
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import check_plot, draw, show_columns
from dicot.core.errors import InputError, WrongCallError

if TYPE_CHECKING:
    from dicot.data.cases import Array


def outliers(
    vectors: opt.VectorsArgument,
    reference: Annotated[Path | None, typer.Option(help="Vectors of normal windows; default: VECTORS.")] = None,
    normal: Annotated[
        list[str] | None,
        typer.Option(help="Which of VECTORS are normal: label!=fall*, group=A,B or start<600; repeat: all hold."),
    ] = None,
    labels: opt.Labels = None,
    features: opt.Features = None,
    n_neighbors: Annotated[
        int, typer.Option("--neighbours", "-k", min=1, help="Nearest normal windows to compare with.")
    ] = 5,
    alpha: opt.Alpha = 0.05,
    top: Annotated[int, typer.Option(min=1, help="How many to list.")] = 20,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet for all windows.")] = None,
    plot: opt.Plot = None,
    data: opt.Series = None,
    strict: opt.Strict = False,
    overwrite: opt.Overwrite = False,
) -> None:
    """List the windows of VECTORS that lie farthest from normal ones: distance and conformal p-value.

    Windows that overlap or touch are one hit, shown by the farthest. A distance is the mean to the nearest normal
    windows; by the vector alone, as a multiple of how far these lie from each other. A p-value is the share of held-out
    normal windows that lie at least as far out. Whole groups are held out, or else recordings, where there are enough:
    then a p-value is larger by how much these differ, so that --alarm holds roughly for new ones too.
    """
    if reference is not None and normal:
        raise WrongCallError("--reference names a file of normal windows, and --normal some of VECTORS. Give one.")
    if labels is not None and not normal:
        raise WrongCallError("--labels is for conditions such as --normal 'label!=fall'. Give one, or leave it out.")
    check_inputs("vectors", vectors, reference)
    check_inputs("file", labels)
    check_outputs(out, plot, overwrite=overwrite, inputs=(vectors, reference, labels))

    import numpy as np

    from dicot.core.errors import naming
    from dicot.store.subset import rows_where
    from dicot.store.vectors import TABLES, check_out, read_vectors, write_columns
    from dicot.use.events import first_hits
    from dicot.use.features import VECTOR, judged_by
    from dicot.use.outliers import EmbeddingOutlierDetector, compare_with_rest, distances_and_p

    if out is not None:
        check_out(out, TABLES)
    check_plot(plot, data if plot else None)
    allowance = opt.leaving_out(strict)
    by = judged(features, vectors, read_vectors(vectors, finite=True), data, allowance)
    known, kind, levels = by.known, by.kind, by.levels
    alone = kind == VECTOR
    distance_of = "relative" if alone else "mean"  # chosen: python -m benchmarks.events --outliers --choose
    detector = EmbeddingOutlierDetector(n_neighbors=n_neighbors, alpha=alpha, distance=distance_of, standardise=alone)
    if reference is None:
        own = known if labels is None else replace(known, label=opt.labels_of(vectors, known, labels))
        with naming(vectors):
            is_normal = np.logical_and.reduce(
                [np.ones(len(own), bool), *(rows_where(own, one) for one in normal or ())]
            )
            if not is_normal.any():
                raise InputError("no window is normal by all conditions together. Leave one out.")
            together = known.held_together(3, is_normal)
            x = known.x if alone else judged_by(kind, known.x, levels, is_normal)[0]
            distance, p = compare_with_rest(detector, x, None if together is None else together[1], is_normal)
        typer.echo(
            f"Normal: {is_normal.sum()} of {len(known)} windows. They are dealt out to parts ({_how(together)}), and "
            "each part is compared with the others; what is not normal is compared with all of them."
        )
        if together is None and known.recording is not None:
            opt.warn(f"{vectors} has fewer than 3 recordings: what lasts longer than a window may hide itself.")
    else:
        rest = read_vectors(reference, finite=True)
        opt.check_models(reference, rest.model, rest.x.shape[1], vectors, known)
        usual, x = rest.x, known.x
        if not alone:
            by_rest = judged(kind, reference, rest, None, allowance)
            rest = by_rest.known
            usual, x = judged_by(kind, rest.x, by_rest.levels, slice(None), (known.x, levels))
        with naming(reference):
            together = rest.held_together(2)
            detector.fit(usual, groups=None if together is None else together[1])
            distance, p = distances_and_p(detector, x)
        typer.echo(
            f"Reference: {len(detector.reference_)} windows of {reference}; {len(detector.calibration_)} others are "
            f"held out for p-values ({_how(together)})."
        )
        if together is None and rest.recording is not None:
            opt.warn(f"{reference} has one recording: in others there may be more false alarms than --alarm says.")
    typer.echo(f"Judged by: {kind}.")
    ranked = np.lexsort((-distance, p)).tolist()
    listed = first_hits(ranked, known.places() if known.placed else None, top)
    shown = {name: values[listed] for name, values in known.columns().items()}
    far = {"distance": [f"{distance[row]:.4f}" for row in listed], "p": [f"{p[row]:.4f}" for row in listed]}
    show_columns({"row": by.rows[listed], **shown, **far})
    flagged = p <= alpha
    but_more = "" if together is None else f", or more where a few {together[0]}s differ far more than the others"
    typer.echo(
        f"{flagged.sum()} of {len(known)} windows have p <= {alpha:g}; about {alpha * len(known):.1f} would if all "
        f"were normal{but_more}."
    )
    if out is not None:
        part = {} if known.part is None else {"part": known.part}
        write_columns(out, {**part, **known.columns(), "distance": distance, "p": p, "alarm": flagged})
        typer.echo(f"Wrote {out}")
    if plot is not None:
        lead = [
            f"The {len(listed)} hits among {len(known)} windows that lie farthest from normal ones, farthest first. p "
            "is the share of held-out normal windows that lie at least as far out"
            + ("." if together is None else f", with an allowance for how {together[0]}s differ.")
        ]
        drawn = {row: {"p": f"{p[row]:.4f}", "distance": f"{distance[row]:.4f}"} for row in listed}
        draw(plot, f"Outliers of {vectors.name}", lead, vectors, known, drawn, data, allowance=allowance)
    opt.end(allowance)


def _how(together: "tuple[str, Array] | None") -> str:
    return "one by one" if together is None else f"whole {together[0]}s"
