"""dicot inspect: what recordings look like, and which windows to cut them into; or what a corpus holds."""

import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.corpus import describe
from dicot.cli.exitcodes import ERROR, PARTIAL
from dicot.cli.sources import LOOKED_AT, corpus_at, say_table
from dicot.cli.tables import show_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dicot.data import Reading
    from dicot.data.devices import JoinAdvice
    from dicot.data.inspection import Inspected
    from dicot.data.kinds import Kinds
    from dicot.data.suggestion import LabelAdvice, Suggestion

_MOST_ROWS = 20  # of the table: of more, what is said below it would be off the screen
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
    from dicot.data import Reading, inspect_recordings
    from dicot.data.kinds import joined_by_devices, sort_by_kind
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
    settings = {**kept, **told}
    looked = Reading(**{name: value for name, value in settings.items() if name in LOOKED_AT})
    say_table(recordings, settings)

    kinds = sort_by_kind(inspect_recordings(recordings, looked))
    join = None if looked.join is not None else _join_advice(kinds)
    # Where no channel is shared, nothing can be suggested before the files are joined.
    needs_join = join is not None and bool(kinds.others)
    if needs_join:
        kinds = joined_by_devices(kinds)
    _say_recordings(kinds, looked)
    sources = _say_others(recordings, kinds)
    if join is not None:
        typer.echo(join.sentence)
    labels = _say_labels(recordings, kinds, looked)

    options: list[str] = []
    if kinds.readable and not needs_join:
        advice = _suggest(recordings, kinds, looked, settings)
        advice = _with_labels(replace(advice, reading=advice.reading.replace(**told)), labels)
        if path is None:
            options = _as_options(advice, told)
        else:
            write_atomic(path, advice.reading.to_toml(advice.reasons).encode())
            typer.echo(f"Wrote {path}")
            join = None  # whoever writes a dicot.toml for these channels goes on with it
    elif write and needs_join:
        typer.echo("No dicot.toml is written yet: it would not join the files.")

    _say_problems(kinds)
    if join is None:
        _say_next(sources, said, kinds, options, labels)
    else:
        flags = [flag for flag, is_given in (("--write", write), ("--overwrite", overwrite)) if is_given]
        _say_next_join(recordings, said, join, labels, flags)
    if kinds.unreadable or kinds.others:
        raise typer.Exit(ERROR)


def _say_recordings(kinds: "Kinds", looked: "Reading") -> None:
    """Show the recordings, what is odd about their clocks, and how many rows became one."""
    from dicot.data.clocks import remark_sentences

    if kinds.readable:
        _show_rows(kinds.readable)
    for sentence in remark_sentences({row.file: row.remarks for row in kinds.readable}):
        typer.secho(sentence, fg="yellow")
    _say_merged(kinds.readable, looked.duplicates)


def _say_labels(recordings: list[str], kinds: "Kinds", looked: "Reading") -> "LabelAdvice":
    """Name the columns that look like labels."""
    from dicot.data.suggestion import label_advice
    from dicot.data.tags import find_table

    has_table = find_table(recordings, looked.table) is not None
    labels = label_advice(kinds.readable, looked, has_table)
    for sentence in labels.sentences:
        typer.secho(sentence, fg="yellow")
    return labels


def _with_labels(advice: "Suggestion", labels: "LabelAdvice") -> "Suggestion":
    """Return a suggestion in which columns that look like labels are labels and no channels."""
    if not labels.columns:
        return advice
    channels = tuple(name for name in advice.reading.channels or () if name not in labels.columns)
    reading = advice.reading.replace(label=labels.label, channels=channels or None)
    reasons = {**advice.reasons, "label": " ".join(labels.sentences)}
    if advice.reading.channels != reading.channels:
        reasons["channels"] += ", but for what looks like a label"
    return replace(advice, reading=reading, reasons=reasons)


def _suggest(recordings: list[str], kinds: "Kinds", looked: "Reading", settings: dict[str, Any]) -> "Suggestion":
    """Say what is suggested and why, and what would lie in no window."""
    from dicot.data import suggest_windows
    from dicot.data.folders import named_recordings
    from dicot.data.inspection import names_sentence
    from dicot.data.suggestion import no_rate_sentence

    advice = suggest_windows(kinds.readable, looked)
    for name in SUGGESTED:
        if name in advice.reasons:
            value = opt.text_of(getattr(advice.reading, name)) or "none"
            typer.echo(f"{name} {value}: {advice.reasons[name]}")
    without_rate = no_rate_sentence(kinds.readable)
    if without_rate and "rate" not in settings:
        typer.echo(without_rate)

    others = {row.path for row in kinds.others}
    names = [name for name, file in named_recordings(recordings, looked.table).items() if file not in others]
    if called := names_sentence(names, looked.names):
        typer.echo(f"names {looked.names or 'none'}: {called}")
        advice.reasons["names"] = called

    rates = [row.rate for row in kinds.readable if row.rate is not None]
    left_out = advice.left.sentence(rates[0] if rates else None) if advice.left else ""
    if left_out:
        typer.secho(left_out, fg="yellow")
    return advice


