"""dicot list: every registry, one line per entry."""

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli.settings import checking_options
from dicot.core.errors import DicotError, InputError, WrongCallError, lookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dicot.data.datasets import Card

    Entries = Iterable[tuple[str, str]]  # name and what is said of it


def _models() -> "Entries":
    from dicot.model.box import BOX
    from dicot.model.universal import CARD

    for name, path in BOX.items():
        paragraphs = (path / CARD).read_text("utf-8").split("\n\n")
        yield name, " ".join(paragraphs[1].split())


def _methods() -> "Entries":
    from dicot.methods import METHODS

    for name, method in METHODS.items():
        yield name, f"{method.summary} | {method.paper} | {method.complexity}"


def _presets() -> "Entries":
    from dicot.model.presets import DEFAULT_PRESET, METHOD_PRESET, PRESETS

    notes = {METHOD_PRESET: "; the default where a method is named", DEFAULT_PRESET: "; the default"}
    for name, preset in PRESETS.items():
        yield name, f"{preset.method}: {preset.summary}{notes.get(name, '')}"


def _controls() -> "Entries":
    from dicot.judge.classical import CLASSICAL
    from dicot.model.controls import CONTROLS

    return first_lines({**CONTROLS, **CLASSICAL})


def _encoders() -> "Entries":
    from dicot.nets.encoders import ENCODERS

    return first_lines(ENCODERS)


def _poolings() -> "Entries":
    from dicot.model.embedding import POOLINGS

    for name, pooling in POOLINGS.items():
        yield name, pooling.summary


def _protocols() -> "Entries":
    from dicot.judge.protocols import every_protocol

    for name, make in every_protocol().items():
        yield name, make().description


def first_lines(registry: "Mapping[str, Any]") -> "Entries":
    """Return the first line of each entry's docstring."""
    for name, entry in registry.items():
        lines = (entry.__doc__ or "").splitlines()
        yield name, lines[0] if lines else ""


def _datasets() -> "Entries":
    """All data sets that are known, here or not; a damaged one says what is wrong with it."""
    from dicot.data.datasets import DATASETS, on_hand

    cards, damaged = on_hand()
    lines = {card.name: f"{card.family or '-':10} {sizes_text(card)}" for card in cards}
    for name, dataset in DATASETS.items():
        if name in damaged or (name not in lines and not dataset.is_here()):
            why = f"damaged: {damaged[name]}" if name in damaged else "not here"
            lines[name] = f"{dataset.family or '-':10} {why}"
    yield from sorted(lines.items(), key=lambda line: line[0].lower())


KINDS: dict[str, Callable[[], "Entries"]] = {
    "models": _models,
    "methods": _methods,
    "presets": _presets,
    "controls": _controls,
    "encoders": _encoders,
    "poolings": _poolings,
    "protocols": _protocols,
    "datasets": _datasets,
}


def list_names(
    kind: Annotated[str, typer.Argument(help=f"What to list: {', '.join(KINDS)}.")],
    name: Annotated[str | None, typer.Argument(help="One data set: its card, and how to get it.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Read data sets whole, and compare sizes and values.")] = False,
) -> None:
    """List what can be used by name; `dicot list datasets NAME` shows a data set, or how to get it."""
    with checking_options():
        entries = lookup(KINDS, kind, "list")
    if (check or name is not None) and kind != "datasets":
        raise WrongCallError("NAME and --check are for `dicot list datasets`. Leave them out.")
    if check:
        _check(name)
    elif name is not None:
        _show_card(name)
    else:
        width = 32 if kind == "datasets" else 18
        for entry, text in entries():
            typer.echo(f"{entry:{width}} {text}".rstrip())


def _show_card(name: str) -> None:
    from dicot.data.datasets import DATASETS

    dataset = DATASETS.find(name)
    card = dataset.card()
    for field in fields(card):
        value = getattr(card, field.name)
        if value not in (None, "", (), {}):
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            typer.echo(f"{field.name:24} {text}")
    if dataset.paper_sizes is not None:
        sizes = dataset.paper_sizes._asdict()
        stated = [f"{kind} {size}" for kind, size in sizes.items() if size is not None]
        typer.echo(f"{'in the paper':24} {', '.join(stated)}")


def _check(name: str | None) -> None:
    """Check one data set, or all that are here; one that is wrong does not keep the others from being checked."""
    from dicot.core.progress import Bar
    from dicot.data.datasets import check, on_hand

    here = on_hand()
    names = [name] if name is not None else [*(card.name for card in here.cards), *here.damaged]
    wrong = 0
    with Bar("check", len(names)) as bar:
        for done, checked in enumerate(names):
            bar.update(done, checked)
            try:
                card = check(checked)
                typer.echo(f"{card.name:32} {sizes_text(card)}, fingerprint {card.fingerprint}")
            except DicotError as error:
                if name is not None:
                    raise
                wrong += 1
                typer.secho(f"{checked:32} damaged: {error}", fg="red", err=True)
    if wrong:
        raise InputError(f"{wrong} of {len(names)} data sets are not as they should be.")


def sizes_text(card: "Card") -> str:
    return (
        f"{card.n_train} + {card.n_test} cases, {card.n_channels} channel(s), "
        f"{card.n_times or 'unequal'} time steps, {card.n_classes} classes"
    )
