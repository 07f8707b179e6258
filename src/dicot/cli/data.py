"""dicot data: make large data sets from their publishers' files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.renamed import CommandGroup

if TYPE_CHECKING:
    from dicot.data.datasets import Card

data = typer.Typer(cls=CommandGroup, help="Data sets that are made from their publishers' files.", no_args_is_help=True)


@data.callback()
def root() -> None:
    """Data sets that are made from their publishers' files; `dicot list datasets NAME` says where these are."""


@data.command()
def prepare(
    name: Annotated[str, typer.Argument(help="A name from `dicot list datasets`.")],
    raw: Annotated[Path, typer.Option(help="The folder with the publisher's files.")],
    out: Annotated[Path | None, typer.Option(help="Data folder; default: DICOT_DATA, or the cache.")] = None,
    set_: opt.Set = None,
) -> None:
    """Make a large data set from its publisher's files."""
    from dicot.paper.raw import prepare_by_name

    said = opt.Settings(set_)
    card = prepare_by_name(name, raw, out=out, settings=said.take(*said.texts) or None)
    typer.echo(f"{card.name}: {sizes(card)} (fingerprint {card.fingerprint})")
    for note in card.notes:
        typer.echo(f"Note: {note}")
    if out is not None:
        typer.echo(f"To load it by name, set DICOT_DATA={out}")


def sizes(card: "Card") -> str:
    """Put the sizes of a data set into words."""
    return (
        f"{card.n_train} + {card.n_test} cases, {card.n_channels} channel(s), "
        f"{card.n_times or 'unequal'} time steps, {card.n_classes} classes"
    )
