"""From cases to vectors: passes through an encoder, batch by batch, on a device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from dicot.core.errors import InputError, lookup
from dicot.core.gpu.device import float32_arithmetic, resolve_device
from dicot.core.gpu.memory import allowed_bytes
from dicot.core.gpu.transfer import ThreadedArray, through
from dicot.core.processes.budget import memory_of, refuse_beyond
from dicot.data.cases import Collection
from dicot.data.conversion import Conversion
from dicot.model.embedding.poolings import Pooling, pooled_dim, pooling_named
from dicot.nets.encoders import Encoder
from dicot.nets.encoders.base import Prepared, home_of

EMBED_PRECISIONS = ("float32", "tf32", "bf16")  # "bf16": activations too have 16 bits

# Bytes that the features of one pass and what is made on the way to them may take. On a CPU it is what stays in its
# caches: batches beyond that are slower, not faster. A GPU is fast at large ones.
WORKING_MEMORY = {"cpu": 32 * 2**20, "cuda": 2**32}
LARGEST_SHARE = 1 / 8  # of the memory that torch may take of a GPU: there may be other processes beside this one
ARRAYS_PER_PASS = 8  # of the features' size, while a pass runs


Network = Callable[[Tensor], Any]


class Composer(Protocol):
    """What makes more of a case than pooled features: see `composition`."""

    @property
    def width(self) -> int:
        """How many numbers for each time step of a case are in memory at once."""

    def dim(self, pooled: int) -> int:
        """Return the length of a vector whose pooled features are so many."""

    def around(self, network: Network, like: Tensor) -> Network:
        """Return the function (B, C, T) -> (B, vector) around one that pools, for cases on the device of `like`."""


class Target(Protocol):
    """Where embeddings go, some rows at a time: an array, or a file that is never whole in memory."""

    def __setitem__(self, rows: slice, values: np.ndarray, /) -> None: ...


class PassOptions(TypedDict, total=False):
    """How cases go through an encoder; see `embed`."""

    batch_size: int
    device: str | torch.device
    precision: str
    on_batch: Callable[[int], None] | None


def embed(
    encoder: Encoder,
    x: Collection,
    *,
    pooling: str | None = "mean",
    composer: Composer | None = None,
    **options: Unpack[PassOptions],
) -> np.ndarray:
    """Turn cases (N, C, T) into vectors (N, F).

    A case's vector does not depend on the other cases of the call, on their order or on `batch_size`, but for the
    rounding of the last digit where a matrix product of another number of rows takes its sums in another order. A
    memory-mapped x is read piece by piece. Hooks on modules of the encoder are called (see `Encoder.plain`); a single
    case goes through twice, so that its vector is the one it has among others.

    Parameters
    ----------
    encoder : an `Encoder`; `dicot.nets.encoders.as_encoder` makes one of any torch module
    x : cases (N, C, T)
    pooling : a name of `dicot list poolings`; None gives the features per time step, (N, F, T)
    composer : what else a vector holds, and how it is compressed (see `composition`); needs a pooling
    batch_size : the most cases that go through the encoder at once; fewer do where they would take too much memory
    device : "auto", "cpu", "cuda" or "cuda:N"
    precision : on a GPU "tf32" is faster than "float32" and keeps three digits, "bf16" more so and two, both for data
        of ordinary scale, and the digits after these may depend on the batch; elsewhere they change nothing.
    on_batch : is told how many cases are done
    """
    encoder.check_shape(x.shape)
    dtype = torch.empty(0, dtype=home_of(encoder)[1]).numpy().dtype
    y = np.empty((len(x), *_shape(encoder, x.shape[2], pooling, composer)), dtype)
    embed_into(ThreadedArray(y), encoder, x, pooling=pooling, composer=composer, **options)
    return y


def embed_into(
    target: Target,
    encoder: Encoder,
    x: Collection,
    *,
    pooling: str | None = "mean",
    composer: Composer | None = None,
    batch_size: int = 1024,
    device: str | torch.device = "auto",
    precision: str = "float32",
    on_batch: Callable[[int], None] | None = None,
) -> None:
    """Do what `embed` does, and write the rows to `target[rows] = ...` as they are made."""
    rule = pooling_named(pooling)
    lookup(dict.fromkeys(EMBED_PRECISIONS), precision, "precision")
    encoder.check_shape(x.shape)
    if isinstance(x, Conversion) and x.length > x.lengths[x.index].max():  # a small file can ask for any length
        refuse_length(encoder, x.length, x.unequal, device, composer)
    shape = _shape(encoder, x.shape[2], pooling, composer)
    device = resolve_device(device)
    home, dtype = home_of(encoder)
    in_training = [module for module in encoder.inner_modules().all if module.training]
    if in_training:
        encoder.eval()
    if home != device:
        encoder.to(device)
    try:
        halved = torch.bfloat16 if precision == "bf16" and device.type == "cuda" else None
        with torch.inference_mode(), float32_arithmetic(device, fast=precision != "float32"):
            per_value = dtype.itemsize if halved is None else halved.itemsize
            per_case = _widest(encoder, composer) * x.shape[2] * per_value
            if rule.layers is not None:
                per_case += per_case * len(encoder.layer_dims()) // ARRAYS_PER_PASS
            at_once = min(batch_size, cases_at_once(per_case, device))
            with _pooling(encoder, x.shape[2], rule, halved) as compute:
                if composer is not None:
                    compute = composer.around(compute, torch.empty(0, device=device, dtype=dtype))
                graphs = not encoder.inner_modules().have_hooks()  # a replay calls none
                through(compute, x, target, shape, at_once, device, dtype, on_batch, graphs=graphs)
    finally:
        if home != device:
            encoder.to(home)
            encoder.forget_prepared()  # its weights are the device's, and it would only use memory there
        for module in in_training:
            module.training = True


def _widest(encoder: Encoder, composer: Composer | None) -> int:
    beside = 0 if composer is None else composer.width // ARRAYS_PER_PASS  # after the network, not beside it
    return max(encoder.dim, encoder.n_channels, beside)


def refuse_length(
    encoder: Encoder, n_times: int, unequal: str, device: str | torch.device, composer: Composer | None = None
) -> None:
    """Refuse cases of a model's own length where a pass of two takes more than half of the memory."""
    home = resolve_device(device)
    memory = memory_of(None) if home.type == "cpu" else allowed_bytes(home) // 2
    refuse_beyond(
        memory,
        2 * ARRAYS_PER_PASS * _widest(encoder, composer) * n_times * home_of(encoder)[1].itemsize,
        f"Cases of n_times={n_times} time steps, as this model's config.json wants them (unequal={unequal!r}): a pass",
        "If it was trained on cases of that length, use it where there is more memory. If not, its file is damaged or "
        "made to do harm: save the model again.",
        "half of what is free",
    )


