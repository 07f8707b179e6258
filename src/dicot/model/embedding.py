"""From cases to vectors: passes through an encoder, batch by batch, on a device."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from dicot.core.device import allowed_bytes, float32_arithmetic, resolve_device
from dicot.core.errors import InputError, is_whole, lookup
from dicot.core.memory import free_memory, refuse_beyond_half
from dicot.core.transfer import ThreadedArray, through
from dicot.data.cases import Array, Collection
from dicot.data.conversion import Conversion
from dicot.model.kernels import MOST_FEATURES, N_GROUPS, N_KERNELS, Bank, Contests
from dicot.model.vector.compression import Compression
from dicot.model.vector.levels import Levels
from dicot.model.vector.module import PLAIN, Composition, Vector, box_of
from dicot.model.vector.poolings import POOLINGS, Pooling, pooled_dim
from dicot.nets.encoders import Encoder
from dicot.nets.encoders.base import home_of

__all__ = ["POOLINGS", "Pooling", "embed", "embed_into", "fit_composition", "pooled_dim"]

EMBED_PRECISIONS = ("float32", "tf32", "bf16")  # "bf16": activations too have 16 bits

# Bytes that the features of one pass and what is made on the way to them may take. On a CPU it is what stays in its
# caches: batches beyond that are slower, not faster. A GPU is fast at large ones.
WORKING_MEMORY = {"cpu": 32 * 2**20, "cuda": 2**32}
LARGEST_SHARE = 1 / 8  # of the memory that torch may take of a GPU: there may be other processes beside this one
ARRAYS_PER_PASS = 8  # of the features' size, while a pass runs
MOST_CASES = 10_000  # that anything is fitted on: as many vectors are in memory at once, in float64
ENOUGH_CASES = 4_000  # for vectors of an exact length: time grows with the cube, and more made none better
# Banks that have contests between kernels beside the shares of time steps: how many shares, and groups of kernels.
MIXED = {"mixed": (2_016, N_GROUPS), "small": (1_008, N_GROUPS // 2)}
AUTO = "auto"  # "mixed" for one channel, "small" for more, where it costs less and serves as well
MOST_COMPONENTS = 2_048


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
    composer: Composition | None = None,
    **options: Unpack[PassOptions],
) -> np.ndarray:
    """Turn cases (N, C, T) into vectors (N, F).

    A case's vector does not depend on the other cases of the call, on their order or on `batch_size`, but for the
    rounding of the last digit where a matrix product of another number of rows takes its sums in another order. A
    memory-mapped x is read piece by piece. Hooks on modules of the encoder are called (see `Encoder.plain`). A single
    case or a few short ones go through beside copies, so that their vectors are those they have among others.

    Parameters
    ----------
    encoder : an `Encoder`; `dicot.nets.encoders.as_encoder` makes one of any torch module
    x : cases (N, C, T)
    pooling : a name of `dicot list poolings`; None gives the features per time step, (N, F, T)
    composer : what else a vector holds, and how it is compressed (see `fit_composition`); needs a pooling
    batch_size : the most cases that go through the encoder at once; fewer do where they would take too much memory
    device : "auto", "cpu", "cuda" or "cuda:N"
    precision : on a GPU "tf32" is faster than "float32" and keeps three digits, "bf16" more so and two, both for data
        of ordinary scale, and the digits after these may depend on the batch; elsewhere they change nothing.
    on_batch : is told how many cases are done
    """
    encoder.check_shape(x.shape)
    shape = Vector(encoder, pooling, composer or PLAIN).shape(x.shape[2])
    dtype = torch.empty(0, dtype=home_of(encoder)[1]).numpy().dtype
    y = np.empty((len(x), *shape), dtype)
    embed_into(ThreadedArray(y), encoder, x, pooling=pooling, composer=composer, **options)
    return y


def embed_into(
    target: Target,
    encoder: Encoder,
    x: Collection,
    *,
    pooling: str | None = "mean",
    composer: Composition | None = None,
    batch_size: int = 1024,
    device: str | torch.device = "auto",
    precision: str = "float32",
    on_batch: Callable[[int], None] | None = None,
) -> None:
    """Do what `embed` does, and write the rows to `target[rows] = ...` as they are made."""
    vector = Vector(encoder, pooling, composer or PLAIN)
    lookup(dict.fromkeys(EMBED_PRECISIONS), precision, "precision")
    encoder.check_shape(x.shape)
    device = resolve_device(device)
    if isinstance(x, Conversion) and x.length > x.lengths[x.index].max():
        _refuse_length(vector, x, device)

    home, _ = home_of(encoder)
    in_training = [module for module in encoder.inner_modules().all if module.training]
    if in_training:
        encoder.eval()
    if home != device:
        encoder.to(device)
    try:
        with torch.inference_mode(), float32_arithmetic(device, fast=precision != "float32"):
            halved = torch.bfloat16 if precision == "bf16" and device.type == "cuda" else None
            _pass_through(vector, x, target, device, halved, batch_size, on_batch)
    finally:
        if home != device:
            encoder.to(home)
            encoder.forget_prepared()  # its weights are the device's, and it would only use memory there
        for module in in_training:
            module.training = True


def _pass_through(
    vector: Vector,
    x: Collection,
    target: Target,
    device: torch.device,
    halved: torch.dtype | None,
    batch_size: int,
    on_batch: Callable[[int], None] | None,
) -> None:
    """Send cases through a module whose encoder is on the device and in eval mode."""
    encoder = vector.encoder
    _, dtype = home_of(encoder)
    like = torch.empty(0, device=device, dtype=dtype)
    there = Vector(encoder, vector.pooling, vector.composition.where(like), halved)

    bytes_per_case = _width(vector, x.shape[1]) * x.shape[2] * (halved or dtype).itemsize
    if vector.rule.needs_layers:
        bytes_per_case += bytes_per_case * len(encoder.layer_dims()) // ARRAYS_PER_PASS
    at_once = min(batch_size, cases_at_once(bytes_per_case, device))
    graphs = not encoder.inner_modules().have_hooks()  # a replay calls none

    def with_offsets(cases: Tensor) -> Tensor:
        """Call the module with cases that `_WithOffsets` gave."""
        return there(cases[..., :-1].contiguous(), cases[..., -1])  # type: ignore[no-any-return]

    shape = vector.shape(x.shape[2])
    if isinstance(x, Conversion) and x.may_split:
        through(with_offsets, _WithOffsets(x), target, shape, at_once, device, dtype, on_batch, graphs=graphs)
    else:
        through(there, x, target, shape, at_once, device, dtype, on_batch, graphs=graphs)


class _WithOffsets:
    """Cases with one more time step, which holds what was subtracted from each channel (see `data.offsets`)."""

    def __init__(self, cases: Conversion) -> None:
        n_cases, n_channels, n_times = cases.shape
        self.cases = cases
        self.shape = (n_cases, n_channels, n_times + 1)
        self.ndim = 3

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice, /) -> Array:
        values, offsets = self.cases.split(rows)
        return np.concatenate([values, offsets[..., None]], axis=2, dtype=np.float32)


class _Centred:
    """Cases without the offsets that float32 could not have held."""

    def __init__(self, cases: Conversion) -> None:
        self.cases = cases
        self.shape = cases.shape
        self.ndim = 3

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice, /) -> Array:
        return self.cases.split(rows).values


def _width(vector: Vector, n_channels: int) -> int:
    """Return how many numbers a pass holds for each time step: what stands beside comes after the network."""
    return max(vector.encoder.pass_width(n_channels), vector.composition.width // ARRAYS_PER_PASS)


def _refuse_length(vector: Vector, x: Conversion, device: torch.device) -> None:
    """Refuse cases of a model's own length, which a small file can claim, where a pass of two takes half the memory."""
    itemsize = home_of(vector.encoder)[1].itemsize
    refuse_beyond_half(
        free_memory() if device.type == "cpu" else allowed_bytes(device),
        2 * ARRAYS_PER_PASS * _width(vector, x.shape[1]) * x.length * itemsize,
        f"Cases of n_times={x.length} time steps, as this model's config.json wants them ({x.unequal}): a pass",
        "If it was trained on cases of that length, use it where there is more memory. If not, save the model again.",
    )


