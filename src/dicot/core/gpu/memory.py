"""What runs take of a GPU's memory, whether there is room for one more, and how much a user allows."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from dicot.core.errors import InputError
from dicot.core.gpu.device import describe_device, release_memory, resolve_device
from dicot.core.processes.budget import parse_bytes, refuse_beyond, said_bytes

Size = tuple[int, int]
SHARE = 0.9  # of what is free at the start, unless the caller says how much
FIXED = 2**28  # bytes that a run of any size takes: scratch memory of cuBLAS, the smallest pieces that torch asks for
CONTEXT = 2**30  # bytes left to CUDA itself, which torch does not count: its context, code of libraries, graphs


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
    """Bytes that torch may still take of a GPU's memory."""
    if device.type != "cuda":
        return sys.maxsize
    return min(torch.cuda.mem_get_info(device)[0], allowed_bytes(device) - taken_bytes(device))


def allowed_bytes(device: torch.device) -> int:
    """Bytes of a GPU's memory that torch may take in this process, whether or not others have taken them."""
    if device.type != "cuda":
        return sys.maxsize
    return int(_share(device) * torch.cuda.mem_get_info(device)[1])


def _share(device: torch.device) -> float:
    return torch.cuda.get_per_process_memory_fraction(torch.cuda.current_device() if device.index is None else device)


def gpu_memory_of(text: str | None, device: str) -> int | None:
    """Return the bytes that a user allows of a GPU, or None; refuse what no run of any size could keep to."""
    if text is None:
        return None
    memory = parse_bytes(text)
    if resolve_device(device).type != "cuda":
        raise InputError(
            f"gpu_memory={text} limits a GPU, and this run is on the CPU. Leave it out, or use --device cuda. The "
            "memory of the process is limited by memory=."
        )
    refuse_beyond_on_gpu(memory, 0, "A run on a GPU")
    return memory


def refuse_beyond_on_gpu(memory: int, need: int, what: str) -> None:
    """Refuse work that needs so many bytes of a GPU beside what any work does."""
    remedy = "Use a smaller batch size or shorter windows, or allow more."
    refuse_beyond(memory, CONTEXT + FIXED + need, what, remedy, "gpu_memory")


@contextmanager
def limited_memory(device: str | torch.device, memory: int | None) -> Iterator[None]:
    """Let torch take so little of a GPU that with what CUDA takes it is at most `memory` bytes; None is no limit.

    Torch enforces it: what would take more is an error, as on a GPU of that size. A limit that is set already stays
    where it is the lower one.
    """
    if memory is None:
        yield
        return
    device = resolve_device(device)
    number = torch.cuda.current_device() if device.index is None else device.index
    before, total = _share(device), torch.cuda.mem_get_info(device)[1]
    release_memory(device)  # what is no longer in use would count
    torch.cuda.set_per_process_memory_fraction(min(before, max(0, memory - CONTEXT) / total), number)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(before, number)


def said_memory(device: torch.device) -> str:
    """Say which memory a run has on a device, with its limit where there is one."""
    if device.type == "cuda" and _share(device) < 1:
        return f"the {said_bytes(allowed_bytes(device))} that torch may take of {describe_device(device)}"
    return f"the memory of {describe_device(device)}"


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
