"""dicot events: more of an event from a few examples of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import end
from dicot.cli.pages import check_plot, write_page
from dicot.cli.paths import check_inputs, check_outputs, check_table
from dicot.cli.tables import show_columns, write_table
from dicot.core.errors import WrongCallError


@final
@dataclass(frozen=True)
class NormalTimeOptions:
    """Which windows are normal, and how many of them may be taken for events."""

    labels: opt.Labels = None
    known_only: Annotated[bool, typer.Option("--known-only", help="Treat only labelled windows as normal.")] = False
    alarms: Annotated[
        float,
        typer.Option(help="Maximum false hits per hour of normal time, of all groups together."),
    ] = 1.0

    def check(self) -> None:
        if not self.alarms >= 0:
            raise WrongCallError(f"--alarms takes a number of hits per hour, 0 or more; got {self.alarms:g}.")
        check_inputs("file", self.labels)


def events(
    label: Annotated[str, typer.Argument(help="The label of the event.")],
    vectors: opt.VectorsArgument,
    out: Annotated[Path, typer.Option(help="A .csv or .parquet for the events that are found.")],
    normal: NormalTimeOptions,
    judging: opt.JudgingOptions,
    shown: opt.ShownOptions,
    overwrite: opt.Overwrite = False,
) -> None:
    """Find events in VECTORS that are like the few windows with LABEL.

    A window is scored by how much nearer it lies to the examples than to normal windows: those with another label
    and, unless --known-only, those without one. Windows above the threshold that overlap or touch are one event.

    Where the examples are not found again because windows without a label hold the event too, these are not taken as
    normal, and it says so. It also says first how many false hits per hour a new group, or else recording, may give.
    """
    normal.check()
    check_inputs("vectors", vectors)
    check_outputs(out, shown.plot, overwrite=overwrite, inputs=(vectors, normal.labels))
    check_table(out)
    if shown.plot is not None:
        check_plot(shown.plot, judging.data)

    from dicot.judge.report.windows import WindowsPage
    from dicot.use.eventsearch import find_events

    windows = judging.read(vectors)
    found = find_events(label, windows, normal.labels, alarms=normal.alarms, known_only=normal.known_only)
    columns = found.columns()
    first = {name: values[: shown.top] for name, values in columns.items()}
    show_columns({**first, "score": [f"{score:.3f}" for score in first["score"]]})
    typer.echo(found.sentence)
    write_table(out, columns)
    if shown.plot is not None:
        facts = {hit.row: {"score": f"{found.scores[hit.row]:.3f}"} for hit in found.hits[: shown.top]}
        page = WindowsPage(f"{label} in {vectors.name}", [found.sentence], facts)
        write_page(shown.plot, page, vectors, windows.vectors, judging.series)
    end(judging.series.allowance)
