"""dicot inspect: what recordings look like, and which windows to cut them into; or what a corpus holds."""

import shlex
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.corpus import describe
from dicot.cli.exitcodes import ERROR
from dicot.cli.sources import LOOKED_AT, corpus_at, say_table
from dicot.cli.tables import show_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dicot.data.inspection import Inspected
    from dicot.data.kinds import Kinds

SUGGESTED = ("unit", "window", "stride", "gap", "resample", "rate", "missing", "scale")


@opt.reads
def inspect(
    recordings: Annotated[list[str], typer.Argument(help="Folders, patterns or files of recordings; or a corpus.")],
    write: Annotated[bool, typer.Option("--write", help="Write the suggestions as dicot.toml beside them.")] = False,
    overwrite: opt.Overwrite = False,
    verify: Annotated[bool, typer.Option("--verify", help="A corpus: read every byte and compare its hash.")] = False,
    *,
    said: opt.Settings,
) -> None:
    """Show rows, rate, gaps, missing values and channels of recordings, and suggest window, stride and scale.

    Columns are those that a dicot.toml beside the recordings names, where no option does; --write makes one, and other
    commands go by it. Exit code 1 where a file could not be read. Of a corpus its windows and files are shown.
    """
    from dicot.core.storage import refuse_existing, write_atomic
    from dicot.data import Reading, inspect_recordings, suggest_windows
    from dicot.data.clocks import remark_sentences
    from dicot.data.inspection import names_sentence
    from dicot.data.kinds import sort_by_kind
    from dicot.data.readers import named_recordings
    from dicot.data.reading import read_toml, toml_of

    told = said.take(*LOOKED_AT, *SUGGESTED)
    said.rest()
    if len(recordings) == 1 and corpus_at(recordings[0]) is not None:
        describe(recordings[0], verify)
        return
    path = toml_of(recordings) if write else None
    if path is not None:
        refuse_existing(path, overwrite, "edit it")
    kept: dict[str, Any] = {}
    if path is None and len({toml_of(one) for one in recordings}) == 1:
        kept = read_toml(toml_of(recordings))
    looked = Reading(**{name: value for name, value in {**kept, **told}.items() if name in LOOKED_AT})
    say_table(recordings, {**kept, **told})
    kinds = sort_by_kind(inspect_recordings(recordings, looked))
    _say_merged(kinds.readable, looked.duplicates)
    sources = _say_others(recordings, kinds)
    if looked.join is None:
        _say_devices(kinds)
    options: list[str] = []
    if kinds.readable:
        _show_rows(kinds.readable)
        for sentence in remark_sentences({row.file: row.remarks for row in kinds.readable}):
            typer.secho(sentence, fg="yellow")
        advice = suggest_windows(kinds.readable, looked)
        for name in (name for name in SUGGESTED if name in advice.reasons):
            typer.echo(f"{name} {opt.text_of(getattr(advice.reading, name)) or 'none'}: {advice.reasons[name]}")
        files = {row.path for row in kinds.others}
        names = [name for name, file in named_recordings(recordings, looked.table).items() if file not in files]
        if called := names_sentence(names, looked.names):
            typer.echo(f"names {looked.names or 'none'}: {called}")
            advice.reasons["names"] = called
        rates = [row.rate for row in kinds.readable if row.rate is not None]
        if advice.left and (left := advice.left.sentence(rates[0] if rates else None)):
            typer.secho(left, fg="yellow")
        reading = advice.reading.replace(**told)
        if path is not None:
            write_atomic(path, reading.to_toml(advice.reasons).encode())
            typer.echo(f"Wrote {path}")
        else:
            options = _as_options(reading, told, advice.reasons)
    _say_problems(kinds)
    _say_next(sources, said, kinds, options)
    if kinds.unreadable or kinds.others:
        raise typer.Exit(ERROR)


def _say_merged(rows: "Sequence[Inspected]", how: str) -> None:
    """Say how many rows of equal time stamps became one."""
    from dicot.data.cutting import merged_sentence

    n_merged = sum(row.n_merged for row in rows)
    if n_merged:
        n_rows = n_merged + sum(row.rows for row in rows)
        typer.echo(merged_sentence(n_merged, n_rows, sum(row.n_merged > 0 for row in rows), how))


