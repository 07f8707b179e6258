"""Asking a network for the shape of its output without leaving a trace."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


def home_of(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device and the type that a network computes in; one without weights takes float32 on the CPU."""
    tensors = (*network.parameters(), *network.buffers())
    first = next((tensor for tensor in tensors if tensor.is_floating_point()), torch.empty(0))
    return first.device, first.dtype


@contextmanager
def without_trace(network: nn.Module) -> Iterator[None]:
    """Put the network into eval mode inside; afterwards the modes of its modules and the random state are as before."""
    modes = [(module, module.training) for module in network.modules()]
    device, _ = home_of(network)
    network.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        for module, training in modes:
            module.training = training
