"""Work for a GPU recorded as a CUDA graph and replayed without the host, which for small kernels is the slower one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import torch

R = TypeVar("R")


def record(work: Callable[[], R], pool: Any = None) -> tuple[torch.cuda.CUDAGraph, R]:
    """What `work` sends to the current stream, as a graph, and its result, which every replay overwrites.

    `pool` is that of an earlier graph whose memory this one may use too, because the two never run at once. What the
    work needs for the first time may be loaded and copied beside the recording. A RuntimeError where it cannot be done.
    """
    graph = torch.cuda.CUDAGraph()
    pool = torch.cuda.graph_pool_handle() if pool is None else pool
    with _own_scratch():
        try:
            graph.capture_begin(pool=pool, capture_error_mode="relaxed")
            try:
                result = work()
            except BaseException:
                with suppress(RuntimeError):  # what went wrong first says more
                    graph.capture_end()
                raise
            graph.capture_end()
        except BaseException:
            _abandon(pool)
            raise
    return graph, result


def _abandon(pool: Any) -> None:
    """Where a recording cannot even be ended, torch goes on believing in it.

    It would keep the memory that the recording took and refuse to give back any other.
    """
    place = torch.cuda.current_device()
    with suppress(RuntimeError):  # it was ended
        torch._C._cuda_endAllocateToPool(place, pool)
        torch._C._cuda_releasePool(place, pool)


@contextmanager
def _own_scratch() -> Iterator[None]:
    """cuBLAS takes its scratch memory from the recording's own: graphs that are replayed at once must not share any."""
    clear: Callable[[], None] = torch._C._cuda_clearCublasWorkspaces
    clear()
    try:
        yield
    finally:
        clear()
