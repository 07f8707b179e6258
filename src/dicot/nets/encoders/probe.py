"""Asking a network for the shape of its output without leaving a trace."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import nn


def home_of(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device and the type that a network computes in; one without weights takes float32 on the CPU."""
    tensors = chain(network.parameters(), network.buffers())
    first = next((tensor for tensor in tensors if tensor.is_floating_point()), torch.empty(0))
    return first.device, first.dtype


@contextmanager
def in_eval_mode(network: nn.Module) -> Iterator[None]:
    """Put the network into eval mode without gradients; afterwards every module is in its own mode again."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
