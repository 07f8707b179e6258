"""dicot corpus: windows of recordings in a folder, more of them than memory holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.commands import command
from dicot.cli.exitcodes import end
from dicot.cli.paths import check_data
from dicot.cli.settings import OF_RECORDINGS
from dicot.cli.sources import say_table
from dicot.core.errors import InputError, WrongCallError

if TYPE_CHECKING:
    from dicot.store.build import Build
    from dicot.store.folder import Corpus

READING = ("time", "channels", "ignore", "label", "group", "missing", *OF_RECORDINGS)

corpus = typer.Typer(help="Corpora: windows of recordings, more than memory holds.", no_args_is_help=True)


@corpus.callback()
def root() -> None:
    """Corpora: windows of recordings, more than memory holds. `dicot inspect CORPUS` describes one."""


@command(corpus)
def build(
    sources: Annotated[list[str], typer.Argument(help="Folders, patterns or files of recordings.")],
    out: Annotated[Path, typer.Option(help="Folder for the corpus; a killed build continues there.")],
    reading: opt.ReadingOptions,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one per core.")] = None,
    skip_damaged: Annotated[bool, typer.Option("--skip-damaged", hidden=True)] = False,
    overwrite: opt.Overwrite = False,
) -> None:
    """Cut recordings into windows and keep these in a folder, file by file. A killed build is continued.

    Files that cannot be used are left out, named, and listed in the corpus; the exit code is then 3.

    --set takes rate, resample, unit, gap, missing and others. Each process holds one file at a time: where memory is
    short, lower --workers.
    """
    from dicot.core.place import cores
    from dicot.store.build import build_corpus, refuse_urls

    refuse_urls(sources)
    for name in sources:
        check_data(name)
    options = _options_beside(sources) | reading.by_group(reading=READING).reading
    say_table(sources, options)
    if "window" not in options:
        raise WrongCallError("Say how long a window is: --window 2.56s, or 128 for time steps.")
    allowance = reading.allowance
    allowance.bad_files = allowance.bad_files or skip_damaged
    done = build_corpus(sources, out, **options, workers=workers or cores(), allowance=allowance, overwrite=overwrite)
    for sentence in allowance.sentences():
        opt.warn(sentence)
    _show(done, out)
    end(allowance)


def _show(done: "Build", out: Path) -> None:
    """Say what a build did."""
    from dicot.core.memory import said_bytes

    if done.was_there:
        typer.echo(f"{out} already holds this corpus; nothing to do.")
        return
    made = done.corpus
    if done.continued:
        typer.echo(f"Continued: {done.continued} of {len(made.sources)} files were finished before.")
    n_windows, n_channels, n_times = made.shape
    n_files = len(made.sources) - len(made.damaged)
    typer.echo(f"{n_windows} windows of {n_channels} channel(s) and {n_times} time steps, of {n_files} file(s)")
    typer.echo(f"Wrote {out}: {len(made.shards)} shards, {said_bytes(made.store.bytes)}")


def describe(folder: str, verify: bool) -> None:
    """Describe a corpus: its windows, its files and what was left out."""
    from dicot.store.folder import Corpus

    opened = Corpus.open(folder, verify=verify)
    for name, text in _facts(opened, verify).items():
        typer.echo(f"{name:12} {text}")
    for source in opened.damaged:
        typer.echo(f"{'left out':12} {source.damaged}")


def _facts(opened: "Corpus", verify: bool) -> dict[str, str]:
    from dicot.core.memory import said_bytes

    n_windows, n_channels, n_times = opened.shape
    length, stride = f"{n_times}", f"{opened.stride}"
    if opened.rate is not None:
        length += f", {n_times / opened.rate:g} s at {opened.rate:g} per second"
        stride += f", {opened.stride / opened.rate:g} s"
    n_bytes = sum(source.bytes for source in opened.sources)
    n_recordings = sum(source.recordings for source in opened.sources)
    return {
        "windows": f"{n_windows:,}",
        "channels": f"{n_channels}: {', '.join(opened.channels)}",
        "time steps": length,
        "stride": stride,
        "stored as": f"{len(opened.shards):,} shards, {said_bytes(opened.store.bytes)}",
        "sources": f"{len(opened.sources):,} files, {said_bytes(n_bytes)}, {n_recordings:,} recordings with a window",
        "options": ", ".join(f"{key}={value}" for key, value in opened.reading.to_dict().items()),
        "fingerprint": opened.fingerprint() + (", every byte as it was written" if verify else ""),
    }


def _options_beside(sources: list[str]) -> dict[str, Any]:
    """Return what the dicot.toml beside the recordings says; two of them cannot both be followed."""
    from dicot.data.reading import read_toml, toml_of

    paths = [path for path in dict.fromkeys(toml_of(source) for source in sources) if path.is_file()]
    if len(paths) > 1:
        raise InputError(f"{paths[0]} and {paths[1]} both say how to cut. Build a corpus of each, or remove one.")
    if not paths:
        return {}
    options = read_toml(paths[0])
    options.pop("scale", None)  # of a fit: a corpus keeps values as they are
    typer.echo(f"Options of {paths[0]}: {', '.join(options)}")
    return options
