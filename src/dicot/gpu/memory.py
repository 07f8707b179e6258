"""What runs take of a GPU's memory, and whether there is room for one more."""

import sys
from collections.abc import Iterable

import torch

from dicot.errors import InputError
from dicot.gpu.device import release_memory

Size = tuple[int, int]
SHARE = 0.9  # of what is free at the start, unless the caller says how much
FIXED = 2**28  # bytes that a run of any size takes: scratch memory of cuBLAS, the smallest pieces that torch asks for


def out_of_memory(error: BaseException) -> bool:
    """Whether it says that a GPU's memory does not suffice: torch, CUDA and its libraries each have their own words."""
    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and ("out of memory" in text or "alloc_failed" in text)
    )


def held_bytes(place: torch.device) -> int:
    """What torch holds of a GPU's memory, in use or not."""
    return torch.cuda.memory_reserved(place) if place.type == "cuda" else 0


def free_bytes(place: torch.device) -> int:
    """What torch may still take of a GPU: what is left, or of the share that this process may have (see torch)."""
    if place.type != "cuda":
        return sys.maxsize
    free, total = torch.cuda.mem_get_info(place)
    share = torch.cuda.get_per_process_memory_fraction(torch.cuda.current_device() if place.index is None else place)
    return min(free, int(share * total) - held_bytes(place))


class Room:
    """The memory that the runs of a call share.

    What a run takes is measured, and what others take is judged by that: their training set, and per time step of a
    batch as much as the most demanding run so far. A size is (bytes of the training set, time steps of a batch).
    """

    def __init__(self, place: torch.device, memory: int | None) -> None:
        if memory is not None and memory < 1:
            raise InputError(f"memory is a number of bytes, 1 or more; got {memory}.")
        release_memory(place)
        self.place, self.before = place, held_bytes(place)
        self.total = int(SHARE * free_bytes(place)) if memory is None else memory
        self.per_time_step = 0.0

    def need(self, size: Size) -> int:
        """What a run of this size is expected to take."""
        n_bytes, n_times = size
        return FIXED + n_bytes + int(self.per_time_step * n_times)

    def fits(self, size: Size, others: Iterable[Size]) -> bool:
        """Whether a run fits beside the others that are under way, whatever they have taken so far."""
        need = self.need(size)
        if need + sum(map(self.need, others)) > self.total:
            return False
        if need > min(self.total + self.before - held_bytes(self.place), free_bytes(self.place)):
            release_memory(self.place)  # of runs that have ended
        return need <= free_bytes(self.place)

    def learn(self, size: Size, taken: int) -> None:
        """A run of this size took so many bytes."""
        n_bytes, n_times = size
        self.per_time_step = max(self.per_time_step, (taken - n_bytes - FIXED) / n_times)
