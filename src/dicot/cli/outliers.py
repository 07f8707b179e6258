"""dicot outliers: the windows that lie farthest from normal ones."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import end
from dicot.cli.pages import check_plot, write_page
from dicot.cli.paths import check_inputs, check_outputs, check_table
from dicot.cli.tables import show_columns, write_table
from dicot.core.errors import WrongCallError

if TYPE_CHECKING:
    from dicot.judge.report.windows import WindowsPage
    from dicot.use.farthest import FarWindows


@final
@dataclass(frozen=True)
class NormalOptions:
    """Which windows are normal, and how far from them is far."""

    reference: Annotated[Path | None, typer.Option(help="Vectors of normal windows; default: VECTORS.")] = None
    normal: Annotated[
        list[str] | None,
        typer.Option(help="Which of VECTORS are normal: label!=fall*, group=A,B or start<600; repeat: all hold."),
    ] = None
    labels: opt.Labels = None
    n_neighbors: Annotated[
        int,
        typer.Option("--neighbours", "-k", min=1, help="Nearest normal windows to compare with."),
    ] = 5
    alpha: opt.Alpha = 0.05

    def check(self) -> None:
        if self.reference is not None and self.normal:
            raise WrongCallError("--reference names a file of normal windows, and --normal some of VECTORS. Give one.")
        if self.labels is not None and not self.normal:
            raise WrongCallError(
                "--labels is for conditions such as --normal 'label!=fall'. Give one, or leave it out."
            )
        check_inputs("vectors", self.reference)
        check_inputs("file", self.labels)


def outliers(
    vectors: opt.VectorsArgument,
    options: NormalOptions,
    judging: opt.JudgingOptions,
    shown: opt.ShownOptions,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet for all windows.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """List the windows of VECTORS that lie farthest from normal ones: distance and conformal p-value.

    Windows that overlap or touch are one hit, shown by the farthest. A distance is the mean to the nearest normal
    windows; by the vector alone, as a multiple of how far these lie from each other. A p-value is the share of held-out
    normal windows that lie at least as far out. Whole groups are held out, or else recordings, where there are enough:
    then a p-value is larger by how much these differ, so that --alarm holds roughly for new ones too.
    """
    check_inputs("vectors", vectors)
    options.check()
    inputs = (vectors, options.reference, options.labels)
    check_outputs(out, shown.plot, overwrite=overwrite, inputs=inputs)
    check_table(out)
    check_plot(shown.plot, judging.data if shown.plot else None)

    far = _far_windows(vectors, options, judging)
    hits = far.hits(shown.top)
    typer.echo(far.normal)
    typer.echo(f"Judged by: {far.windows.kind}.")
    known = far.windows.vectors
    columns = {name: values[hits] for name, values in known.columns().items()}
    distances = [f"{far.distance[row]:.4f}" for row in hits]
    p_values = [f"{far.p[row]:.4f}" for row in hits]
    rows = far.windows.rows[hits]
    show_columns({"row": rows, **columns, "distance": distances, "p": p_values})
    typer.echo(far.shares())

    write_table(out, far.columns())
    if shown.plot is not None:
        write_page(shown.plot, _page(vectors, far, hits), vectors, known, judging.series)
    end(judging.series.allowance)


def _far_windows(vectors: Path, options: NormalOptions, judging: opt.JudgingOptions) -> "FarWindows":
    from dicot.use.farthest import far_from_each_other, far_from_reference, normal_windows

    windows = judging.read(vectors)
    n_neighbors, alpha = options.n_neighbors, options.alpha
    if options.reference is not None:
        return far_from_reference(
            windows,
            options.reference,
            n_neighbors=n_neighbors,
            alpha=alpha,
            allowance=judging.series.allowance,
        )
    is_normal = normal_windows(windows, options.normal or (), options.labels)
    return far_from_each_other(windows, is_normal, n_neighbors=n_neighbors, alpha=alpha)


def _page(vectors: Path, far: "FarWindows", hits: list[int]) -> "WindowsPage":
    from dicot.judge.report.windows import WindowsPage

    allowance = "." if far.unit is None else f", with an allowance for how {far.unit}s differ."
    lead = (
        f"The {len(hits)} hits among {len(far.windows)} windows that lie farthest from normal ones, "
        "farthest first. p is the share of held-out normal windows that lie at least as far "
        f"out{allowance}"
    )
    facts = {row: {"p": f"{far.p[row]:.4f}", "distance": f"{far.distance[row]:.4f}"} for row in hits}
    return WindowsPage(f"Outliers of {vectors.name}", [lead], facts)
