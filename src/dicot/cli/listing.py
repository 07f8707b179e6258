"""dicot list: every registry, one line per entry."""

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.core.errors import DicotError, InputError, WrongCallError, lookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dicot.data.datasets import Card

KINDS = ("models", "methods", "presets", "controls", "encoders", "poolings", "protocols", "datasets")


def _entries(kind: str) -> "Iterable[tuple[str, str]]":
    match kind:
        case "models":
            from dicot.model.box import BOX
            from dicot.model.universal import CARD

            cards = {name: (path / CARD).read_text("utf-8").split("\n\n") for name, path in BOX.items()}
            return [(name, " ".join(paragraphs[1].split())) for name, paragraphs in cards.items()]
        case "methods":
            from dicot.methods import METHODS

            return [(name, f"{one.summary} | {one.paper} | {one.complexity}") for name, one in METHODS.items()]
        case "presets":
            from dicot.model.presets import DEFAULT_PRESET, METHOD_PRESET, PRESETS

            notes = {METHOD_PRESET: "; the default where a method is named", DEFAULT_PRESET: "; the default"}
            return [(name, f"{one.method}: {one.summary}{notes.get(name, '')}") for name, one in PRESETS.items()]
        case "controls":
            from dicot.judge.classical import CLASSICAL
            from dicot.model.controls import CONTROLS

            return first_lines({**CONTROLS, **CLASSICAL})
        case "encoders":
            from dicot.nets.encoders import ENCODERS

            return first_lines(ENCODERS)
        case "poolings":
            from dicot.model.embedding import POOLINGS

            return [(name, pooling.summary) for name, pooling in POOLINGS.items()]
        case "protocols":
            from dicot.judge.protocols import every_protocol

            return [(name, make().description) for name, make in every_protocol().items()]
        case _:
            return _datasets()


def first_lines(registry: "Mapping[str, Any]") -> list[tuple[str, str]]:
    return [(name, next(iter((one.__doc__ or "").splitlines()), "")) for name, one in registry.items()]


def _datasets() -> list[tuple[str, str]]:
    """All data sets that are known, here or not; a damaged one says what is wrong with it."""
    from dicot.data.datasets import DATASETS, on_hand

    cards, damaged = on_hand()
    lines = {card.name: f"{card.family or '-':10} {sizes_text(card)}" for card in cards}
    for name, dataset in DATASETS.items():
        if name in damaged or (name not in lines and not dataset.is_here()):
            why = f"damaged: {damaged[name]}" if name in damaged else "not here"
            lines[name] = f"{dataset.family or '-':10} {why}"
    return sorted(lines.items(), key=lambda line: line[0].lower())


def list_names(
    kind: Annotated[str, typer.Argument(help=f"What to list: {', '.join(KINDS)}.")],
    name: Annotated[str | None, typer.Argument(help="One data set: its card, and how to get it.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Read data sets whole, and compare sizes and values.")] = False,
) -> None:
    """List what can be used by name; `dicot list datasets NAME` shows a data set, or how to get it."""
    with opt.checking_options():
        lookup(dict.fromkeys(KINDS), kind, "list")
    if (check or name is not None) and kind != "datasets":
        raise WrongCallError("NAME and --check are for `dicot list datasets`. Leave them out.")
    if check:
        _check(name)
    elif name is not None:
        _show_card(name)
    else:
        for one, text in _entries(kind):
            typer.echo(f"{one:{32 if kind == 'datasets' else 18}} {text}".rstrip())


def _show_card(name: str) -> None:
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


def _check(name: str | None) -> None:
    """Check one data set, or all that are here; one that is wrong does not keep the others from being checked."""
    from dicot.core.progress import Bar
    from dicot.data.datasets import check, on_hand

    here = on_hand()
    names = [name] if name is not None else [*(card.name for card in here.cards), *here.damaged]
    wrong = 0
    with Bar("check", len(names)) as bar:
        for done, one in enumerate(names):
            bar.update(done, one)
            try:
                card = check(one)
                typer.echo(f"{card.name:32} {sizes_text(card)}, fingerprint {card.fingerprint}")
            except DicotError as error:
                if name is not None:
                    raise
                wrong += 1
                typer.secho(f"{one:32} damaged: {error}", fg="red", err=True)
    if wrong:
        raise InputError(f"{wrong} of {len(names)} data sets are not as they should be.")


def sizes_text(card: "Card") -> str:
    return (
        f"{card.n_train} + {card.n_test} cases, {card.n_channels} channel(s), "
        f"{card.n_times or 'unequal'} time steps, {card.n_classes} classes"
    )
