"""What runs take of a GPU's memory, and whether there is room for one more."""

import sys

import torch

from dicot.device import release_memory
from dicot.errors import InputError

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

    What a run takes is measured, and what the next one will take is judged by that: its training set, and per time
    step of a batch as much as the most demanding run so far.
    """

    def __init__(self, place: torch.device, memory: int | None) -> None:
        if memory is not None and memory < 1:
            raise InputError(f"memory is a number of bytes, 1 or more; got {memory}.")
        release_memory(place)
        self.place = place
        self.limit = held_bytes(place) + (int(SHARE * free_bytes(place)) if memory is None else memory)
        self.per_time_step = 0.0

    def fits(self, n_bytes: int, n_times: int) -> bool:
        """Whether a run on `n_bytes` of data, `n_times` time steps in a batch, fits beside those under way."""
        need = FIXED + n_bytes + int(self.per_time_step * n_times)
        if need <= self._left():
            return True
        release_memory(self.place)  # of runs that have ended
        return need <= self._left()

    def learn(self, taken: int, n_bytes: int, n_times: int) -> None:
        """A run on so much data took `taken` bytes."""
        self.per_time_step = max(self.per_time_step, (taken - n_bytes - FIXED) / n_times)

    def _left(self) -> int:
        return min(self.limit - held_bytes(self.place), free_bytes(self.place))
