"""How long and how fast to train: the recipe, the paper's own recipe, and the learning rate of a step."""

import math
from dataclasses import dataclass
from numbers import Real

from dicot.errors import InputError, is_whole

SCHEDULES = ("per_step", "per_epoch")
PRECISIONS = ("float32", "tf32", "float64")
FAMILIES = ("large", "ucr", "uea")
LONG_CASE = 2000  # time steps; the paper trains its two sets of longer cases (2500, 3000) with batches of 16


@dataclass(frozen=True)
class Recipe:
    """AdamW with linear warm-up and a half-cosine to zero; the defaults are the paper's."""

    steps: int
    batch_size: int
    lr: float = 3e-4
    weight_decay: float = 3e-4  # on every parameter, BatchNorm and biases included
    betas: tuple[float, float] = (0.9, 0.99)
    warmup: float = 0.1  # share of the steps
    schedule: str = "per_step"  # "per_epoch" is what the authors' code does (D-01)
    precision: str = "float32"  # "tf32": faster convolutions on a GPU, the same elsewhere
    temperature: float = 0.07  # the paper's per family; a method without one ignores it

    def __post_init__(self) -> None:
        betas = self.betas if isinstance(self.betas, tuple) else ()
        problems = [
            f"{name} must be {wanted}; got {getattr(self, name)!r}"
            for name, holds, wanted in (
                ("steps", is_whole(self.steps, 0), "a whole number, 0 or more"),
                ("batch_size", is_whole(self.batch_size, 1), "a whole number, 1 or more"),
                ("lr", _is_real(self.lr) and self.lr >= 0, "a finite number, 0 or more"),
                ("weight_decay", _is_real(self.weight_decay) and self.weight_decay >= 0, "a finite number, 0 or more"),
                ("betas", len(betas) == 2 and all(_is_real(b) and 0 <= b < 1 for b in betas), "two shares below 1"),
                ("warmup", _is_real(self.warmup) and 0 <= self.warmup <= 1, "a share from 0 to 1"),
                ("schedule", self.schedule in SCHEDULES, f"one of {SCHEDULES}"),
                ("precision", self.precision in PRECISIONS, f"one of {PRECISIONS}"),
                ("temperature", _is_real(self.temperature) and self.temperature > 0, "a finite number above 0"),
            )
            if not holds
        ]
        if problems:
            raise InputError("; ".join(problems) + ".")
        # numpy's numbers have another repr, and JSON knows none of them.
        for name in ("steps", "batch_size"):
            object.__setattr__(self, name, int(getattr(self, name)))
        for name in ("lr", "weight_decay", "warmup", "temperature"):
            object.__setattr__(self, name, float(getattr(self, name)))


def _is_real(value: object) -> bool:
    """Whether a parameter is a finite number; True is none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def lr_at(step: int, recipe: Recipe, steps_per_epoch: int) -> float:
    """The rate of step 0, 1, ...; the very first step of a warm-up has rate 0, as the authors' has."""
    tick = step if recipe.schedule == "per_step" else step // max(1, steps_per_epoch)
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
    return Recipe(steps=steps, batch_size=8, temperature=1.0 if family == "ucr" else 0.07)
