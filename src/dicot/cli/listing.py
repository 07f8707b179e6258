"""dicot list: what there is by name."""

from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """What can be listed."""

    methods = "methods"
    controls = "controls"
    encoders = "encoders"
    poolings = "poolings"
    protocols = "protocols"
    datasets = "datasets"
    suites = "suites"


def list_names(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """List methods, controls and classical baselines, encoders, poolings, protocols, the data sets at hand, or suites."""
    for name, text in {
        Kind.methods: _methods,
        Kind.controls: _controls,
        Kind.encoders: _encoders,
        Kind.poolings: _poolings,
        Kind.protocols: _protocols,
        Kind.datasets: _datasets,
        Kind.suites: _suites,
    }[kind]():
        typer.echo(f"{name:18} {text}")


def _methods() -> list[tuple[str, str]]:
    from dicot.methods import METHODS

    return [(name, f"{kind.summary} | {kind.paper} | {kind.complexity}") for name, kind in METHODS.items()]


def _controls() -> list[tuple[str, str]]:
    from dicot.classical import CLASSICAL
    from dicot.controls import CONTROLS

    return [(name, (kind.__doc__ or "").splitlines()[0]) for name, kind in {**CONTROLS, **CLASSICAL}.items()]


def _encoders() -> list[tuple[str, str]]:
    from dicot.encoders import ENCODERS

    return [(name, (kind.__doc__ or "").splitlines()[0]) for name, kind in ENCODERS.items()]


def _poolings() -> list[tuple[str, str]]:
    from dicot.embedding import POOLINGS

    return [(name, pooling.summary) for name, pooling in POOLINGS.items()]


def _protocols() -> list[tuple[str, str]]:
    from dicot.bench.model_protocols import every_protocol

    return [(name, make().description) for name, make in every_protocol().items()]


def _datasets() -> list[tuple[str, str]]:
    from dicot.datasets import on_hand

    held = on_hand()
    sound = [
        (
            card.name,
            f"{card.family or '-':10} {card.n_train} + {card.n_test} cases, {card.n_channels} channel(s), "
            f"{card.n_times or 'unequal'} time steps, {card.n_classes} classes",
        )
        for card in held.cards
    ]
    return [*sound, *((name, f"damaged: {why}") for name, why in held.damaged.items())]


def _suites() -> list[tuple[str, str]]:
    from dicot.bench.suites import SUITES

    return [(name, (suite.__doc__ or "").splitlines()[0]) for name, suite in SUITES.items()]
