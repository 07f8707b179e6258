"""Many runs at once on one device: small ones leave a GPU mostly idle."""

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from dicot.core.device import (
    FIXED,
    float32_arithmetic,
    free_bytes,
    out_of_memory,
    release_memory,
    resolve_device,
    taken_bytes,
)
from dicot.core.errors import InputError
from dicot.core.processes.ranks import current_ranks
from dicot.train.batches import OwnDraws
from dicot.train.loop import TrainingRun, own_stream, persistent
from dicot.train.record import History, Reporter

log = logging.getLogger(__name__)
AT_ONCE = 8  # more runs than this gained nothing
TURN = 8  # steps that a run sends to the device before it is the next one's turn
SHARE = 0.9  # of the memory that is free at the start


class _Active(NamedTuple):
    """A run that is under way."""

    number: int
    steps: Generator[None, None, History]
    draws: OwnDraws
    lane: Any  # given back at the end


def pretrain_many(
    runs: Sequence[TrainingRun],
    *,
    device: str | torch.device = "auto",
    at_once: int = AT_ONCE,
    on_run: Callable[[int, History], None] | None = None,
    on_error: Callable[[int, Exception], None] | None = None,
) -> list[History | None]:
    """Train every run in place, several at a time on a GPU, the largest first, one after the other on a CPU.

    A run draws and computes what it does alone (see `pretrain`). A history's seconds are those of the run's own turns,
    `prepare` included, so that they add up to those of the whole call; seconds before a resumption do not count.
    `on_run` is told the number of a run that has ended, and its history. With `on_error`, which is told the number of a
    run that failed and why, the others go on and the failed one has no history; without it the first failure is raised.

    On a GPU up to `at_once` runs share nine tenths of the memory that is free: as long as there is room a further one
    is started. A run that needs more than there is beside others is begun anew later, with fewer at once
    from then on; alone it is begun anew op by op. If that fails as well, it is an error of that run.
    """
    if current_ranks().several:
        raise InputError("Many runs at once are trained in one process. Call this outside of join_ranks.")
    device = resolve_device(device)
    release_memory(device)
    memory = int(SHARE * free_bytes(device))
    histories: dict[int, History] = {}
    for precision in sorted({run.recipe.precision for run in runs}):  # a setting of the whole process
        chosen = {number: run for number, run in enumerate(runs) if run.recipe.precision == precision}
        # A stream for each of the runs that may be under way at once.
        lanes = [own_stream(device) for _ in range(at_once if device.type == "cuda" else 1)]
        with float32_arithmetic(device, fast=precision == "tf32"):
            for number, outcome in _together(chosen, device, lanes, memory):
                if isinstance(outcome, History):
                    histories[number] = outcome
                    if on_run:
                        on_run(number, outcome)
                elif on_error:
                    on_error(number, outcome)
                else:
                    raise outcome
    return [histories.get(number) for number in range(len(runs))]


def _together(
    runs: Mapping[int, TrainingRun], device: torch.device, lanes: list[Any], memory: int
) -> Iterator[tuple[int, History | Exception]]:
    """Train all runs, and give the number and the result of each as it ends.

    What a run takes is measured, and what others take is judged by that: their training set, and per time step of a
    batch as much as the most demanding run so far.
    """
    waiting, active = deque(runs), deque[_Active]()
    sizes = {number: run.size(device) for number, run in runs.items()}
    reporters = {number: Reporter(run.on_step, run.recipe.steps) for number, run in runs.items()}
    if len(lanes) > 1:  # what the largest takes is known first, and it does not end long after the others
        waiting = deque(sorted(runs, key=lambda number: sizes[number][1], reverse=True))
    most, full, per_time_step = len(lanes), False, 0.0
    seconds = dict.fromkeys(runs, 0.0)

    def need(number: int) -> int:
        n_bytes, n_times = sizes[number]
        return FIXED + n_bytes + int(per_time_step * n_times)

    def has_room(number: int) -> bool:
        if need(number) + sum(need(other.number) for other in active) > memory:
            return False
        if need(number) > free_bytes(device):
            release_memory(device)  # of runs that have ended
        return need(number) <= free_bytes(device)

    while waiting or active:
        if waiting and active and len(active) < most and not full:
            full = not has_room(waiting[0])
        if waiting and len(active) < most and not full:
            number = waiting.popleft()
            steps = persistent(runs[number], device, "auto", reporters[number], alone=lambda: not active)
            current, is_new = _Active(number, steps, OwnDraws(device), lanes.pop()), True
        else:
            current, is_new = active.popleft(), False
        before = taken_bytes(device)
        started = time.perf_counter()
        outcome: History | Exception | None
        try:
            with current.lane, current.draws:
                for _ in range(TURN):
                    next(current.steps)
            outcome = None
        except StopIteration as end:
            outcome = end.value
        except Exception as error:
            outcome = error
        seconds[current.number] += time.perf_counter() - started
        if is_new and not isinstance(outcome, Exception):
            n_bytes, n_times = sizes[current.number]
            per_time_step = max(per_time_step, (taken_bytes(device) - before - n_bytes - FIXED) / n_times)
        if outcome is None:
            active.append(current)
            continue
        lanes.append(current.lane)
        full = False  # perhaps no longer
        if isinstance(outcome, Exception) and out_of_memory(outcome):
            most = len(active)
            waiting.appendleft(current.number)
            log.warning("memory does not suffice for %d runs at once; at most %d from now on", most + 1, most)
            release_memory(device)
            continue
        if isinstance(outcome, History):
            outcome.seconds = seconds[current.number]
        yield current.number, outcome
