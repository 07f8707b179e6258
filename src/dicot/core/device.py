"""Which device a run uses, how arrays get there, and how much of a GPU's memory there is and may be taken."""

import gc
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dicot.core.errors import InputError
from dicot.core.memory import resident

# Taken while torch's random state or precision is another than the caller's: both belong to the whole process, and fits
# in several threads would draw each other's numbers.
PROCESS_WIDE = threading.RLock()

FIXED = 2**28  # bytes that a run of any size takes: scratch memory of cuBLAS, the smallest pieces that torch asks for
_RESET = Path("/proc/self/clear_refs")  # Linux


def resolve_device(device: str | torch.device) -> torch.device:
    """ "auto" is the GPU where there is one; anything else is taken at its word, or refused."""
    if str(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"Unknown device {device!r}. Use 'auto', 'cpu', 'cuda' or 'cuda:N'.") from error
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"Device {device!r} was asked for, but torch sees no GPU here. Use device='cpu' or 'auto'.")
    return resolved


def to_device(array: np.ndarray, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Copy a numpy array to a device, as a tensor with plain strides.

    A read-only array (a memory map) is copied, because torch cannot protect it. Axes of length one may carry any
    stride in numpy; convolutions choose their algorithm by strides, so these are made plain to get the same bits.
    """
    sound = array if array.flags.writeable and array.flags.c_contiguous else np.array(array, order="C")
    return torch.from_numpy(sound.reshape(-1)).view(array.shape).to(device, dtype)


@contextmanager
def float32_arithmetic(device: torch.device, fast: bool = False) -> Iterator[None]:
    """Convolutions and matrix products on a GPU in true float32, or with `fast` in TF32 (10 bits of mantissa).

    The settings are those of the whole process, so that one thread at a time may have its own; a CPU needs none.

    Torch's own defaults are TF32 for convolutions and float32 for matrix products. In TF32 an embedding would depend on
    the batch size in the fifth digit. Either way the same input gives the same bits.
    """
    if device.type != "cuda":
        yield
        return
    # Both of cudnn's, because torch refuses to report a setting that differs between them.
    backends: Any = torch.backends
    parts = (backends.cudnn.conv, backends.cudnn.rnn, backends.cuda.matmul)
    with PROCESS_WIDE:
        before, repeatable = [part.fp32_precision for part in parts], backends.cudnn.deterministic
        try:
            backends.cudnn.deterministic = True
            for part in parts:
                part.fp32_precision = "tf32" if fast else "ieee"
            yield
        finally:
            backends.cudnn.deterministic = repeatable
            for part, value in zip(parts, before, strict=True):
                part.fp32_precision = value


@contextmanager
def host_threads(most: int) -> Iterator[None]:
    """Limits torch's threads on the CPU: where there are more than free cores, they mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(most, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def describe_device(device: str | torch.device, alone: bool = False) -> str:
    """The name of the GPU, or "cpu"; a GPU behind NVIDIA's multi-process service is shared, and so are its times.

    With `alone` it says so, that nothing else of the command ran beside it; a shared GPU never does. A processor has
    its name then too.
    """
    device = resolve_device(device)
    if device.type == "cuda":
        shared = "CUDA_MPS_PIPE_DIRECTORY" in os.environ
        return torch.cuda.get_device_name(device) + (" (shared)" if shared else ", alone" if alone else "")
    return f"{_processor()}, alone" if alone and device.type == "cpu" else device.type


def _processor() -> str:
    """What the processor is called, as far as the system tells: x86 by its model, ARM by its part."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    part = f"{platform.machine()} {told.get('CPU part', '')}".strip()
    return f"cpu {told.get('model name') or platform.processor() or part}"


def load_optimisers() -> None:
    """Torch loads what its optimisers need when the first of them is made: seconds that belong to no fit."""
    torch.optim.SGD([torch.zeros(1)])


def release_memory(device: str | torch.device) -> bool:
    """Give back GPU memory that is no longer in use; False where an error made the GPU useless to this process."""
    device = resolve_device(device)
    if device.type == "cuda":
        gc.collect()
        try:
            torch.cuda.synchronize(device)
            torch.cuda.empty_cache()
        except RuntimeError:  # torch.AcceleratorError is one
            return False
    return True


@contextmanager
def peak_memory(device: str | torch.device) -> Iterator[Callable[[], int]]:
    """Gives a function that says by how many bytes memory grew at most since the start.

    On a GPU that of tensors, on a CPU that of the whole process, from which memory that was freed before but not given
    back is missing. 0 where the system does not tell.
    """
    device = resolve_device(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield lambda: torch.cuda.max_memory_allocated(device) - before
        return
    try:
        _RESET.write_text("5")  # the highest point so far becomes the present one
        start = resident()["VmRSS"]
    except OSError:
        yield lambda: 0
    else:
        yield lambda: max(0, resident()["VmHWM"] - start)


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
    number = torch.cuda.current_device() if device.index is None else device.index
    return int(torch.cuda.get_per_process_memory_fraction(number) * torch.cuda.mem_get_info(device)[1])
