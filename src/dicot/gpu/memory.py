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
    """Whether a GPU's memory did not suffice; torch, CUDA and its libraries each have their own words for it."""
    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and ("out of memory" in text or "alloc_failed" in text)
    )


def taken_bytes(device: torch.device) -> int:
    """Bytes of a GPU's memory that torch has taken, in use or not."""
    return torch.cuda.memory_reserved(device) if device.type == "cuda" else 0


def free_bytes(device: torch.device) -> int:
    """Bytes that torch may still take of a GPU's memory, within the share that this process may have of it."""
    if device.type != "cuda":
        return sys.maxsize
    free, total = torch.cuda.mem_get_info(device)
    share = torch.cuda.get_per_process_memory_fraction(torch.cuda.current_device() if device.index is None else device)
    return min(free, int(share * total) - taken_bytes(device))


class Room:
    """The memory that the runs of a call share.

    What a run takes is measured, and what others take is judged by that: their training set, and per time step of a
    batch as much as the most demanding run so far. A size is (bytes of the training set, time steps of a batch).
    """

    def __init__(self, device: torch.device, memory: int | None) -> None:
        if memory is not None and memory < 1:
            raise InputError(f"memory is a number of bytes, 1 or more; got {memory}.")
        release_memory(device)
        self.device, self.before = device, taken_bytes(device)
        self.total = int(SHARE * free_bytes(device)) if memory is None else memory
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
        if need > min(self.total + self.before - taken_bytes(self.device), free_bytes(self.device)):
            release_memory(self.device)  # of runs that have ended
        return need <= free_bytes(self.device)

    def learn(self, size: Size, taken: int) -> None:
        """Note that a run of this size took so many bytes."""
        n_bytes, n_times = size
        self.per_time_step = max(self.per_time_step, (taken - n_bytes - FIXED) / n_times)
