"""dicot search: the windows that are most like one of a recording."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import end
from dicot.cli.pages import check_plot, write_page
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import show_columns
from dicot.core.errors import WrongCallError

if TYPE_CHECKING:
    from dicot.data.allowance import Allowance
    from dicot.judge.report.windows import WindowsPage
    from dicot.use.similar import AskedWindows

METRICS = ("cosine", "euclidean")


@final
@dataclass(frozen=True)
class QueryOptions:
    """Which windows others are compared with."""

    like: Annotated[str | None, typer.Option(help=f"The window: {opt.AT}, such as monday@12.5, or its row.")] = None
    other: Annotated[
        Path | None,
        typer.Option("--from", help="Where that window is: other vectors, or a recording."),
    ] = None
    model: Annotated[str | None, typer.Option(help="Where the model of VECTORS is now, if it was moved.")] = None

    def check(self) -> None:
        from dicot.store.vectors import are_vectors

        if self.other is not None and not are_vectors(self.other):
            return
        if self.like is None:
            raise WrongCallError(f"Say which window to compare with: --like {opt.AT}, or the number of its row.")
        if self.model is not None:
            raise WrongCallError("--model is for a recording that is named by --from. Leave it out.")


def search(
    vectors: opt.VectorsArgument,
    query: QueryOptions,
    series: opt.SeriesOptions,
    k: Annotated[int, typer.Option("-k", "--neighbours", min=1, help="How many to find.")] = 10,
    metric: Annotated[str, typer.Option(help="cosine or euclidean.")] = "cosine",
    plot: opt.Plot = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Find the windows of VECTORS most similar to a given one; itself and what overlaps it is left out.

    Of windows that overlap or touch the nearest is listed. A recording that is named by --from is cut and
    embedded like those of VECTORS. Without --like all its windows are compared, and what is found is near one of them.
    --plot draws them beside it: all channels, each on one scale. To search among some windows only, of a group or a
    time, take them into a file first: `dicot vectors select`.
    """
    if metric not in METRICS:
        raise WrongCallError(f"--metric takes {' or '.join(METRICS)}; got {metric[:40]!r}.")
    check_inputs("vectors", vectors)
    check_inputs("file", query.other)
    check_outputs(plot, overwrite=overwrite, inputs=(vectors, query.other))
    check_plot(plot, series.data)
    query.check()

    from dicot.use.similar import SearchedVectors, windows_from

    searched = SearchedVectors.open(vectors, metric)
    asked = None
    if query.other is not None:
        asked = windows_from(query.other, searched, query.model)
    index = searched.index if asked is None else asked.index
    rows = list(range(len(index)))
    if query.like is not None:
        rows = [opt.row_meant(index, query.like, "--like")]
    itself = searched.index.overlapping(rows[0]) if asked is None else None
    distances = searched.nearest(index.vectors(rows), k, leave_out=itself)

    hits = list(distances)
    texts = {row: f"{distance:.4f}" for row, distance in distances.items()}
    columns = {name: values[hits] for name, values in searched.vectors.columns().items()}
    show_columns({"row": hits, "distance": texts.values(), **columns})
    if plot is not None:
        title = f"Windows like {query.like or query.other}"
        lead = f"What was asked for, and the {len(hits)} hits nearest by {metric} distance, nearest first."
        page = _page(title, lead, texts, rows, asked, series.allowance)
        write_page(plot, page, vectors, searched.vectors, series)
    end(series.allowance)


def _page(
    title: str,
    lead: str,
    distances: dict[int, str],
    rows: list[int],
    asked: "AskedWindows | None",
    allowance: "Allowance",
) -> "WindowsPage":
    """Draw what was asked for beside what was found."""
    from dicot.judge.report.windows import WindowsPage, draw_windows

    found = {row: {"distance": distance} for row, distance in distances.items()}
    wanted = {row: {"distance": "0, asked for"} for row in rows}
    if asked is None:
        return WindowsPage(title, [lead], {**wanted, **found}, marked=rows)
    page = WindowsPage(title, [lead], wanted, marked=rows)
    first = draw_windows(asked.path, asked.vectors, asked.all_series(), page, allowance)
    return WindowsPage(title, [lead], found, first=first)
