"""Plain and ours in short turns, so that both see the same machine; the ratio is that of the medians."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from dicot.encoders import InceptionTime
from dicot.methods import Method, build_method
from dicot.speed.ours import Seconds, counts, dicot, fresh_start, our_seconds
from dicot.speed.plain import plain_seconds, plain_settings
from dicot.speed.reference import Definition, plain_pretrain
from dicot.speed.shapes import Effort, Shape
from dicot.train import Recipe


@dataclass(frozen=True)
class Pair:
    """Seconds of a step. `all_in` has the whole run divided by its steps, with whatever was built on the way."""

    plain: float
    ours: float
    all_in: float
    length: int  # steps of our run

    def ratio(self, kind: str) -> float:
        """What counts: on a GPU the run as a whole, on a CPU, where nothing is built, the steps."""
        return self.plain / (self.all_in if kind == "cuda" else self.ours)


def in_turns(
    plain: Callable[[int], list[float]], ours: Callable[[int], Seconds], effort: Effort, on_turn: Callable[[], None]
) -> Pair:
    """Each is called with the number of the turn, which serves as seed."""
    theirs: list[float] = []
    runs: list[Seconds] = []
    started = time.monotonic()
    for turn in range(effort.turns):
        if turn > 1 and time.monotonic() - started > effort.seconds:
            break
        theirs += plain(turn)[effort.warm_up :]
        if turn < effort.runs:
            runs.append(ours(turn))
        on_turn()
    length = run_length(effort)
    steps = [seconds for run in runs for seconds in run.steps]
    all_in = statistics.median(run.total for run in runs) / length
    return Pair(statistics.median(theirs), statistics.median(steps), all_in, length)


def run_length(effort: Effort) -> int:
    """Steps of one of our runs."""
    return effort.length or effort.warm_up + effort.steps


def time_shape(shape: Shape, precision: str, device: str, effort: Effort, on_turn: Callable[[], None]) -> Pair:
    """Di-COT by the plain loop and by `pretrain`, with the same data and the same draws of k."""
    train, recipe = shape.windows(), replace(shape.recipe(precision), steps=run_length(effort))

    def plain(turn: int) -> list[float]:
        fresh_start(device)
        return plain_seconds(train.x, shape.batch, counts(turn, effort.warm_up + effort.steps), device, seed=turn)

    def ours(turn: int) -> Seconds:
        return our_seconds(dicot, train, recipe, device, warm_up=effort.warm_up, seed=turn)

    return in_turns(plain, ours, effort, on_turn)


def time_method(
    name: str, shape: Shape, precision: str, device: str, effort: Effort, on_turn: Callable[[], None]
) -> Pair:
    """A method of the registry by its plain loop and by `pretrain`."""
    train = shape.windows()
    recipe: Recipe = replace(shape.recipe(precision), steps=run_length(effort))

    def make(n_channels: int) -> Method:
        return build_method(name, InceptionTime(n_channels), {})

    def plain(turn: int) -> list[float]:
        fresh_start(device)
        steps = effort.warm_up + effort.steps
        with plain_settings(turn):
            method = build_method(name, Definition(shape.n_channels), {})
            return plain_pretrain(method, train, recipe, seed=turn, device=device, steps=steps)[1]

    def ours(turn: int) -> Seconds:
        return our_seconds(make, train, recipe, device, warm_up=effort.warm_up, seed=turn)

    return in_turns(plain, ours, effort, on_turn)
