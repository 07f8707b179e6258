"""dicot list: every registry, one line per entry."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from dicot.core.errors import lookup

Lines = Iterable[tuple[str, str]]  # name and description


def _methods() -> Lines:
    from dicot.methods import METHODS

    return [(name, f"{kind.summary} | {kind.paper} | {kind.complexity}") for name, kind in METHODS.items()]


def _presets() -> Lines:
    from dicot.model.presets import DEFAULT_PRESET, METHOD_PRESET, PRESETS

    notes = {METHOD_PRESET: "; the default where a method is named", DEFAULT_PRESET: "; the default"}
    return [(name, f"{preset.method}: {preset.summary}{notes.get(name, '')}") for name, preset in PRESETS.items()]


def _controls() -> Lines:
    from dicot.judge.classical import CLASSICAL
    from dicot.model.controls import CONTROLS

    return [(name, _first_line(kind)) for name, kind in {**CONTROLS, **CLASSICAL}.items()]


def _encoders() -> Lines:
    from dicot.nets.encoders import ENCODERS

    return [(name, _first_line(kind)) for name, kind in ENCODERS.items()]


def _poolings() -> Lines:
    from dicot.model.embedding import POOLINGS

    return [(name, pooling.summary) for name, pooling in POOLINGS.items()]


def _protocols() -> Lines:
    from dicot.judge.evaluation import every_protocol

    return [(name, make().description) for name, make in every_protocol().items()]


def _datasets() -> Lines:
    from dicot.cli.data import sizes
    from dicot.data.datasets import on_hand

    cards, damaged = on_hand()
    here = [(card.name, f"{card.family or '-':10} {sizes(card)}") for card in cards]
    return [*here, *((name, f"damaged: {why}") for name, why in damaged.items())]


def _suites() -> Lines:
    from dicot.judge.bench.suites import SUITES
    from dicot.paper import suites  # noqa: F401  (adds the paper's)

    return [(name, _first_line(suite)) for name, suite in SUITES.items()]


def _first_line(entry: Any) -> str:
    return next(iter((entry.__doc__ or "").splitlines()), "")


LISTS: dict[str, Callable[[], Lines]] = {
    "methods": _methods,
    "presets": _presets,
    "controls": _controls,
    "encoders": _encoders,
    "poolings": _poolings,
    "protocols": _protocols,
    "datasets": _datasets,
    "suites": _suites,
}


def list_names(
    kind: Annotated[str, typer.Argument(help=f"What to list: {', '.join(LISTS)}.")],
) -> None:
    """List what can be used by name; of data sets those that are on this machine."""
    for name, text in lookup(LISTS, kind, "list")():
        typer.echo(f"{name:18} {text}".rstrip())