def cases_at_once(bytes_per_case: int, device: torch.device) -> int:
    """Say how many cases whose features take so many bytes go through an encoder together: two at least."""
    memory = WORKING_MEMORY.get(device.type, WORKING_MEMORY["cuda"])
    memory = min(memory, int(LARGEST_SHARE * allowed_bytes(device)))
    return max(2, memory // (ARRAYS_PER_PASS * max(1, bytes_per_case)))


def check_features(features: Mapping[str, Any]) -> None:
    """Refuse settings of the vectors that do not exist."""
    lookup(POOLINGS, features["pooling"], "pooling")
    for name in ("calibrate", "levels"):
        if not isinstance(features[name], bool | np.bool_):
            raise InputError(f"{name} must be True or False; got {features[name]!r}.")
    _check_bank(features["bank"])
    for name in ("n_components", "length"):
        count = features[name]
        if count and not (is_whole(count, 1) and count <= MOST_COMPONENTS):
            raise InputError(f"{name} must be a whole number up to {MOST_COMPONENTS:,}, 0 for none; got {count!r}.")
    if features["n_components"] and features["length"]:
        raise InputError("n_components is the most numbers of a vector, length their exact number. Set one to 0.")


def _check_bank(bank: Any) -> None:
    words = (AUTO, *MIXED)
    if bank in (None, 0, *words):
        return
    if not is_whole(bank, N_KERNELS) or bank > MOST_FEATURES:
        quoted = ", ".join(map(repr, words))
        raise InputError(f"bank must be {quoted}, 0, or {N_KERNELS} to {MOST_FEATURES:,} features; got {bank!r}.")


def fit_composition(
    encoder: Encoder,
    x: Collection,
    *,
    pooling: str,
    box: str = "",
    bank: int | str | None = None,
    levels: bool = False,
    n_components: int | None = None,
    length: int | None = None,
    seed: int = 0,
    **options: Unpack[PassOptions],
) -> Composition:
    """Fit the parts that are asked for on training cases (N, C, T), or of many on some that the seed draws.

    The options are those of the pass that a compression needs.
    """
    x = _some(x, ENOUGH_CASES if length else MOST_CASES, seed)
    composition = Composition()
    if box:
        composition.box = box_of(box, x.shape[1])
    _fit_kernels(composition, x, bank, seed)
    if levels:
        composition.levels = Levels(x.shape[1])
    n_numbers = length or n_components
    if n_numbers:
        z = embed(encoder, x, pooling=pooling, composer=composition, **options)
        _leave_out_rounding(z, x, composition)
        sizes = composition.sizes(pooled_dim(encoder, pooling))
        device = resolve_device(options.get("device", "auto"))
        composition.compression = Compression.fit(z, n_numbers, device, parts=sizes, exactly=bool(length))
    return composition


def _fit_kernels(composition: Composition, x: Collection, bank: int | str | None, seed: int) -> None:
    """Fit the bank to cases, and draw its contests, where they are asked for."""
    n_shares, n_groups = _sizes_of_bank(bank, x.shape[1])
    if n_shares:
        centred: Collection = _Centred(x) if isinstance(x, Conversion) and x.may_split else x
        composition.bank = Bank.fit(centred, n_shares, seed=seed)
    if n_groups:
        composition.contests = Contests.draw(x.shape[1], x.shape[2], seed=seed, n_groups=n_groups)


def _leave_out_rounding(z: np.ndarray, x: Collection, composition: Composition) -> None:
    """Make equal in vectors (N, F) what only rounding tells apart: standardised, it would count as the rest does."""
    if _are_all_equal(x):
        z[:] = z[0]  # equal cases have equal vectors
    if composition.levels is not None:
        last = slice(-composition.levels.n_features, None)  # where the levels stand
        z[:, last] *= composition.levels.differing(z[:, last])


def _sizes_of_bank(bank: int | str | None, n_channels: int) -> tuple[int, int]:
    """Return how many shares of time steps a bank has, and how many groups of kernels hold contests."""
    if bank == AUTO:
        bank = "mixed" if n_channels == 1 else "small"
    if isinstance(bank, str):
        return MIXED[bank]
    return bank or 0, 0


def _some(x: Collection, most: int, seed: int) -> Collection:
    """Return the cases, or of many as many as the seed draws."""
    if len(x) <= most:
        return x
    rows = np.sort(np.random.default_rng([seed, most]).choice(len(x), most, replace=False))
    if isinstance(x, Conversion) and x.may_split:
        return x.subset(rows)
    return _Drawn(x, rows)


class _Drawn:
    """Some cases of a collection, read one by one."""

    def __init__(self, x: Collection, index: Array) -> None:
        self.x = x
        self.index = index
        self.shape = (len(index), *x.shape[1:])
        self.ndim = 3

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: slice, /) -> Array:
        return np.concatenate([self.x[i : i + 1] for i in self.index[rows].tolist()])


def _are_all_equal(x: Collection) -> bool:
    cases: Collection = _WithOffsets(x) if isinstance(x, Conversion) and x.may_split else x
    return all(np.array_equal(cases[i : i + 1], cases[:1]) for i in range(1, len(cases)))
