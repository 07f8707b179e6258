"""Who takes part in a suite: every registered method, the controls, the baselines, and Di-COT's variants."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dicot.bench.jobs import Contender
from dicot.bench.sets import family_of

RIVAL_OF_SCALE = "catt"
BATCH_SIZES = (8, 16, 32, 64, 128, 256, 512)
SCALING_STEPS = 50  # what a step costs does not need a whole run

# What the paper sets for one data set, beside what it sets for a family.
_EXCEPTIONS: dict[tuple[str, str], dict[str, Any]] = {("catt", "ecg"): {"temperature": 0.5}}

# The rows of the paper's tables, under its own names.
ABLATION: dict[str, dict[str, Any]] = {
    "dicot": {},
    "w/o Overlap": {"overlap": 0.0},
    "w/o Temperature": {"temperature": 1.0},
    "Uniform Splits Sampling -> Global Fixed Splits": {"k": 10},
    "Preceding Sub-block Contrast -> Next Sub-block Contrast": {"positive": "next"},
    "Preceding Sub-block Contrast -> Shuffled Sub-block Contrast": {"positive": "shuffled"},
    "+ Non-linear Projection": {"projection": True},
}
BACKBONES = {"InceptionTime -> FCN": "fcn", "InceptionTime -> ResNet": "resnet"}
EXTENDED: dict[str, dict[str, Any]] = {
    **{f"Temperature \\tau -> {value}": {"temperature": value} for value in (0.07, 0.1, 0.5, 1.0)},
    **{f"Overlap -> {value:.0%}": {"overlap": value} for value in (0.0, 0.25, 0.5, 0.75)},
    **{f"Global Fixed Splits (k) -> {k}": {"k": k} for k in (2, 5, 10, 15)},
    **{f"Uniform Splits Sampling (k_{{max}}) -> {k}": {"k": (2, k)} for k in (5, 10, 15, 20)},
}
POSITIVES: dict[str, dict[str, Any]] = {
    "Preceding Sub-block": {"positive": "previous"},
    "Next Sub-block": {"positive": "next"},
    "Bidirectional (Preceding + Next)": {"positive": "both"},
}


@dataclass(frozen=True)
class Entry:
    """A contender of a suite and how it is scored there."""

    contender: Contender
    protocols: tuple[str, ...]


def methods(*protocols: str, labelled: bool = False) -> list[Entry]:
    """Every method that learns without labels; with `labelled` also those that need them."""
    from dicot.methods import METHODS

    return [
        Entry(Contender(name, name), protocols)
        for name, method in METHODS.items()
        if labelled or not method.needs_labels
    ]


def controls(*protocols: str) -> list[Entry]:
    from dicot.controls import CONTROLS

    return [Entry(Contender(name, name), protocols) for name in CONTROLS]


def classical(*protocols: str, rocket: tuple[str, ...] = (), raw: tuple[str, ...] = ()) -> list[Entry]:
    """The baselines; MiniRocket and the raw features may have protocols of their own beside those of all."""
    from dicot.classical import CLASSICAL, RAW_FEATURES

    return [
        Entry(Contender(name, name), (*protocols, *(raw if name in RAW_FEATURES else rocket))) for name in CLASSICAL
    ]


def end_to_end(protocol: str) -> list[Entry]:
    """Fine-tuning an encoder that nothing was done to is training it from scratch with labels."""
    return [Entry(Contender("end-to-end", "random"), (protocol,))]


def variants(rows: Mapping[str, Mapping[str, Any]], *protocols: str) -> list[Entry]:
    return [Entry(Contender(name, "dicot", params), protocols) for name, params in rows.items()]


def backbones(*protocols: str) -> list[Entry]:
    return [Entry(Contender(name, "dicot", {}, {"encoder": key}), protocols) for name, key in BACKBONES.items()]


def batch_sizes(*protocols: str) -> list[Entry]:
    """Di-COT and the rival whose cost grows with the square of the batch."""
    return [
        Entry(Contender(name, name, {}, {"batch_size": size, "steps": SCALING_STEPS}), protocols)
        for name in ("dicot", RIVAL_OF_SCALE)
        for size in BATCH_SIZES
    ]


def own_params(contender: Contender, source: str) -> dict[str, Any]:
    """What differs from what the method would use on this data set anyway: equal settings get equal keys."""
    from dicot.methods import METHODS

    if contender.kind not in METHODS:
        return {}
    method, family = METHODS[contender.kind], family_of(source)
    usual = {name: parameter.default for name, parameter in inspect.signature(method).parameters.items()}
    by_family = method.paper_params(family)
    # A set of unknown family may turn out to have one when it is loaded: what depends on it stays said.
    usual |= dict.fromkeys(by_family) if family is None else by_family
    wanted = {**_EXCEPTIONS.get((contender.kind, source), {}), **contender.method_params}
    return {name: value for name, value in wanted.items() if usual.get(name) != value}