def _say_others(recordings: list[str], kinds: "Kinds") -> list[str]:
    """Name what is no recording; return what names the recordings alone, as far as a pattern can."""
    from dicot.data.kinds import others_sentence, pattern_of

    if not kinds.others:
        return recordings
    typer.secho(others_sentence(kinds), fg="red", err=True)
    folder = Path(recordings[0])
    pattern = pattern_of(folder, kinds) if len(recordings) == 1 and folder.is_dir() else None
    if pattern is None:
        typer.echo("First move away what is no recording.")
        return recordings
    typer.echo(f"To leave out what is no recording, name the others by a pattern, as below: {shlex.quote(pattern)}")
    return [pattern]


def _say_devices(kinds: "Kinds") -> None:
    """Say how files of several devices become one recording, where their names look like it."""
    from dicot.data.devices import join_advice

    rows = [row for rows in kinds for row in rows]
    channels = {row.file.removesuffix(row.path.suffix): row.columns for row in rows if row.path and row.columns}
    if said := join_advice(channels):
        typer.echo(said)


def _say_problems(kinds: "Kinds") -> None:
    from dicot.data.kinds import problem_sentences

    for sentence in problem_sentences(kinds.unreadable):
        typer.secho(sentence, fg="red", err=True)


def _say_next(sources: list[str], said: "opt.Settings", kinds: "Kinds", options: list[str]) -> None:
    """Print the command that comes next: the same with the setting that was missing, or the map."""
    if kinds.settings:
        missing = opt.Settings([f"{name}={value}" for name, value in kinds.settings.items()])
        words = ["dicot", "inspect", *sources, *said.words(said.texts), *missing.words(kinds.settings)]
        typer.echo(f"Next: {shlex.join(words)}")
    elif kinds.readable:
        words = ["dicot", "explore", *sources[:1], *options]
        typer.echo(f"Next: {shlex.join(words)}")


def _show_rows(rows: "Sequence[Inspected]") -> None:
    from dicot.core.errors import listed

    lasts = ["" if row.seconds is None else str(timedelta(seconds=round(row.seconds))) for row in rows]
    show_columns(
        {
            "recording": [row.file for row in rows],
            "rows": [f"{row.rows:,}" for row in rows],
            "lasts": lasts,
            "per second": ["" if row.rate is None else f"{row.rate:g}" for row in rows],
            "gaps": [row.gaps for row in rows],
            "missing": [f"{row.missing:.1%}" for row in rows],
            "over time": [row.sparkline for row in rows],
        }
    )
    for names in dict.fromkeys(row.channels for row in rows):
        typer.echo(f"{len(names)} channel(s): {listed(names)}")
    _show_offsets(rows)


def _show_offsets(rows: "Sequence[Inspected]") -> None:
    """Say once for each channel that its signal stands on a large offset, of the first recording where it does."""
    files: dict[str, list[str]] = {}
    sentences: dict[str, str] = {}
    for row in rows:
        for channel, sentence in row.offsets.items():
            files.setdefault(channel, []).append(row.file)
            sentences.setdefault(channel, sentence)
    for channel, sentence in sentences.items():
        n_others = len(files[channel]) - 1
        where = files[channel][0] + (f" and {n_others} more" if n_others else "")
        typer.secho(f"channel {channel} of {where}: {sentence}", fg="yellow")


def _as_options(reading: Any, told: dict[str, Any], reasons: dict[str, str]) -> list[str]:
    """Write a reading as a command has it: what was told or suggested."""
    shared = reasons["channels"].startswith("those")  # not all recordings have all channels
    names = [name for name in (*LOOKED_AT, *SUGGESTED) if name in told or (name in SUGGESTED and name in reasons)]
    texts = {}
    for name in dict.fromkeys([*names, *(["channels"] if shared else [])]):
        if (value := getattr(reading, name)) is not None:
            texts[name] = opt.text_of(value)
    return opt.Settings([f"{name}={text}" for name, text in texts.items()]).words(texts)
