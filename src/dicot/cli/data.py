"""dicot data: the data sets that are known, prepared ones among them."""

import warnings
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.errors import DicotError, lookup

if TYPE_CHECKING:
    from dicot.datasets import Card

data = typer.Typer(help="Data sets: what is here, how to get the rest.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="A name from `dicot data list`.")]


@data.command("list")
def list_sets() -> None:
    """All known data sets, here or not."""
    from dicot.datasets import PREPARERS, STANDINS, on_hand
    from dicot.datasets.names import UCR, UEA

    held = on_hand()
    here = {card.name: card for card in held.cards}
    known = dict.fromkeys([*PREPARERS, *STANDINS], "large") | dict.fromkeys(UCR, "ucr") | dict.fromkeys(UEA, "uea")
    for name in sorted({*here, *held.damaged, *known}, key=str.lower):
        family = here[name].family if name in here else known.get(name)
        what = _sizes(here[name]) if name in here else "not here"
        typer.echo(f"{name:32} {family or '-':10} {f'damaged: {held.damaged[name]}' if name in held.damaged else what}")
    typer.echo(f"{len(here)} data sets are here. `dicot data show NAME` says how to get one that is not.")
    if held.damaged:
        typer.echo(f"{len(held.damaged)} more are damaged.")


@data.command()
def show(name: Name) -> None:
    """The card of a data set, or how to get it."""
    from dicot.datasets import PREPARERS, card

    shown = card(name)
    for field in fields(shown):
        value = getattr(shown, field.name)
        if value not in (None, "", (), {}):
            typer.echo(f"{field.name:24} {', '.join(map(str, value)) if isinstance(value, tuple) else value}")
    if name.lower() in PREPARERS:
        preparer = PREPARERS[name.lower()]
        paper = preparer.paper or preparer.expected
        stated = [f"{what} {size}" for what, size in paper._asdict().items() if size is not None]
        typer.echo(f"{'in the paper':24} {', '.join(stated)}")


@data.command()
def prepare(
    name: Name,
    raw: Annotated[Path, typer.Option(help="The folder with the publisher's files.")],
    out: Annotated[
        Path | None, typer.Option(help="Data folder to write large/NAME into; default: DICOT_DATA, or the cache.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the preparer, name=value; repeat for more.")
    ] = None,
) -> None:
    """Make a large data set from its publisher's files; run it again to go on after an interruption."""
    from dicot.datasets import PREPARERS
    from dicot.datasets.preparer import SizeWarning, prepare_set
    from dicot.progress import Bar

    preparer = lookup(PREPARERS, name.lower(), "large data set")
    with Bar(f"prepare {preparer.name}", 100) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", SizeWarning)  # they are among the card's notes
        card = prepare_set(
            preparer,
            raw,
            out=out,
            settings=opt.settings(set_),
            on_progress=lambda share, note: bar.update(int(100 * share), note),
        )
    typer.echo(f"{card.name}: {_sizes(card)} (fingerprint {card.fingerprint})")
    for note in card.notes:
        typer.echo(f"Note: {note}")
    if out is not None:
        typer.echo(f"To load it by name, set DICOT_DATA={out}")


@data.command()
def check(name: Annotated[str | None, typer.Argument(help="One data set; default: all that are here.")] = None) -> None:
    """Read a data set whole and compare sizes and fingerprint with its card; exit code 1 where they differ."""
    from dicot.datasets import check as check_set
    from dicot.datasets import on_hand
    from dicot.progress import Bar

    names = [name] if name is not None else []
    if name is None:
        held = on_hand()
        names = [*(card.name for card in held.cards), *held.damaged]
    wrong = 0
    with Bar("check", len(names)) as bar:
        for done, one in enumerate(names):
            bar.update(done, one)
            try:
                card = check_set(one)
                typer.echo(f"{card.name:32} {_sizes(card)}, fingerprint {card.fingerprint}")
            except DicotError as error:
                if name is not None:
                    raise
                wrong += 1
                typer.secho(f"{one:32} damaged: {error}", fg="red", err=True)
    if wrong:
        typer.secho(f"Error: {wrong} of {len(names)} data sets are not as they should be.", fg="red", err=True)
        raise typer.Exit(1)


def _sizes(card: "Card") -> str:
    return (
        f"{card.n_train} + {card.n_test} cases, {card.n_channels} channel(s), "
        f"{card.n_times or 'unequal'} time steps, {card.n_classes} classes"
    )
