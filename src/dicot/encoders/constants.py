"""Fixed matrices that training steps read: made once, kept on their device, held while a recorded step reads them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, update_wrapper
from typing import Any, Generic, TypeVar

import torch

R = TypeVar("R")
_holders: list[list[object]] = []


class Constant(Generic[R]):
    """A function of hashable arguments, the last of which is a device, whose latest results are kept.

    While a CUDA graph is being recorded, results are made beside the recording: they are to be there once, not to be
    made again by every replay.
    """

    def __init__(self, build: Callable[..., R], most: int) -> None:
        self.build = build
        self.kept = lru_cache(most)(self._make)
        self.cache_clear, self.cache_info = self.kept.cache_clear, self.kept.cache_info
        update_wrapper(self, build)

    def __call__(self, *args: Any) -> R:
        value = self.kept(*args)
        for holder in _holders:
            holder.append(value)
        return value

    def _make(self, *args: Any) -> R:
        device = args[-1]
        if device.type != "cuda" or not torch.cuda.is_current_stream_capturing():
            return self.build(*args)
        with torch.cuda.stream(_stream_beside(device)):
            return self.build(*args)


def constant(most: int) -> Callable[[Callable[..., R]], Constant[R]]:
    """Keep the `most` latest results of a function."""
    return lambda build: Constant(build, most)


@contextmanager
def held() -> Iterator[list[object]]:
    """Every constant that is given out meanwhile; whoever keeps the list keeps their memory."""
    holder: list[object] = []
    _holders.append(holder)
    try:
        yield holder
    finally:
        _holders[:] = [other for other in _holders if other is not holder]


@lru_cache(maxsize=16)
def _stream_beside(device: torch.device) -> Any:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
