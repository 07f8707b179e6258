"""dicot corpus: windows of recordings in a folder, more of them than memory holds."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.paths import check_data
from dicot.cli.sources import say_table
from dicot.core.errors import InputError, WrongCallError

corpus = typer.Typer(help="Corpora: windows of recordings, more than memory holds.", no_args_is_help=True)


@corpus.callback()
def root() -> None:
    """Corpora: windows of recordings, more than memory holds. `dicot inspect CORPUS` describes one."""


@corpus.command(cls=opt.Command)
@opt.reads
def build(
    sources: Annotated[list[str], typer.Argument(help="Folders, patterns, files or URLs of recordings.")],
    out: Annotated[Path, typer.Option(help="Folder for the corpus; a killed build continues there.")],
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; default: one per core, as memory allows.")
    ] = None,
    skip_damaged: Annotated[bool, typer.Option("--skip-damaged", hidden=True)] = False,
    overwrite: opt.Overwrite = False,
    *,
    said: opt.Settings,
) -> None:
    """Cut recordings into windows and keep these in a folder, file by file. A killed build is continued.

    Files that cannot be used are left out, named, and listed in the corpus; the exit code is then 3.

    --set takes rate, resample, unit, gap, missing, and memory, how much may be taken, such as 4GB; default: half of
    what is free.
    """
    from dicot.core.processes.budget import cores, said_bytes
    from dicot.store.build import build_corpus
    from dicot.store.folder import SCHEME

    for name in sources:
        if SCHEME not in name:
            check_data(name)
    taken = said.take("time", "channels", "ignore", "label", "group", "missing", *opt.CUTTING, "memory")
    options = _choices(sources) | taken
    said.rest()
    say_table([one for one in sources if SCHEME not in one], options)
    if "window" not in options:
        raise WrongCallError("Say how long a window is: --window 2.56s, or 128 for time steps.")
    allowance = said.allowance
    allowance.bad_files = allowance.bad_files or skip_damaged
    done = build_corpus(sources, out, **options, workers=workers or cores(), allowance=allowance, overwrite=overwrite)
    for sentence in allowance.sentences():
        opt.warn(sentence)
    if done.was_there:
        typer.echo(f"{out} already holds this corpus; nothing to do.")
        return
    made = done.corpus
    if done.continued:
        typer.echo(f"Continued: {done.continued} of {len(made.sources)} files were finished before.")
    n, c, t = made.shape
    n_files = len(made.sources) - len(made.damaged)
    typer.echo(f"{n} windows of {c} channel(s) and {t} time steps, of {n_files} file(s)")
    typer.echo(f"Wrote {out}: {len(made.shards)} shards, {said_bytes(made.store.bytes)}")


def describe(folder: str, verify: bool) -> None:
    """Describe a corpus: its windows, its files and what was left out."""
    from dicot.core.processes.budget import said_bytes
    from dicot.store.folder import Corpus

    opened = Corpus.open(folder, verify=verify)
    (n, c, t), rate = opened.shape, opened.rate
    lines = {
        "windows": f"{n:,}",
        "channels": f"{c}: {', '.join(opened.channels)}",
        "time steps": f"{t}" + ("" if rate is None else f", {t / rate:g} s at {rate:g} per second"),
        "stride": f"{opened.stride}" + ("" if rate is None else f", {opened.stride / rate:g} s"),
        "stored as": f"{len(opened.shards):,} shards, {said_bytes(opened.store.bytes)}",
        "sources": f"{len(opened.sources):,} files, {said_bytes(sum(s.bytes for s in opened.sources))}, "
        f"{sum(source.recordings for source in opened.sources):,} recordings with a window",
        "options": ", ".join(f"{key}={value}" for key, value in opened.reading.to_dict().items()),
        "fingerprint": opened.fingerprint() + (", every byte as it was written" if verify else ""),
    }
    for name, text in lines.items():
        typer.echo(f"{name:12} {text}")
    for source in opened.damaged:
        typer.echo(f"{'left out':12} {source.damaged}")


def _choices(sources: list[str]) -> dict[str, Any]:
    """Return what the dicot.toml beside the recordings says; two of them cannot both be followed."""
    from dicot.data.reading import read_toml, toml_of
    from dicot.store.folder import SCHEME

    paths = dict.fromkeys(toml_of(source) for source in sources if SCHEME not in source)
    there = [path for path in paths if path.is_file()]
    if len(there) > 1:
        raise InputError(f"{there[0]} and {there[1]} both say how to cut. Build a corpus of each, or remove one.")
    if not there:
        return {}
    kept = read_toml(there[0])
    kept.pop("scale", None)  # of a fit: a corpus keeps values as they are
    typer.echo(f"Options of {there[0]}: {', '.join(kept)}")
    return kept
