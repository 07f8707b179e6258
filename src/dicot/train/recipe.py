"""How long and how fast to train: the recipe, the paper's own recipe, and the learning rate of a step."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from numbers import Real
from typing import Any

from dicot.core.errors import InputError, is_whole

SCHEDULES = ("per_step", "per_epoch")
PRECISIONS = ("float32", "tf32", "float64")
FAMILIES = ("large", "ucr", "uea")
LONG_CASE = 2000  # time steps; the paper trains its two sets of longer cases (2500, 3000) with batches of 16


@dataclass(frozen=True)
class Recipe:
    """Say how long and how fast to train; the defaults are the paper's.

    Parameters
    ----------
    steps : optimiser steps
    batch_size : cases per step, at most all; the incomplete last batch of an epoch is dropped
    lr, warmup, schedule : "per_step" raises the rate linearly to `lr` over a share `warmup` of the steps and lowers it
        to zero along a half-cosine; "per_epoch" reads the same curve once an epoch, as the authors' code does (D-01). A
        function is given the number of a step, 0, 1, ..., and returns the rate of that step; `lr` and `warmup` are not
        used then
    weight_decay, betas : of AdamW, on every parameter, BatchNorm and biases included; another optimiser has its own
    precision : "float32", "float64", or "tf32", which makes convolutions faster on a GPU and is "float32" elsewhere
    """

    steps: int
    batch_size: int
    lr: float = 3e-4
    weight_decay: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.99)
    warmup: float = 0.1
    schedule: str | Callable[[int], float] = "per_step"
    precision: str = "float32"

    def __post_init__(self) -> None:
        schedule = schedule_name(self.schedule)  # a function has a colon in it
        problems = [
            f"{name} must be {wanted}; got {getattr(self, name)!r}"
            for name, holds, wanted in (
                ("steps", is_whole(self.steps, 0), "a whole number, 0 or more"),
                ("batch_size", is_whole(self.batch_size, 1), "a whole number, 1 or more"),
                ("lr", _is_real(self.lr) and self.lr >= 0, "a finite number, 0 or more"),
                ("warmup", _is_real(self.warmup) and 0 <= self.warmup <= 1, "a share from 0 to 1"),
                ("schedule", schedule in SCHEDULES or ":" in schedule, f"one of {SCHEDULES} or a function of the step"),
                ("precision", self.precision in PRECISIONS, f"one of {PRECISIONS}"),
            )
            if not holds
        ]
        if problems:
            raise InputError("; ".join(problems) + ".")
        # The repr of numpy's numbers differs from that of plain ones, and JSON refuses them.
        for name in ("steps", "batch_size"):
            object.__setattr__(self, name, int(getattr(self, name)))
        for name in ("lr", "weight_decay", "warmup"):
            object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "betas", tuple(self.betas))  # a list in JSON and YAML

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data for files and keys; a schedule that is a function becomes "module:name".

        `Recipe(**settings)` accepts such a text, but cannot be trained with: the function has to be passed again.
        """
        return {**asdict(self), "schedule": schedule_name(self.schedule)}


def schedule_name(schedule: str | Callable[..., Any]) -> str:
    """The schedule as text, a function by its module and qualified name."""
    if isinstance(schedule, str):
        return schedule
    if isinstance(schedule, partial):
        arguments = ", ".join([*map(repr, schedule.args), *(f"{k}={v!r}" for k, v in schedule.keywords.items())])
        return f"{schedule_name(schedule.func)}({arguments})"
    named: Any = schedule if hasattr(schedule, "__qualname__") else type(schedule)
    return f"{named.__module__}:{named.__qualname__}"


def _is_real(value: object) -> bool:
    """Whether a value is a finite number; True and False are not numbers here."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond float64
        return False


def lr_at(step: int, recipe: Recipe, steps_per_epoch: int) -> float:
    """The rate of step 0, 1, ...; the very first step of a warm-up has rate 0, as the authors' has."""
    schedule = recipe.schedule
    if callable(schedule):
        rate = schedule(step)
        if not _is_real(rate) or rate < 0:
            raise InputError(
                f"The schedule must give a finite rate, 0 or more; {schedule_name(schedule)} gave {rate!r} "
                f"for step {step}."
            )
        return float(rate)
    if schedule not in SCHEDULES:
        raise InputError(
            f"This recipe was read from a file, which holds only the name of its schedule, {schedule}. "
            "Pass the function itself: dataclasses.replace(recipe, schedule=...)."
        )
    tick = step if schedule == "per_step" else step // max(1, steps_per_epoch)
    warm = int(recipe.warmup * recipe.steps)
    if tick < warm:
        return recipe.lr * (tick / max(1, warm))
    progress = (tick - warm) / max(1, recipe.steps - warm)
    return recipe.lr * max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))


def paper_recipe(family: str | None, n_cases: int, n_times: int) -> Recipe:
    """The Di-COT paper's budget for a family of data sets; a user's own arrays (None) take the UEA rule."""
    if family is not None and family not in FAMILIES:
        raise InputError(f"family must be one of {FAMILIES} or None; got {family!r}.")
    if family == "large":
        return Recipe(steps=1500, batch_size=16 if n_times >= LONG_CASE else 128)
    steps = 200 if n_cases * n_times <= 100_000 else 600  # D-53: cases x time steps, channels do not count
    return Recipe(steps=steps, batch_size=8)
