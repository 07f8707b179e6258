"""From cases to vectors: batches, device, pooling."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dicot.data.pieces import Collection
from dicot.encoders import Encoder
from dicot.errors import lookup
from dicot.gpu.device import float32_arithmetic, resolve_device
from dicot.gpu.transfer import through


def _mean(h: Tensor) -> Tensor:
    return h.mean(dim=-1, dtype=torch.promote_types(h.dtype, torch.float32))


def _max(h: Tensor) -> Tensor:
    return h.amax(dim=-1)


def _mean_max_std(h: Tensor) -> Tensor:
    return torch.cat([_mean(h), _max(h), h.std(dim=-1, correction=0)], dim=1)


# (B, F, T) -> (B, F), or (B, 3 F)
POOLINGS: dict[str, Callable[[Tensor], Tensor]] = {"mean": _mean, "max": _max, "mean+max+std": _mean_max_std}

PRECISIONS = ("float32", "tf32", "bf16")  # "bf16": activations too are kept in 16 bits

# Bytes that the features of one pass and what is made on the way to them may take. On a CPU it is what stays in its
# caches: batches beyond that are slower, not faster.
WORKING_MEMORY = {"cpu": 32 * 2**20, "cuda": 2**30}
ARRAYS_PER_PASS = 8  # of the features' size, while a pass runs


class Target(Protocol):
    """Where embeddings go, some rows at a time: an array, or a file that is never whole in memory."""

    def __setitem__(self, rows: slice, values: np.ndarray, /) -> None: ...


def embed(
    encoder: Encoder,
    x: Collection,
    *,
    pooling: str | None = "mean",
    batch_size: int = 256,
    device: str | torch.device = "auto",
    precision: str = "float32",
    on_batch: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Embed cases (N, C, T) as (N, F); `pooling=None` gives the features per time step, (N, F, T).

    A case's embedding does not depend on the other cases of the call, on their order or on `batch_size`. That is the
    most cases that go through the encoder at once; fewer do where they would take too much memory. A memory-mapped x
    is read piece by piece. `precision` "tf32" is faster on a GPU and keeps three digits, "bf16" more so and two, both
    for data of ordinary scale, and which digits come behind them may depend on the batch; elsewhere they change
    nothing. `on_batch` is told how many cases are done.
    """
    encoder.check_shape(x.shape)
    dtype = torch.empty(0, dtype=next(encoder.parameters()).dtype).numpy().dtype
    y = np.empty((len(x), *_shape(encoder, x.shape[2], pooling)), dtype)
    embed_into(
        y, encoder, x, pooling=pooling, batch_size=batch_size, device=device, precision=precision, on_batch=on_batch
    )
    return y


def embed_into(
    target: Target,
    encoder: Encoder,
    x: Collection,
    *,
    pooling: str | None = "mean",
    batch_size: int = 256,
    device: str | torch.device = "auto",
    precision: str = "float32",
    on_batch: Callable[[int], None] | None = None,
) -> None:
    """What `embed` gives, `target[rows] = ...` as it is made."""
    pool = _all if pooling is None else lookup(POOLINGS, pooling, "pooling")
    lookup(dict.fromkeys(PRECISIONS), precision, "precision")
    encoder.check_shape(x.shape)
    place = resolve_device(device)
    first = next(encoder.parameters())
    was_training, home, dtype = encoder.training, first.device, first.dtype
    if was_training:
        encoder.eval()
    if home != place:
        encoder.to(place)
    try:
        halved = torch.bfloat16 if precision == "bf16" and place.type == "cuda" else None
        with (
            torch.inference_mode(),
            float32_arithmetic(place, fast=precision != "float32"),
            encoder.lend_frozen(x.shape[2], halved) as (frozen, notes),
        ):

            def compute(batch: Tensor) -> Tensor:
                if len(batch) > 1:
                    return pool(frozen(batch))
                if pooling not in notes:
                    notes[pooling] = _same_alone(frozen, pool, batch)
                return (_alone if notes[pooling] else _in_company)(frozen, pool, batch)

            per_value = first.element_size() if halved is None else halved.itemsize
            widest = max(encoder.dim, encoder.n_channels)
            at_once = min(batch_size, cases_at_once(widest * x.shape[2] * per_value, place))
            through(compute, x, target, _shape(encoder, x.shape[2], pooling), at_once, place, dtype, on_batch)
    finally:
        if home != place:
            encoder.to(home)
            encoder.forget_frozen()  # of weights that are there no longer: it would only hold the device's memory
        if was_training:
            encoder.train()


Network = Callable[[Tensor], Tensor]


def _in_company(frozen: Network, pool: Network, case: Tensor) -> Tensor:
    """One case, (1, C, T). Alone it may run through other kernels than in a batch, whose last bits differ."""
    return pool(frozen(case.repeat(2, 1, 1)))[:1]


def _alone(frozen: Network, pool: Network, case: Tensor) -> Tensor:
    """The same with company for the pooling only, which costs little."""
    h = frozen(case)  # (1, F, T)
    time_first = h.permute(2, 0, 1)
    if time_first.is_contiguous():  # as it would come for two cases
        return pool(time_first.repeat(1, 2, 1).permute(1, 2, 0))[:1]
    return pool(h.repeat(2, 1, 1))[:1]


def _same_alone(frozen: Network, pool: Network, like: Tensor) -> bool:
    """Whether a case gets the same bits either way, which for a shape depends on the machine's kernels alone."""
    probe = torch.randn(like.shape, generator=torch.Generator().manual_seed(0)).to(like)
    return torch.equal(_alone(frozen, pool, probe), _in_company(frozen, pool, probe))


def _all(h: Tensor) -> Tensor:
    return h


def _shape(encoder: Encoder, n_times: int, pooling: str | None) -> tuple[int, ...]:
    """Of what `embed` gives for one case."""
    return (encoder.dim, n_times) if pooling is None else (pooled_dim(encoder, pooling),)


def cases_at_once(bytes_per_case: int, place: torch.device) -> int:
    """How many cases whose features take so many bytes go through an encoder together: two at least."""
    return max(2, WORKING_MEMORY.get(place.type, WORKING_MEMORY["cuda"]) // (ARRAYS_PER_PASS * max(1, bytes_per_case)))


def pooled_dim(encoder: Encoder, pooling: str) -> int:
    """Length of the vectors that `embed` makes with this pooling."""
    probe = torch.zeros(1, encoder.dim, 1)
    return int(lookup(POOLINGS, pooling, "pooling")(probe).shape[1])
