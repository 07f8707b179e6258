"""dicot data: the data sets that are known, and how to get or check them."""

import warnings
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.core.errors import DicotError

if TYPE_CHECKING:
    from dicot.data.datasets import Card

data = typer.Typer(help="Data sets: what is here, how to get the rest.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="A name from `dicot data list`.")]


@data.command("list")
def list_sets() -> None:
    """List all known data sets, here or not."""
    from dicot.data.datasets import DATASETS, on_hand

    here, damaged = on_hand()
    lines = {card.name: (card.family, sizes(card)) for card in here}
    for name, dataset in DATASETS.items():
        if name in damaged:
            lines[name] = dataset.family, f"damaged: {damaged[name]}"
        elif name not in lines and not dataset.is_here():
            lines[name] = dataset.family, "not here"
    for name in sorted(lines, key=str.lower):
        family, text = lines[name]
        typer.echo(f"{name:32} {family or '-':10} {text}")
    typer.echo(f"{len(here)} data sets are here. `dicot data show NAME` says how to get one that is not.")
    if damaged:
        typer.echo(f"{len(damaged)} more are damaged.")


@data.command()
def show(name: Name) -> None:
    """Show the card of a data set, or how to get it."""
    from dicot.data.datasets import DATASETS

    dataset = DATASETS.find(name)
    card = dataset.card()
    for field in fields(card):
        value = getattr(card, field.name)
        if value not in (None, "", (), {}):
            typer.echo(f"{field.name:24} {', '.join(map(str, value)) if isinstance(value, tuple) else value}")
    if dataset.paper_sizes is not None:
        stated = [f"{what} {size}" for what, size in dataset.paper_sizes._asdict().items() if size is not None]
        typer.echo(f"{'in the paper':24} {', '.join(stated)}")


@data.command()
def prepare(
    name: Name,
    raw: Annotated[Path, typer.Option(help="The folder with the publisher's files.")],
    out: Annotated[
        Path | None, typer.Option(help="Data folder to write large/NAME into; default: DICOT_DATA, or the cache.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the data set, name=value; repeat for more.")
    ] = None,
) -> None:
    """Make a large data set from its publisher's files."""
    from dicot.core.progress import Bar
    from dicot.paper.preparation import SizeWarning
    from dicot.paper.raw import prepare_by_name

    with Bar(f"prepare {name}", 100) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", SizeWarning)  # they are among the card's notes
        card = prepare_by_name(
            name,
            raw,
            out=out,
            settings=opt.settings(set_),
            on_progress=lambda share, note: bar.update(int(100 * share), note),
        )
    typer.echo(f"{card.name}: {sizes(card)} (fingerprint {card.fingerprint})")
    for note in card.notes:
        typer.echo(f"Note: {note}")
    if out is not None:
        typer.echo(f"To load it by name, set DICOT_DATA={out}")


@data.command()
def check(name: Annotated[str | None, typer.Argument(help="One data set; default: all that are here.")] = None) -> None:
    """Read data sets whole, compare their sizes and values with what is known, and show their fingerprints."""
    from dicot.core.progress import Bar
    from dicot.data.datasets import check as check_set
    from dicot.data.datasets import on_hand

    names = [name] if name is not None else []
    if name is None:
        here, damaged = on_hand()
        names = [*(card.name for card in here), *damaged]
    wrong = 0
    with Bar("check", len(names)) as bar:
        for done, one in enumerate(names):
            bar.update(done, one)
            try:
                card = check_set(one)
                typer.echo(f"{card.name:32} {sizes(card)}, fingerprint {card.fingerprint}")
            except DicotError as error:
                if name is not None:
                    raise
                wrong += 1
                typer.secho(f"{one:32} damaged: {error}", fg="red", err=True)
    if wrong:
        typer.secho(f"Error: {wrong} of {len(names)} data sets are not as they should be.", fg="red", err=True)
        raise typer.Exit(1)


def sizes(card: "Card") -> str:
    """Put the sizes of a data set into words."""
    return (
        f"{card.n_train} + {card.n_test} cases, {card.n_channels} channel(s), "
        f"{card.n_times or 'unequal'} time steps, {card.n_classes} classes"
    )
