"""dicot inspect: what recordings look like, and which windows to cut them into."""

import shlex
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli.tables import show

if TYPE_CHECKING:
    from dicot.data.inspection import Inspected

Column = Annotated[str | None, typer.Option(help="A column of the files.")]


def inspect(
    recordings: Annotated[
        list[str],
        typer.Argument(help='Folders, patterns such as "data/*.csv", or files: csv, parquet, npz, edf, hea, wav.'),
    ],
    time: Annotated[str | None, typer.Option(help="The column of time stamps; default: one that is called so.")] = None,
    unit: Annotated[str | None, typer.Option(help="Of time stamps that are numbers: s, ms, us or ns.")] = None,
    channels: Annotated[str | None, typer.Option(help="Columns to use, separated by commas; default: all.")] = None,
    label: Column = None,
    group: Column = None,
    gap: Annotated[
        float, typer.Option(help="Steps between time stamps so many times as long as usual are gaps.")
    ] = 1.5,
) -> None:
    """Show rows, rate, gaps, missing values and channels of recordings, and suggest window, stride and scale.

    Exit code 1 where a file could not be read.
    """
    from rich.table import Table

    from dicot.data import inspect_recordings, suggest_windows
    from dicot.data.naming import listed

    chosen = None if channels is None else [name.strip() for name in channels.split(",")]
    rows = inspect_recordings(recordings, time=time, unit=unit, channels=chosen, label=label, group=group, gap=gap)
    readable = [row for row in rows if not row.problem]
    table = Table()
    table.add_column("recording")
    for title in ("rows", "lasts", "per second", "gaps", "missing"):
        table.add_column(title, justify="right")
    table.add_column("over time")
    for row in readable:
        table.add_row(row.file, *_cells(row), row.sparkline)
    if readable:
        show(table)
        for names in dict.fromkeys(row.channels for row in readable):
            typer.echo(f"{len(names)} channel(s): {listed(names)}")
        said = suggest_windows(readable)
        typer.echo(f"window {said.window}: {said.window_reason}")
        typer.echo(f"stride {said.stride}: {said.stride_reason}")
        typer.echo(f"scale {said.scale or 'none'}: {said.scale_reason}")
        words = ["dicot", "pretrain", recordings[0], "--window", str(said.window), "--stride", said.stride]
        words += ["--scale", said.scale] if said.scale else []
        typer.echo(f"Next: {shlex.join(words)} --out model")
    for row in rows:
        if row.problem:
            typer.secho(row.problem, fg="red", err=True)  # which names the file
    if len(readable) < len(rows):
        raise typer.Exit(1)


def _cells(row: "Inspected") -> list[str]:
    lasts = "" if row.seconds is None else str(timedelta(seconds=round(row.seconds)))
    rate = "" if row.rate is None else f"{row.rate:g}"
    return [f"{row.rows:,}", lasts, rate, str(row.gaps), f"{row.missing:.1%}"]
