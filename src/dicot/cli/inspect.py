"""dicot inspect: what recordings look like, and which windows to cut them into; or what a corpus holds."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import exitcodes
from dicot.cli import options as opt
from dicot.cli.corpus import describe
from dicot.cli.settings import OF_CASES, READING
from dicot.cli.tables import show_columns

if TYPE_CHECKING:
    from dicot.data.survey import Line, Survey


def inspect(
    recordings: Annotated[list[str], typer.Argument(help="Folders, patterns or files of recordings; or a corpus.")],
    reading: opt.ReadingOptions,
    write: Annotated[
        bool,
        typer.Option("--write", help="Write the suggestions as dicot.toml beside the recordings."),
    ] = False,
    overwrite: opt.Overwrite = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="A corpus: read every byte and compare its hash."),
    ] = False,
) -> None:
    """Show rows, rate, gaps, missing values and channels of recordings, and suggest window, stride and scale.

    Columns are those that a dicot.toml beside the recordings names, where no option does; --write makes one, and other
    commands go by it. Exit code 1 where a file could not be read. Of a corpus its windows and files are shown.
    """
    known = tuple(name for name in READING if name not in OF_CASES)
    settings = reading.by_group(reading=known).reading

    from dicot.data.survey import survey_recordings
    from dicot.store.source import corpus_at, say_table

    if len(recordings) == 1 and corpus_at(recordings[0]) is not None:
        describe(recordings[0], verify)
        return

    toml = _toml_to_write(recordings, overwrite) if write else None
    of_toml = {} if write else _toml_beside(recordings)
    say_table(recordings, {**of_toml, **settings}, typer.echo)
    survey = survey_recordings(recordings, settings, of_toml)
    if survey.kinds.readable:
        show_columns(survey.table())
    _show(survey.lines())
    is_written = toml is not None and _write(toml, survey)
    _show(survey.problems())

    command = _next_command(survey, reading, is_written, write, overwrite)
    if command:
        typer.echo(f"Next: {shlex.join(command)}")
    if not survey.is_sound:
        raise typer.Exit(exitcodes.ERROR)


def _next_command(
    survey: "Survey", reading: opt.ReadingOptions, is_written: bool, write: bool, overwrite: bool
) -> list[str]:
    """Return the words of the command that comes next; none where nothing can be read."""
    # Whoever writes a dicot.toml for channels that go by device goes on with it.
    if survey.join is None or is_written:
        return survey.next_command(reading.texts, is_written=is_written)
    words = survey.command_to_join(reading.texts)
    if write:
        words.append("--write")
    if overwrite:
        words.append("--overwrite")
    return words


def _toml_to_write(recordings: list[str], overwrite: bool) -> Path:
    from dicot.core.storage import refuse_existing
    from dicot.data.reading import toml_of

    path = toml_of(recordings)
    refuse_existing(path, overwrite, "edit it")
    return path


def _toml_beside(recordings: list[str]) -> dict[str, Any]:
    """Return what the dicot.toml beside the recordings says; nothing where they are of several folders."""
    from dicot.data.reading import read_toml, toml_of

    paths = {toml_of(source) for source in recordings}
    return read_toml(paths.pop()) if len(paths) == 1 else {}


def _write(toml: Path, survey: "Survey") -> bool:
    """Write what is suggested, and tell whether anything was."""
    from dicot.core.storage import write_atomic

    if survey.advice is not None:
        write_atomic(toml, survey.advice.reading.to_toml(survey.advice.reasons).encode())
        typer.echo(f"Wrote {toml}")
        return True
    if survey.needs_join:
        typer.echo("No dicot.toml is written yet: it would not join the files.")
    return False


def _show(lines: "Iterable[Line]") -> None:
    colours = {"plain": None, "warning": "yellow", "error": "red"}
    for line in lines:
        typer.secho(line.text, fg=colours[line.tone], err=line.tone == "error")
