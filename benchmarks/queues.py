"""Tasks that go through queues, event by event: which of them holds the others up, and how long all take."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

ENOUGH = 4  # tasks for each slot that are simulated, and no fewer than FEWEST; the rest goes on at their rate
FEWEST = 1000


@dataclass
class Pool:
    """Servers of one kind, each of which serves whoever comes first."""

    count: int
    busy: float = 0.0
    free: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = [0.0] * self.count

    def serve(self, number: int, at: float, seconds: float) -> float:
        """Return when somebody who comes at this time is done."""
        done = max(at, self.free[number % self.count]) + seconds
        self.free[number % self.count] = done
        self.busy += seconds
        return done


class Phase(NamedTuple):
    """What a task asks of a pool."""

    pool: str
    seconds: float


class Flow(NamedTuple):
    """How long all tasks took, and which share of that each pool was busy."""

    seconds: float
    use: dict[str, float]

    @property
    def bottleneck(self) -> str:
        name = max(self.use, key=self.use.__getitem__)
        return f"{name}, {100 * self.use[name]:.0f} % busy"


def flow(tasks: int, slots: int, phases: Sequence[Phase], pools: dict[str, Pool], seed: int = 0) -> Flow:
    """Let slots take task after task, each through its phases; the times of a phase differ by up to a fifth."""
    dice = np.random.default_rng(seed)
    shown = min(tasks, max(FEWEST, ENOUGH * slots))
    slots = min(slots, shown)
    events = [(0.0, slot, 0) for slot in range(slots)]
    begun, ends = slots, []
    factors = iter(dice.uniform(0.8, 1.2, shown * len(phases)))
    while events:
        at, slot, phase = heapq.heappop(events)
        pool, seconds = phases[phase]
        at = pools[pool].serve(slot, at, seconds * float(next(factors)))
        if phase + 1 < len(phases):
            heapq.heappush(events, (at, slot, phase + 1))
            continue
        ends.append(at)
        if begun < shown:
            begun += 1
            heapq.heappush(events, (at, slot, 0))
    ends.sort()
    use = {name: pool.busy / (pool.count * ends[-1]) for name, pool in pools.items()}
    if tasks == shown:
        return Flow(ends[-1], use)
    first, last = ends[shown // 5], ends[4 * shown // 5]  # neither the start nor the end
    each = (last - first) / (4 * shown // 5 - shown // 5)
    return Flow(ends[-1] + (tasks - shown) * each, use)
