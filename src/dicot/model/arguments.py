"""The settings of an estimator in two forms: grouped, as its arguments are, and flat, as files and keys have them.

A flat setting such as `pooling` is an entry of one argument: `features={"pooling": "max"}`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

from dicot.core.errors import InputError, did_you_mean
from dicot.model.presets import FEATURES
from dicot.train import Recipe

P = ParamSpec("P")
PREPARE = ("layout", "unequal", "missing", "scale")
GROUPS = ("features", "prepare", "recipe")
# A flat name -> its argument, and its name there. Arguments were flat before they were grouped.
PLACES = {
    **{name: ("features", name) for name in FEATURES},
    "embed_precision": ("features", "precision"),
    **{name: ("prepare", name) for name in PREPARE},
    **{name: ("recipe", name) for name in ("batch_size", "lr", "schedule", "precision")},
}
USUAL = {"embed_precision": "float32", "layout": "nct", "unequal": "error", "missing": "error"}  # the others: None


def grouped(settings: Mapping[str, Any], groups: Sequence[str] = GROUPS) -> dict[str, Any]:
    """Return flat settings as arguments of an estimator that has these groups; what is usual is left out."""
    moved = {name: value for name, value in settings.items() if PLACES.get(name, ("",))[0] in groups}
    arguments = {name: value for name, value in settings.items() if name not in moved}
    for name, value in moved.items():
        if value != USUAL.get(name):
            group, own = PLACES[name]
            there = arguments.get(group) or {}
            arguments[group] = {**(vars(there) if isinstance(there, Recipe) else there), own: value}
    return arguments


def flat(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an estimator as flat settings, all of them."""
    settings = {name: value for name, value in arguments.items() if name not in ("features", "prepare")}
    for name, (group, own) in PLACES.items():
        if group in arguments:
            given = arguments[group] if isinstance(arguments[group], Mapping) else {}
            settings[name] = given.get(own, settings.get(name, USUAL.get(name)))
    if isinstance(recipe := arguments.get("recipe"), Mapping):
        settings["recipe"] = {name: value for name, value in recipe.items() if name not in PLACES} or None
    return settings


def moved_arguments(init: Callable[P, None]) -> Callable[P, None]:
    """Let a constructor answer an argument that was moved into another one with its new place."""
    known = signature(init).parameters

    @wraps(init)
    def checked(*given: P.args, **arguments: P.kwargs) -> None:
        for name in arguments.keys() & PLACES.keys() - known.keys():
            group, own = PLACES[name]
            raise InputError(f"The argument {name} is now a part of {group}: {group}={{{own!r}: {arguments[name]!r}}}.")
        init(*given, **arguments)

    return checked


def entries(argument: str, given: Any, known: Sequence[str]) -> dict[str, Any]:
    """Return the entries of an argument that is a mapping or None; refuse other names than the known ones."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{argument} must be a mapping, such as {{{known[0]!r}: ...}}; got {given!r}.")
    for name in given or {}:
        if name not in known:
            raise InputError(f"{argument} has no {name!r}. {did_you_mean(str(name), known)}")
    return {name: value for name, value in (given or {}).items() if value is not None}


def merge_recipe(usual: Recipe, recipe: Recipe | Mapping[str, Any] | None, steps: int | None) -> Recipe:
    """Return the usual recipe, overruled by `recipe`, overruled by `steps`."""
    if isinstance(recipe, Recipe):
        usual, recipe = recipe, None
    settings = entries("recipe", recipe, [field.name for field in fields(Recipe)])
    if isinstance(settings.get("betas"), list):  # as JSON and YAML have it
        settings["betas"] = tuple(settings["betas"])
    return replace(usual, **{**settings, **({} if steps is None else {"steps": steps})})