@contextmanager
def _pooling(encoder: Encoder, n_times: int, rule: Pooling, dtype: torch.dtype | None) -> Iterator[Network]:
    """Give the function (B, C, T) -> (B, vector) for an encoder in eval mode.

    A single case goes through twice where that changes its bits: alone it may run through other kernels.
    """
    if rule.layers is not None:
        yield partial(_in_company, partial(_pooled_together, encoder, rule, dtype))
        return
    with encoder.prepared(n_times, dtype) as prepared:
        if encoder.inner_modules().have_hooks():
            prepared.same_alone = False  # trying it out would call them once more
        yield partial(_pooled, prepared, rule.pool)


def _in_company(network: Network, batch: Tensor) -> Tensor:
    """Compute vectors, a single one as one of two."""
    vectors: Tensor = network(batch.repeat(2, 1, 1) if len(batch) == 1 else batch)
    return vectors[: len(batch)]


def _pooled_together(encoder: Encoder, rule: Pooling, dtype: torch.dtype | None, x: Tensor) -> Tensor:
    """Pool the features of several layers once all are there."""
    with torch.autocast(x.device.type, dtype, enabled=dtype is not None):
        features = encoder.features(x)
    return rule.pool(rule.chosen(features))


def _pooled(prepared: Prepared, pool: Network, batch: Tensor) -> Tensor:
    """Pool the last layer; the features of a single case are doubled for the pooling too, which costs little."""
    network = prepared.network
    if len(batch) == 1 and prepared.same_alone is None:
        probe = torch.randn(batch.shape, generator=torch.Generator().manual_seed(0)).to(batch)
        prepared.same_alone = torch.equal(network(probe), network(probe.repeat(2, 1, 1))[:1])
    if len(batch) > 1 or not prepared.same_alone:
        return _in_company(lambda x: pool(network(x)), batch)
    h = network(batch)  # (1, F, T)
    time_first = h.permute(2, 0, 1).is_contiguous()  # then two cases would lie in memory so, too
    both = h.permute(2, 0, 1).repeat(1, 2, 1).permute(1, 2, 0) if time_first else h.repeat(2, 1, 1)
    vectors: Tensor = pool(both)
    return vectors[:1]


def _shape(encoder: Encoder, n_times: int, pooling: str | None, composer: Composer | None) -> tuple[int, ...]:
    """Return the shape of what `embed` gives for one case."""
    if pooling is None:
        if composer is not None:
            raise InputError("A composer needs one vector per case; pooling=None gives features per time step.")
        return encoder.dim, encoder.out_length(n_times)
    pooled = pooled_dim(encoder, pooling)
    return (pooled if composer is None else composer.dim(pooled),)


def cases_at_once(bytes_per_case: int, device: torch.device) -> int:
    """Say how many cases whose features take so many bytes go through an encoder together: two at least."""
    memory = WORKING_MEMORY.get(device.type, WORKING_MEMORY["cuda"])
    memory = min(memory, int(LARGEST_SHARE * allowed_bytes(device)))
    return max(2, memory // (ARRAYS_PER_PASS * max(1, bytes_per_case)))
