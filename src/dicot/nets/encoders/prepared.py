"""An encoder's network prepared for inference, once for as long as its weights stay the same.

To prepare it takes longer than to embed a single case.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dicot.nets.encoders.base import CACHE, Encoder
from dicot.nets.encoders.hooks import Modules

_PREPARED = CACHE + "prepared"  # attribute of an encoder


@contextmanager
def prepared(
    encoder: Encoder, n_times: int, dtype: torch.dtype | None = None, *, layers: bool = False
) -> Iterator[tuple[Callable[..., Tensor], dict[Any, Any]]]:
    """Give `encoder.frozen(n_times, dtype)` and a dictionary for what its users learn about it.

    With `layers` it is `encoder.frozen_layers(n_times, dtype)`.

    One caller at a time has it, because it works in memory of its own; a second one has another prepared.
    """
    modules = encoder.inner_modules()
    key = (n_times, dtype, layers, encoder.plain, modules.have_hooks(), _versions(modules))
    old_key, network, notes = encoder.__dict__.pop(_PREPARED, (None, None, None))
    if old_key != key:
        prepare = encoder.frozen_layers if layers else encoder.frozen
        network, notes = prepare(n_times, dtype), {}
    yield network, notes
    encoder.__dict__[_PREPARED] = key, network, notes


def forget_prepared(encoder: Encoder) -> None:
    """Free the prepared network, with the memory it works in."""
    encoder.__dict__.pop(_PREPARED, None)


def has_prepared(encoder: Encoder) -> bool:
    """Tell whether a prepared network is stored."""
    return _PREPARED in encoder.__dict__


def _versions(modules: Modules) -> list[object]:
    """Return values that change with the weights, as autograd counts it: writing to `weight.data` goes unnoticed."""
    tensors = [t for m in modules.all for t in (*m._parameters.values(), *m._buffers.values()) if t is not None]
    return [(t.device, t.dtype, t.data_ptr(), 0 if t.is_inference() else t._version) for t in tensors]
