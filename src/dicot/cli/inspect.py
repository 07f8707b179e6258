"""dicot inspect: what recordings look like, and which windows to cut them into."""

import shlex
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.tables import show
from dicot.cli.wording import in_shell
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.data.inspection import Inspected

SUGGESTED = ("window", "stride", "scale", "rate", "missing")
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
        float | None,
        typer.Option(help="Steps between time stamps so many times as long as usual are gaps; default: 1.5."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the suggestions as dicot.toml beside the recordings.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="With --write: replace the dicot.toml that is there.")] = False,
) -> None:
    """Show rows, rate, gaps, missing values and channels of recordings, and suggest window, stride and scale.

    Columns are those that a dicot.toml beside the recordings names, where no option does; --write makes one, and other
    commands go by it. Exit code 1 where a file could not be read.
    """
    from rich.table import Table

    from dicot.core.storage import write_atomic
    from dicot.data import inspect_recordings, suggest_windows
    from dicot.data.folders import pattern_of
    from dicot.data.naming import listed
    from dicot.data.reading import Reading, toml_of

    if force and not write:
        raise InputError("--force is for --write. Give both, or leave it out.")
    path = toml_of(recordings) if write else None
    if path is not None and path.exists() and not force:
        raise InputError(f"{path} is there already. Say --force to replace it, or edit it.")
    chosen = None if channels is None else [name.strip() for name in channels.split(",")]
    said = opt.given(time=time, unit=unit, channels=chosen, label=label, group=group, gap=gap)
    if path is None:
        said = {**_kept(recordings), **said}
    reading = Reading(**said)
    rows = inspect_recordings(recordings, reading)
    readable = _alike([row for row in rows if not row.problem])
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
        advice = suggest_windows(readable, reading)
        advised = {name: getattr(advice.reading, name) for name in SUGGESTED if name in advice.reasons}
        for name, value in advised.items():
            typer.echo(f"{name} {value or 'none'}: {advice.reasons[name]}")
        rates = [row.rate for row in readable if row.rate is not None]
        if advice.left and (left := advice.left.sentence(rates[0] if rates else None)):
            typer.secho(in_shell(left, {"gap": "--gap"}), fg="yellow")
        words = ["dicot", "pretrain", recordings[0]]
        if len(readable) < len(rows) and Path(recordings[0]).is_dir():
            pattern = pattern_of(recordings[0], [row.path for row in readable if row.path])
            words[-1] = pattern or recordings[0]
            if pattern is None:
                typer.echo(
                    f"First move away what is no recording: {listed([row.file for row in rows if row not in readable])}"
                )
        if path is not None:
            write_atomic(path, advice.reading.to_toml(advice.reasons).encode())
            typer.echo(f"Wrote {path}")
        else:
            if channels is None and advice.reasons["channels"].startswith("those") and advice.reading.channels:
                channels = ",".join(advice.reading.channels)
            asked = {"time": time, "unit": unit, "channels": channels, "label": label, "group": group, "gap": gap}
            words += [
                str(word) for name, value in opt.given(**asked, **advised).items() for word in (f"--{name}", value)
            ]
        typer.echo(f"Next: {shlex.join(words)} --out model")
    problems: dict[str, list[str]] = {}  # what is wrong -> the files, so that nothing is said six times
    for row in rows:
        if row not in readable:
            has = f"has no channel of the others; it has {', '.join(row.channels)}."
            what = row.problem.partition(f"{row.file}: ")[2] or row.problem or has
            problems.setdefault(what, []).append(str(row.path))
    for what, files in problems.items():
        typer.secho(f"{listed(files)}: {what}", fg="red", err=True)
    if problems:
        raise typer.Exit(1)


def _alike(rows: "list[Inspected]") -> "list[Inspected]":
    """Leave out what has no channel in common with most, as a table of labels among recordings."""
    usual = Counter(row.channels for row in rows).most_common(1)[0][0] if rows else ()
    return [row for row in rows if set(row.channels) & set(usual)]


def _kept(recordings: list[str]) -> dict[str, Any]:
    """Return what the dicot.toml beside recordings says about their columns; nothing where there is none."""
    from dicot.data.reading import read_toml, toml_of

    folders = {toml_of(one) for one in recordings}
    kept = read_toml(folders.pop()) if len(folders) == 1 else {}
    return {key: kept[key] for key in ("time", "unit", "channels", "label", "group", "gap") if key in kept}


def _cells(row: "Inspected") -> list[str]:
    lasts = "" if row.seconds is None else str(timedelta(seconds=round(row.seconds)))
    rate = "" if row.rate is None else f"{row.rate:g}"
    return [f"{row.rows:,}", lasts, rate, str(row.gaps), f"{row.missing:.1%}"]
