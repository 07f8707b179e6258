"""From cases to vectors: batches, device, pooling."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from dicot.device import float32_convolutions, resolve_device, to_device
from dicot.encoders import Encoder
from dicot.errors import lookup


def _mean(h: Tensor) -> Tensor:
    return h.mean(dim=-1)


def _max(h: Tensor) -> Tensor:
    return h.amax(dim=-1)


def _mean_max_std(h: Tensor) -> Tensor:
    return torch.cat([_mean(h), _max(h), h.std(dim=-1, correction=0)], dim=1)


# (B, F, T) -> (B, F), or (B, 3 F)
POOLINGS: dict[str, Callable[[Tensor], Tensor]] = {"mean": _mean, "max": _max, "mean+max+std": _mean_max_std}


def embed(
    encoder: Encoder,
    x: np.ndarray,
    *,
    pooling: str | None = "mean",
    batch_size: int = 256,
    device: str | torch.device = "auto",
    on_batch: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Embed cases (N, C, T) as (N, F); `pooling=None` gives the features per time step, (N, F, T).

    A case's embedding does not depend on the other cases of the call, on their order or on `batch_size`.
    `on_batch` is told how many cases are done.
    """
    pool = None if pooling is None else lookup(POOLINGS, pooling, "pooling")
    place = resolve_device(device)
    first = next(encoder.parameters())
    was_training, home, dtype = encoder.training, first.device, first.dtype
    encoder.to(place).eval()
    parts = []
    try:
        with torch.inference_mode(), float32_convolutions():
            for start in range(0, len(x), batch_size):
                batch = to_device(x[start : start + batch_size], place, dtype)
                # A batch of one runs through other kernels, whose last bits differ: give it company.
                h = encoder(batch.repeat(2, 1, 1) if len(batch) == 1 else batch)[: len(batch)]  # (B, F, T)
                parts.append((h if pool is None else pool(h)).cpu().numpy())
                if on_batch:
                    on_batch(min(start + batch_size, len(x)))
    finally:
        encoder.to(home).train(was_training)
    return np.concatenate(parts)


def pooled_dim(encoder: Encoder, pooling: str) -> int:
    """Length of the vectors that `embed` makes with this pooling."""
    probe = torch.zeros(1, encoder.dim, 1)
    return int(lookup(POOLINGS, pooling, "pooling")(probe).shape[1])