def _say_merged(rows: "Sequence[Inspected]", how: str) -> None:
    """Say how many rows of equal time stamps became one."""
    from dicot.data.looking import merged_sentence

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
        typer.echo(
            "No simple pattern tells them apart. Other commands leave out what is no recording by themselves, "
            f"name it, and end with exit code {PARTIAL}."
        )
        return recordings
    typer.echo(f"To leave out what is no recording, name the others by a pattern, as below: {shlex.quote(pattern)}")
    return [pattern]


def _join_advice(kinds: "Kinds") -> "JoinAdvice | None":
    """Tell how files of several devices become one recording, where their names look like it."""
    from dicot.data.devices import join_advice

    rows = [row for rows in kinds for row in rows]
    return join_advice(
        {row.file.removesuffix(row.path.suffix): row.columns for row in rows if row.path and row.columns}
    )


def _say_problems(kinds: "Kinds") -> None:
    from dicot.data.kinds import problem_sentences

    for sentence in problem_sentences(kinds.unreadable):
        typer.secho(sentence, fg="red", err=True)


def _say_next(
    sources: list[str], said: "opt.Settings", kinds: "Kinds", options: list[str], labels: "LabelAdvice"
) -> None:
    """Print the command that comes next: the same with the setting that was missing, or the map."""
    if kinds.settings:
        missing = opt.Settings([f"{name}={value}" for name, value in kinds.settings.items()])
        words = ["dicot", "inspect", *sources, *said.words(said.texts), *missing.words(kinds.settings)]
        typer.echo(f"Next: {shlex.join([*words, *labels.options])}")
    elif kinds.readable:
        words = ["dicot", "explore", *sources[:1], *options]
        typer.echo(f"Next: {shlex.join(words)}")


def _say_next_join(
    recordings: list[str], said: "opt.Settings", join: "JoinAdvice", labels: "LabelAdvice", flags: list[str]
) -> None:
    """Print the same command with the options that join the files of several devices."""
    other_settings = [name for name in said.texts if name not in ("names", "join")]
    words = ["dicot", "inspect", *recordings, *said.words(other_settings), *join.options, *labels.options, *flags]
    typer.echo(f"Next: {shlex.join(words)}")


def _show_rows(rows: "Sequence[Inspected]") -> None:
    from dicot.core.errors import listed

    first = rows[:_MOST_ROWS]
    show_columns(
        {
            "recording": [row.file for row in first],
            "rows": [f"{row.rows:,}" for row in first],
            "lasts": ["" if row.seconds is None else _duration(row.seconds) for row in first],
            "per second": ["" if row.rate is None else f"{row.rate:g}" for row in first],
            "gaps": [row.gaps for row in first],
            "missing": [f"{row.missing:.1%}" for row in first],
            "over time": [row.sparkline for row in first],
        }
    )
    if len(rows) > len(first):
        n_more = len(rows) - len(first)
        more = "1 more recording" if n_more == 1 else f"{n_more} more recordings"
        typer.echo(f"... and {more}. {_totals(rows)}")
    for names in dict.fromkeys(row.channels for row in rows):
        typer.echo(f"{len(names)} channel(s): {listed(names)}")
    _show_offsets(rows)


def _totals(rows: "Sequence[Inspected]") -> str:
    """Say what all recordings hold together."""
    n_rows = sum(row.rows for row in rows)
    seconds = [row.seconds for row in rows if row.seconds is not None]
    lasting = f", {_duration(sum(seconds))}" if len(seconds) == len(rows) else ""
    n_gaps = sum(row.gaps for row in rows)
    # Each value counts alike: recordings have different numbers of rows and of channels.
    n_values = sum(row.rows * len(row.channels) for row in rows)
    n_missing = sum(row.missing * row.rows * len(row.channels) for row in rows)
    missing = n_missing / n_values if n_values else 0.0
    return f"All {len(rows)} together: {n_rows:,} rows{lasting}, {n_gaps:,} gaps, {missing:.1%} missing."


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


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


def _as_options(advice: "Suggestion", told: dict[str, Any]) -> list[str]:
    """Write a suggestion as a command has it, with what was told."""
    suggested = [name for name in (*SUGGESTED, "label") if name in advice.reasons]
    if advice.reasons["channels"].startswith("those"):  # not all recordings have all channels
        suggested.append("channels")
    names = [name for name in (*LOOKED_AT, *SUGGESTED) if name in told or name in suggested]
    values = {name: getattr(advice.reading, name) for name in names}
    texts = {name: opt.text_of(value) for name, value in values.items() if value is not None}
    return opt.Settings([f"{name}={text}" for name, text in texts.items()]).words(texts)
