"""Timing a call by the clock and by the processor."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Cost(NamedTuple):
    """Milliseconds of a call.

    On a machine that others use too, the shortest time by the clock and the time of the processor tell most.
    """

    median: float
    shortest: float
    processor: float  # the median over calls, all threads together


def cost(run: Callable[[], object], seconds: float = 2.0, fewest: int = 10) -> Cost:
    """Call again and again for some seconds, after two calls that are not counted."""
    run()
    run()
    by_clock: list[float] = []
    by_processor: list[float] = []
    started = time.perf_counter()
    while len(by_clock) < fewest or time.perf_counter() - started < seconds:
        clock, processor = time.perf_counter(), time.process_time()
        run()
        by_clock.append(1000 * (time.perf_counter() - clock))
        by_processor.append(1000 * (time.process_time() - processor))
    return Cost(float(np.median(by_clock)), min(by_clock), float(np.median(by_processor)))


def shortest(work: Callable[[], object], clock: Callable[[], float], repeats: int) -> float:
    """Seconds of the fastest of some repetitions, after one that is not counted."""
    work()
    seconds = []
    for _ in range(repeats):
        started = clock()
        work()
        seconds.append(clock() - started)
    return min(seconds)
