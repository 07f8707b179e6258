"""Independent pieces of work that a GPU may do at the same time."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import torch


def together(tasks: Sequence[Callable[[], Any]], place: torch.device) -> list[Any]:
    """The results of tasks that do not need each other; in a CUDA graph that is being recorded, as parallel branches.

    Small kernels leave most of a GPU idle, so branches are nearly free there. Outside a recording the tasks run one
    after the other: the host would be slower than the device anyway.
    """
    if place.type != "cuda" or not torch.cuda.is_current_stream_capturing():
        return [task() for task in tasks]
    trunk = torch.cuda.current_stream(place)
    streams = [trunk, *_side_streams(trunk.cuda_stream, len(tasks) - 1, place)]
    results = []
    # A side stream first waits for the trunk: memory that it reuses may have been read there.
    for stream in streams[1:]:
        stream.wait_stream(trunk)
    try:
        for task, stream in zip(tasks, streams, strict=True):
            with torch.cuda.stream(stream):
                results.append(task())
    except BaseException:
        with suppress(RuntimeError):  # a recording that fails can be ended only with its branches joined
            _join(trunk, streams[1:])
        raise
    _join(trunk, streams[1:])
    return results


def _join(trunk: Any, others: Sequence[Any]) -> None:
    for stream in others:
        trunk.wait_stream(stream)


@lru_cache(maxsize=256)
def _side_streams(trunk: int, count: int, place: torch.device) -> tuple[Any, ...]:
    """The same ones for the same trunk, and no others: what runs on two trunks at once must not meet on a third stream.

    cuBLAS has one scratch memory per stream. PyTorch hands out 32 streams per priority in turn, so these are taken from
    another priority than the trunks.
    """
    return tuple(torch.cuda.Stream(place, priority=-1) for _ in range(count))  # type: ignore[no-untyped-call]
