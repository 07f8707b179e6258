"""The shapes that are measured, and how much is measured of each."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bench import options
from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.train import Recipe, paper_recipe

N_CASES = 1024  # as many as the plain loop draws from
N_CLASSES = 4  # random labels, for the one method that needs some
HEAVY_ON_CPU = 10_000  # time steps of a batch; a plain step then takes many seconds


class Shape(NamedTuple):
    """What decides the cost of a step."""

    batch: int
    n_times: int
    n_channels: int

    def __str__(self) -> str:
        return ", ".join(map(str, self))

    @property
    def family(self) -> str:
        """Whose recipe of the paper applies: batches of 8 are the archives', all others the large sets'."""
        if self.batch > 8:
            return "large"
        return "ucr" if self.n_channels == 1 else "uea"

    def recipe(self, precision: str) -> Recipe:
        """The paper's recipe with this shape's batch."""
        recipe = paper_recipe(self.family, N_CASES, self.n_times)
        return replace(recipe, batch_size=self.batch, precision=precision)

    def windows(self, n_cases: int = N_CASES) -> Windows:
        """Noise with random labels."""
        rng = np.random.default_rng(0)
        n_cases = max(n_cases, self.batch)
        x = rng.standard_normal((n_cases, self.n_channels, self.n_times), dtype=np.float32)
        return Windows(x, rng.integers(N_CLASSES, size=n_cases), name=f"noise {self}")


CPU = (Shape(8, 24, 1), Shape(8, 150, 1), Shape(8, 100, 6), Shape(128, 500, 6))
CUDA = (
    Shape(8, 150, 1),
    Shape(8, 1000, 3),
    Shape(8, 100, 6),
    Shape(128, 500, 6),
    Shape(128, 100, 52),
    Shape(128, 40, 3),
    Shape(128, 50, 60),
    Shape(16, 3000, 1),
    Shape(16, 2500, 2),
)
METHOD_SHAPES = (Shape(8, 150, 1), Shape(128, 100, 6))


def parse_shape(text: str) -> Shape:
    """Read batch, time steps and channels, as in "8,150,1"."""
    numbers = options.shape(text)
    if len(numbers) != 3 or numbers[0] < 2 or numbers[1] < 12 or numbers[2] < 1:
        raise InputError(
            "A shape is batch,time steps,channels such as 8,150,1, with a batch of 2 or more, "
            f"12 time steps or more and a channel or more; got {text!r}."
        )
    return Shape(*numbers)


@dataclass(frozen=True)
class Effort:
    """How much is measured: turns of the plain loop and of ours, and the steps in each.

    `warm_up` steps of a turn do not count and `steps` do. Only the first `runs` turns have a run of ours, of `length`
    steps (None: warm-up and steps). `checked` losses are compared with eager float32. On a busy machine no further
    turn begins once `seconds` have passed.
    """

    turns: int
    warm_up: int
    steps: int
    checked: int
    runs: int
    length: int | None = None
    seconds: float = math.inf

    @property
    def run_length(self) -> int:
        return self.length or self.warm_up + self.steps


def effort_for(shape: Shape, kind: str, methods: bool = False) -> Effort:
    """Many short turns on a CPU, whose speed drifts; one run of the paper's length on a GPU."""
    if kind == "cuda":
        if methods:
            return Effort(turns=2, warm_up=3, steps=10, checked=0, runs=1, length=200)
        length = shape.recipe("float32").steps
        return Effort(turns=2, warm_up=10, steps=20, checked=50, runs=1, length=length)
    if shape.batch * shape.n_times > HEAVY_ON_CPU:
        return Effort(turns=2, warm_up=1, steps=2, checked=0 if methods else 3, runs=2)
    if methods:
        return Effort(turns=2, warm_up=2, steps=5, checked=0, runs=2)
    return Effort(turns=5, warm_up=2, steps=8, checked=50, runs=5, seconds=20)
