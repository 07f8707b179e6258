"""CUDA graphs: work for a GPU, captured once and replayed without the host, which is slower than small kernels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import torch

R = TypeVar("R")


def capture(work: Callable[[], R], pool: Any = None) -> tuple[torch.cuda.CUDAGraph, R]:
    """Capture what `work` sends to the current stream; gives the graph and its result, which every replay overwrites.

    `pool` is that of an earlier graph whose memory this one may use too, because the two never run at once. What `work`
    needs for the first time may be loaded and copied meanwhile. Raises a RuntimeError where `work` cannot be captured.
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
    """Make torch forget a capture that could not even be ended.

    Otherwise it would keep the memory that the capture has taken, and refuse to free any other.
    """
    device = torch.cuda.current_device()
    with suppress(RuntimeError):  # it was ended
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)


@contextmanager
def _own_scratch() -> Iterator[None]:
    """Let cuBLAS take its scratch memory from the graph's: graphs that are replayed at once must not share any."""
    clear_scratch()
    try:
        yield
    finally:
        clear_scratch()


def clear_scratch() -> None:
    """Free the scratch memory of cuBLAS; it takes new memory when it needs some."""
    torch._C._cuda_clearCublasWorkspaces()
