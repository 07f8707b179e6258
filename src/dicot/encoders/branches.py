"""Independent pieces of work that a GPU may do at the same time."""

from collections.abc import Callable, Sequence
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
    streams = [trunk, *_side_streams(len(tasks) - 1, place)]
    results = []
    # A side stream first waits for the trunk: memory that it reuses may have been read there.
    for stream in streams[1:]:
        stream.wait_stream(trunk)
    for task, stream in zip(tasks, streams, strict=True):
        with torch.cuda.stream(stream):
            results.append(task())
    for stream in streams[1:]:
        trunk.wait_stream(stream)
    return results


@lru_cache(maxsize=16)
def _side_streams(count: int, place: torch.device) -> tuple[Any, ...]:
    return tuple(torch.cuda.Stream(place) for _ in range(count))  # type: ignore[no-untyped-call]
