"""Cases to a device and results back, batch by batch, with the copies hidden behind the arithmetic on a GPU.

A CUDA graph is work for a GPU, captured once and replayed without the host, which is slower than small kernels.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from dicot.core.device import to_device

log = logging.getLogger(__name__)
R = TypeVar("R")
FEWEST_BATCHES = 6  # for which capturing a graph pays


class ThreadedArray:
    """An array whose rows are written by several threads: memory that is touched for the first time is slow."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __setitem__(self, rows: slice, values: NDArray[Any]) -> None:
        torch.from_numpy(self.array[rows]).copy_(torch.from_numpy(values))


class Lane:
    """The memory of one batch on its way to a GPU and back; two of them take turns."""

    def __init__(self, n_cases: int, x: Any, shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> None:
        shape_in, shape_out = (n_cases, *x.shape[1:]), (n_cases, *shape)
        # Page-locked, so that the GPU copies by itself while the host goes on.
        self.host_in = torch.empty(shape_in, dtype=dtype, pin_memory=True)
        self.host_out = torch.empty(shape_out, dtype=dtype, pin_memory=True)
        self.device_in = torch.empty(shape_in, dtype=dtype, device=device)
        self.device_out = torch.empty(shape_out, dtype=dtype, device=device)
        self.arrived, self.computed, self.returned = (torch.cuda.Event() for _ in range(3))  # type: ignore[no-untyped-call]
        self.rows: slice | None = None  # of the batch that is under way
        self.graph: torch.cuda.CUDAGraph | None = None  # of the work on a full batch


def through(
    compute: Callable[[Tensor], Tensor],
    x: Any,
    y: Any,
    shape: tuple[int, ...],
    batch_size: int,
    device: torch.device,
    dtype: torch.dtype,
    on_batch: Callable[[int], None] | None = None,
    *,
    graphs: bool = True,
) -> None:
    """y[rows] = compute(x[rows]) for all rows, at most batch_size cases at a time; a case's result has this `shape`.

    x is read once, batch by batch, and never copied whole; y may be an array or whatever takes rows in order.
    `on_batch` is told how many cases are done. `graphs` says whether `compute` may be replayed as a CUDA graph.
    """
    pieces = [slice(start, min(start + batch_size, len(x))) for start in range(0, len(x), batch_size)]
    done = on_batch or (lambda n_done: None)
    if device.type != "cuda":
        for rows in pieces:
            y[rows] = compute(to_device(x[rows], device, dtype)).cpu().numpy()
            done(rows.stop)
        return
    # While the GPU works on one batch the host reads the next one; copies run on streams of their own.
    capturing = graphs and len(pieces) >= FEWEST_BATCHES
    largest = max((rows.stop - rows.start for rows in pieces), default=0)
    lanes = [Lane(largest, x, shape, device, dtype) for _ in pieces[:2]]
    callers = torch.cuda.current_stream(device)
    working, inwards, outwards = (torch.cuda.Stream(device) for _ in range(3))  # type: ignore[no-untyped-call]
    for stream in (working, inwards):  # the lanes' memory may have been in use on the caller's stream until now
        stream.wait_stream(callers)

    def work(lane: Lane, n_cases: int) -> None:
        lane.device_out[:n_cases] = compute(lane.device_in[:n_cases])

    def run(lane: Lane, n_cases: int, number: int) -> None:
        """Load what the work needs with the first batches, capture one more in each lane, replay the rest."""
        nonlocal capturing
        if capturing and lane.graph is None and number >= len(lanes) and n_cases == largest:
            # Both lanes work on one stream, never at once: what one leaves in memory the other may overwrite.
            pool = next((other.graph.pool() for other in lanes if other.graph is not None), None)
            try:
                lane.graph, _ = capture(lambda: work(lane, n_cases), pool)
            except RuntimeError as error:
                capturing = False
                log.info("batches are embedded op by op: %s", str(error).splitlines()[0])
        if lane.graph is not None and n_cases == largest:
            lane.graph.replay()
        else:
            work(lane, n_cases)

    def finish(lane: Lane) -> None:
        if lane.rows is not None:
            lane.returned.synchronize()
            y[lane.rows] = lane.host_out[: lane.rows.stop - lane.rows.start].numpy()
            done(lane.rows.stop)
            lane.rows = None

    try:
        for number, rows in enumerate(pieces):
            lane, n_cases = lanes[number % 2], rows.stop - rows.start
            finish(lane)  # after this nothing reads or writes the lane's memory
            lane.host_in[:n_cases].numpy()[...] = x[rows]
            lane.rows = rows
            with torch.cuda.stream(inwards):
                lane.device_in[:n_cases].copy_(lane.host_in[:n_cases], non_blocking=True)
                lane.arrived.record(inwards)
            working.wait_event(lane.arrived)
            with torch.cuda.stream(working):
                run(lane, n_cases, number)
            lane.computed.record(working)
            outwards.wait_event(lane.computed)
            with torch.cuda.stream(outwards):
                lane.host_out[:n_cases].copy_(lane.device_out[:n_cases], non_blocking=True)
                lane.returned.record(outwards)
        for number in range(len(pieces), len(pieces) + len(lanes)):  # the older one first
            finish(lanes[number % len(lanes)])
    finally:
        # The lanes' memory goes back to the caller's stream: nothing may be under way then, error or not.
        for stream in (inwards, working, outwards):
            stream.synchronize()
        clear_scratch()  # cuBLAS has up to 32 MiB for each stream that it was used on, and these are never used again


def capture(work: Callable[[], R], pool: Any = None) -> tuple[torch.cuda.CUDAGraph, R]:
    """Capture what `work` sends to the current stream; gives the graph and its result, which every replay overwrites.

    `pool` is that of an earlier graph whose memory this one may use too, because the two never run at once. What `work`
    needs for the first time may be loaded and copied meanwhile. Raises a RuntimeError where `work` cannot be captured.
    """
    graph = torch.cuda.CUDAGraph()
    pool = torch.cuda.graph_pool_handle() if pool is None else pool
    clear_scratch()  # cuBLAS takes its scratch from the graph's memory: graphs replayed at once must not share any
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
    finally:
        clear_scratch()
    return graph, result


def _abandon(pool: Any) -> None:
    """Make torch forget a capture that could not even be ended.

    Otherwise it would keep the memory that the capture has taken, and refuse to free any other.
    """
    device = torch.cuda.current_device()
    with suppress(RuntimeError):  # it was ended
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)


def clear_scratch() -> None:
    """Free the scratch memory of cuBLAS; it takes new memory when it needs some."""
    torch._C._cuda_clearCublasWorkspaces()
