"""Fixed matrices that training steps read: made once per device, and kept alive while a CUDA graph reads them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, update_wrapper
from typing import Any, Generic, TypeVar

import torch

R = TypeVar("R")
_collectors: list[list[object]] = []


class Constant(Generic[R]):
    """A function of hashable arguments, the last of which is a device, with a cache of its latest results.

    While a CUDA graph is being captured, results are made on another stream: the graph only reads them, and does not
    make them again at every replay.
    """

    def __init__(self, build: Callable[..., R], most: int) -> None:
        self.build = build
        self.cached = lru_cache(most)(self._make)
        self.cache_clear, self.cache_info = self.cached.cache_clear, self.cached.cache_info
        update_wrapper(self, build)

    def __call__(self, *args: Any) -> R:
        value = self.cached(*args)
        for collector in _collectors:
            collector.append(value)
        return value

    def _make(self, *args: Any) -> R:
        device = args[-1]
        if device.type != "cuda" or not torch.cuda.is_current_stream_capturing():
            return self.build(*args)
        stream = _free_stream(device)
        with torch.cuda.stream(stream):
            value = self.build(*args)
        stream.synchronize()  # replays read it from other streams
        return value


def constant(most: int) -> Callable[[Callable[..., R]], Constant[R]]:
    """Cache the `most` latest results of a function."""
    return lambda build: Constant(build, most)


@contextmanager
def collect_constants() -> Iterator[list[object]]:
    """List every constant that is used inside; as long as the list lives, their memory does."""
    collector: list[object] = []
    _collectors.append(collector)
    try:
        yield collector
    finally:
        _collectors[:] = [other for other in _collectors if other is not collector]


def _free_stream(device: torch.device) -> Any:
    """Return a stream that is not being captured: PyTorch hands out 32 in turn, the present one among them."""
    while True:
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):
            if not torch.cuda.is_current_stream_capturing():
                return stream
