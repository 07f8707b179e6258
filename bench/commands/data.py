"""python -m bench prepare and list: the paper's large sets from their publishers' files, and what can be run."""

from pathlib import Path
from typing import Annotated

import typer

from bench.paper.raw import prepare_by_name
from bench.suites import SUITES
from dicot.cli import listing
from dicot.cli.options import Set
from dicot.cli.settings import texts_of, value_of


def prepare(
    name: Annotated[str, typer.Argument(help="A name from `python -m bench list datasets`.")],
    raw: Annotated[Path, typer.Option(help="The folder with the publisher's files.")],
    out: Annotated[Path | None, typer.Option(help="Data folder; default: DICOT_DATA, or the cache.")] = None,
    set_: Set = None,
) -> None:
    """Make a large data set from its publisher's files."""
    settings = {name: value_of(name, text) for name, text in texts_of(set_).items()}
    card = prepare_by_name(name, raw, out=out, settings=settings or None)
    typer.echo(f"{card.name}: {listing.sizes_text(card)} (fingerprint {card.fingerprint})")
    for note in card.notes:
        typer.echo(f"Note: {note}")
    if out is not None:
        typer.echo(f"To load it by name, set DICOT_DATA={out}")


def list_names(
    kind: Annotated[str, typer.Argument(help="What to list: suites, datasets, or what `dicot list` knows.")],
    name: Annotated[str | None, typer.Argument(help="One data set: its card, and how to get it.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Read data sets whole, and compare sizes and values.")] = False,
) -> None:
    """List suites, or what `dicot list` does with the paper's large data sets among it."""
    if kind != "suites":
        listing.list_names(kind, name, check)
        return
    for suite, summary in listing.first_lines(SUITES):
        typer.echo(f"{suite:18} {summary}".rstrip())
