"""From cases to vectors: passes through an encoder, batch by batch, on a device.

POOLINGS, the rules that turn what an encoder gives for every time step into one vector, is where one is registered.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from scipy.linalg import eigh
from scipy.linalg.blas import drot
from torch import Tensor

from dicot.core.device import allowed_bytes, float32_arithmetic, resolve_device
from dicot.core.errors import InputError, is_whole, lookup
from dicot.core.processes.budget import memory_of, refuse_beyond
from dicot.core.settings import how_to_prepare
from dicot.core.transfer import ThreadedArray, through
from dicot.data.cases import Array, Collection
from dicot.data.conversion import Conversion
from dicot.model.box import in_box
from dicot.model.files import read_config, read_weights
from dicot.model.kernels import MOST_FEATURES, N_GROUPS, N_KERNELS, Bank, Contests
from dicot.model.levels import Levels
from dicot.nets.encoders import Encoder, Universal
from dicot.nets.encoders.base import Prepared, home_of

Value = TypeVar("Value")
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
LEVELS_COUNT = 0.4  # as much as any other part of a vector that is compressed
MOST_COMPONENTS = 2_048
NO_SPREAD = 3e-7  # deviation relative to the mean that float32 makes of a constant by rounding
ENOUGH_ROWS = 48  # of matrices, a row for each time step: products of fewer take their sums in another order
NO_VARIANCE = 1e-10  # of a component, relative to the first
Network = Callable[[Tensor], Any]
Composed = Callable[..., Any]  # a network of cases (B, C, T) and, where they have some, their offsets (B, C)


@dataclass(frozen=True, eq=False)
class Compression:
    """(x - mean) @ weight @ turn. The numbers have mean 0 and deviation 1 over the training cases.

    They are the principal components, rotated so that each has the same variance: distances and angles are those of the
    components, and a head that standardises its input, as most do, leaves them alone. On the components themselves it
    would raise the last ones, which are mostly noise, to the size of the first.
    """

    mean: Tensor  # (F,)
    weight: Tensor  # (F, n), or (F, r) where there are fewer components than numbers
    turn: Tensor | None = None  # (r, n), there

    def __post_init__(self) -> None:
        # Each column in one piece: a single case would otherwise wait for memory twice as long.
        object.__setattr__(self, "weight", self.weight.T.contiguous().T)

    @classmethod
    def fit(
        cls,
        z: Array,
        n_components: int,
        device: torch.device | str = "cpu",
        *,
        parts: Sequence[tuple[int, float]] | None = None,
        exactly: bool = False,
    ) -> "Compression":
        """Find at most n_components numbers for vectors (N, F), and never N or more; computed in float64.

        parts: lengths of the parts that a vector consists of, and how much each counts, however many features it has;
        without them every feature counts alike.
        exactly: n_components numbers, whatever N is. They have the distances and angles that fewer would have.
        """
        x = torch.as_tensor(z).to(device).double()
        mean, deviation = x.mean(dim=0), x.std(dim=0, correction=0)
        if not mean.isfinite().all():
            raise InputError(
                f"The embeddings of {int((~x.isfinite().all(dim=1)).sum())} training case(s) are not finite, so that "
                f"nothing can be fitted on them. Clip the values, or fit with {how_to_prepare('scale', 'dataset')}."
            )
        spread = deviation > NO_SPREAD * mean.abs()
        if not spread.any():
            raise InputError(
                f"n_components={n_components} needs training cases that differ from each other; got "
                f"n_samples={len(x)}, all with the same vector. Pass others, or n_components=0."
            )
        scale = torch.where(spread, 1 / torch.where(spread, deviation, 1.0), 0.0)  # one without spread plays no part
        if parts is not None:
            sizes = [size for size, _ in parts]
            counts = [own.sum().clamp_min(1) for own in torch.split_with_sizes(spread, sizes)]
            shares = torch.tensor([weight for _, weight in parts], dtype=x.dtype, device=x.device)
            roots = torch.stack(counts).sqrt() / shares
            scale = scale / roots.repeat_interleave(torch.tensor(sizes, device=x.device))
        components, variances = _principal((x - mean) * scale, n_components)
        lacking = n_components - len(variances) if exactly else 0
        variances = F.pad(variances, (0, lacking))
        # Few components are turned into many numbers behind the product, which is the smaller for it.
        own = np.eye(n_components, len(components)) if lacking else components.cpu().numpy()
        turned = torch.from_numpy(equalised(own, variances.cpu().numpy()))
        rows = components if lacking else turned.to(x.device)
        weight = ((rows / variances.mean().sqrt()).T * scale.unsqueeze(1)).float().contiguous().cpu()
        return cls(mean.float().cpu(), weight, turned.T.float().contiguous() if lacking else None)

    @property
    def n_components(self) -> int:
        return (self.weight if self.turn is None else self.turn).shape[1]

    def to(self, like: Tensor) -> "Compression":
        """Return the compression for vectors on the device and of the type of `like`."""
        if (self.weight.device, self.weight.dtype) == (like.device, like.dtype):
            return self
        return Compression(**{name: tensor.to(like) for name, tensor in self.tensors().items()})

    def transform(self, z: Tensor) -> Tensor:
        """Compute (B, F) -> (B, n), four rows at a time: those that are left over would be rounded in another way."""
        rows = F.pad(z - self.mean, (0, 0, 0, -len(z) % 4)) @ self.weight
        return (rows if self.turn is None else rows @ self.turn)[: len(z)]

    def tensors(self) -> dict[str, Tensor]:
        return {name: tensor.contiguous() for name, tensor in vars(self).items() if tensor is not None}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Compression":
        return cls(**tensors)


@dataclass(frozen=True, eq=False)
class Boxed:
    """The vector of a universal encoder, which nobody trains any more."""

    encoder: Universal

    @classmethod
    def load(cls, model: str, n_channels: int) -> "Boxed":
        """Take the encoder of a model in the box, or of a folder, for so many channels."""
        folder = in_box(model)
        encoder = Universal(n_channels, read_config(folder)["encoder"]["dim"])
        encoder.load_state_dict(read_weights(folder, encoder.state_dict()))
        return cls(encoder.eval())

    @property
    def n_features(self) -> int:
        return self.encoder.embed_dim

    @property
    def n_channels(self) -> int:
        return self.encoder.n_channels

    @property
    def width(self) -> int:
        return self.encoder.dim * self.n_channels // 4

    def to(self, like: Tensor) -> "Boxed":
        """Return the encoder for cases on the device and of the type of `like`."""
        if home_of(self.encoder) == (like.device, like.dtype):
            return self
        return Boxed(deepcopy(self.encoder).to(like))

    def transform(self, x: Tensor) -> Tensor:
        """Compute (B, C, T) -> (B, n_features); a case does not depend on the others."""
        with self.encoder.prepared(x.shape[2], pooled=True) as prepared:
            return _pooled(prepared, POOLINGS["own"].pool, x)

    def tensors(self) -> dict[str, Tensor]:
        return {"form": torch.tensor([self.n_channels, self.encoder.dim]), **self.encoder.state_dict()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Boxed":
        encoder = Universal(*tensors["form"].tolist())
        encoder.load_state_dict({name: tensor for name, tensor in tensors.items() if name != "form"})
        return cls(encoder.eval())


@dataclass(frozen=True, eq=False)
class Composition:
    """Pooled features, what stands beside them, all of it compressed; any part may be off.

    A part computes by `transform` what `n_features` counts, where `to` brings it, and keeps `width` numbers for each
    time step of a case in memory at once. `tensors` are what a file keeps of it, and `from_tensors` takes them back.
    """

    box: Boxed | None = None
    bank: Bank | None = None
    contests: Contests | None = None
    levels: Levels | None = None
    compression: Compression | None = None

    @property
    def beside(self) -> list[Boxed | Bank | Contests | Levels]:
        return [part for part in (self.box, self.bank, self.contests, self.levels) if part is not None]

    def dim(self, pooled: int) -> int:
        """Return the length of a vector whose pooled features are so many."""
        if self.compression is not None:
            return self.compression.n_components
        return sum(size for size, _ in self.parts(pooled))

    def parts(self, pooled: int) -> list[tuple[int, float]]:
        """Return the number of features of the encoder and of what stands beside it, and how much each part counts."""
        beside = [(part.n_features, LEVELS_COUNT if isinstance(part, Levels) else 1.0) for part in self.beside]
        return [(pooled, 1.0), *beside]

    @property
    def width(self) -> int:
        """How many numbers for each time step of a case are in memory at once."""
        return max((part.width for part in self.beside), default=0)

    def around(self, network: Network, like: Tensor, *, needs_levels: bool = True) -> "Composed":
        """Return the function (B, C, T) -> (B, vector) around one that pools, for cases on the device of `like`.

        It takes offsets (B, C) of the channels too (see `data.offsets`). Only the levels see them, and the network
        where it needs levels; kernels whose taps add up to zero do not.
        """
        beside = [part.to(like) for part in self.beside]
        compression = None if self.compression is None else self.compression.to(like)

        def compute(x: Tensor, offsets: Tensor | None = None) -> Tensor:
            with_levels = x if offsets is None or not needs_levels else x + offsets.unsqueeze(2)
            pooled: Tensor = network(with_levels)
            if not beside and compression is None:
                return pooled
            parts = [pooled]
            for part in beside:
                parts.append(part.transform(x, offsets) if isinstance(part, Levels) else part.transform(x))
            z = torch.cat([part.to(like.dtype) for part in parts], dim=1)
            return z if compression is None else compression.transform(z)

        return compute

    def tensors(self) -> dict[str, Tensor]:
        """Return what a file keeps, by name; nothing where there is nothing beside the pooled features."""
        parts = {name: getattr(self, name) for name in PARTS if getattr(self, name) is not None}
        return {f"{name}.{key}": tensor for name, part in parts.items() for key, tensor in part.tensors().items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], n_channels: int, pooled: int) -> "Composition":
        """Make a composition of what `tensors` gave; refuse parts that do not fit so many channels and features."""
        kept: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, key = name.partition(".")
            kept.setdefault(part, {})[key] = tensor
        made = cls(**{name: PARTS[name].from_tensors(own) for name, own in kept.items()})
        sizes = set() if made.compression is None else {len(made.compression.mean), len(made.compression.weight)}
        whole = replace(made, compression=None).dim(pooled)
        if any(part.n_channels != n_channels for part in made.beside) or sizes - {whole}:
            raise InputError(f"the parts beside its encoder are not for {n_channels} channels and {pooled} features")
        return made


PARTS: dict[str, Any] = {"box": Boxed, "bank": Bank, "contests": Contests, "levels": Levels, "compression": Compression}
PLAIN = Composition()  # the pooled features alone


@dataclass(frozen=True)
class Pooling:
    """A rule that turns features into one vector per case.

    layers: None for the features of the last layer, which `pool` is given as a tensor (B, F, T); the names of layers,
    or "all", for a dictionary of such tensors by name (see `Encoder.features`; their F and T may differ); "own" for the
    vector that the encoder makes itself (`Encoder.embed`).
    pool: gives (B, vector). A case's row must not depend on the others; zeros (1, F, 1) must give the vector's length.
    summary: one line for `dicot list poolings`.
    """

    layers: tuple[str, ...] | Literal["all", "own"] | None
    pool: Callable[[Any], Tensor]
    summary: str = ""

    def chosen(self, layers: Mapping[str, Value]) -> dict[str, Value]:
        """Return what is pooled of what there is for every layer, by name."""
        return {name: lookup(layers, name, "layer") for name in (layers if self.layers == "all" else self.layers or ())}


def _mean(h: Tensor) -> Tensor:
    return h.mean(dim=-1, dtype=torch.promote_types(h.dtype, torch.float32))


def _std(h: Tensor) -> Tensor:
    if h.device.type != "cpu" or h.requires_grad:  # its gradient is that of a root, infinite at 0, made 0 there
        return h.std(dim=-1, correction=0)
    centred = h - _mean(h).to(h.dtype).unsqueeze(-1)  # several times as fast on a CPU
    return centred.square_().mean(dim=-1).sqrt_()


def _side_by_side(*parts: Tensor) -> Tensor:
    return torch.cat(parts, dim=1)


POOLINGS: dict[str, Pooling] = {
    "own": Pooling("own", lambda z: z, "the vector that the encoder makes itself, its mean over time as a rule"),
    "mean": Pooling(None, _mean, "mean over time"),
    "max": Pooling(None, lambda h: h.amax(dim=-1), "maximum over time"),
    "mean+max+std": Pooling(
        None,
        lambda h: _side_by_side(_mean(h), h.amax(dim=-1), _std(h)),
        "mean, maximum and standard deviation over time, side by side",
    ),
    "layers": Pooling(
        "all", lambda layers: _side_by_side(*map(_mean, layers.values())), "mean over time of every layer, side by side"
    ),
}
NO_POOLING = Pooling(None, lambda h: h)


def pooling_named(name: str | None) -> Pooling:
    """Return the rule of this name; None keeps the time steps."""
    return NO_POOLING if name is None else lookup(POOLINGS, name, "pooling")


def pooled(encoder: Encoder, x: Tensor, pooling: str) -> Tensor:
    """Compute (B, C, T) -> (B, vector) in the mode the encoder is in, with gradients: what training pools by."""
    rule = pooling_named(pooling)
    if rule.layers == "own":
        return encoder.embed(x)
    return rule.pool(encoder(x) if rule.layers is None else rule.chosen(encoder.features(x)))


def pooled_dim(encoder: Encoder, pooling: str) -> int:
    """Return the length of the vectors that `embed` makes with this pooling."""
    rule = pooling_named(pooling)
    if rule.layers == "own":
        return encoder.embed_dim
    if rule.layers is None:
        return int(rule.pool(torch.zeros(1, encoder.dim, 1)).shape[1])
    layers = {name: torch.zeros(1, dim, 1) for name, dim in encoder.layer_dims().items()}
    return int(rule.pool(rule.chosen(layers)).shape[1])


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
    dtype = torch.empty(0, dtype=home_of(encoder)[1]).numpy().dtype
    y = np.empty((len(x), *_shape(encoder, x.shape[2], pooling, composer or PLAIN)), dtype)
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
    rule, composer = pooling_named(pooling), composer or PLAIN
    lookup(dict.fromkeys(EMBED_PRECISIONS), precision, "precision")
    encoder.check_shape(x.shape)
    device = resolve_device(device)
    if isinstance(x, Conversion) and x.length > x.lengths[x.index].max():
        _refuse_length(encoder, x, device, composer)
    shape = _shape(encoder, x.shape[2], pooling, composer)
    home, dtype = home_of(encoder)
    modules = encoder.inner_modules()
    in_training = [module for module in modules.all if module.training]
    if in_training:
        encoder.eval()
    if home != device:
        encoder.to(device)
    try:
        halved = torch.bfloat16 if precision == "bf16" and device.type == "cuda" else None
        with torch.inference_mode(), float32_arithmetic(device, fast=precision != "float32"):
            per_case = _widest(encoder, composer, x.shape[1]) * x.shape[2] * (halved or dtype).itemsize
            if rule.layers not in (None, "own"):
                per_case += per_case * len(encoder.layer_dims()) // ARRAYS_PER_PASS
            at_once = min(batch_size, cases_at_once(per_case, device))
            with _pooling(encoder, x.shape[2], rule, halved) as compute:
                like = torch.empty(0, device=device, dtype=dtype)
                composed = composer.around(compute, like, needs_levels=encoder.needs_levels)
                graphs = not modules.have_hooks()  # a replay calls none
                if isinstance(x, Conversion) and x.may_split:
                    composed, x = partial(_without_offsets, composed), _WithOffsets(x)
                through(composed, x, target, shape, at_once, device, dtype, on_batch, graphs=graphs)
    finally:
        if home != device:
            encoder.to(home)
            encoder.forget_prepared()  # its weights are the device's, and it would only use memory there
        for module in in_training:
            module.training = True


class _WithOffsets:
    """Cases with one more time step, which holds what was subtracted from each channel (see `data.offsets`)."""

    def __init__(self, cases: Conversion) -> None:
        n_cases, n_channels, n_times = cases.shape
        self.cases, self.shape, self.ndim = cases, (n_cases, n_channels, n_times + 1), 3

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice, /) -> Array:
        values, offsets = self.cases.split(rows)
        return np.concatenate([values, offsets[..., None]], axis=2, dtype=np.float32)


class _Centred:
    """Cases without the offsets that float32 could not have held."""

    def __init__(self, cases: Conversion) -> None:
        self.cases, self.shape, self.ndim = cases, cases.shape, 3

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice, /) -> Array:
        return self.cases.split(rows).values


def _without_offsets(composed: Composed, x: Tensor) -> Any:
    """Call a network with cases that `_WithOffsets` gave."""
    return composed(x[..., :-1].contiguous(), x[..., -1])


def _widest(encoder: Encoder, composer: Composition, n_channels: int) -> int:
    return max(encoder.pass_width(n_channels), composer.width // ARRAYS_PER_PASS)  # after the network, not beside it


def _refuse_length(encoder: Encoder, x: Conversion, device: torch.device, composer: Composition) -> None:
    """Refuse cases of a model's own length, which a small file can claim, where a pass of two takes half the memory."""
    memory = memory_of(None) if device.type == "cpu" else allowed_bytes(device) // 2
    refuse_beyond(
        memory,
        2 * ARRAYS_PER_PASS * _widest(encoder, composer, x.shape[1]) * x.length * home_of(encoder)[1].itemsize,
        f"Cases of n_times={x.length} time steps, as this model's config.json wants them ({x.unequal}): a pass",
        "If it was trained on cases of that length, use it where there is more memory. If not, save the model again.",
        "half of what is free",
    )


@contextmanager
def _pooling(encoder: Encoder, n_times: int, rule: Pooling, dtype: torch.dtype | None) -> Iterator[Network]:
    """Give the function (B, C, T) -> (B, vector) for an encoder in eval mode."""
    if rule.layers not in (None, "own"):
        yield partial(_in_company, partial(_pooled_together, encoder, rule, dtype))
        return
    with encoder.prepared(n_times, dtype, pooled=rule.layers == "own") as prepared:
        if encoder.inner_modules().have_hooks():
            prepared.same_alone = False  # trying it out would call them once more
        yield partial(_pooled, prepared, rule.pool)


def _in_company(network: Network, batch: Tensor) -> Tensor:
    """Compute vectors, a single case or a few short ones beside copies: alone, other kernels may do it."""
    enough = max(2, ENOUGH_ROWS // batch.shape[2])
    vectors: Tensor = network(batch.repeat(enough, 1, 1) if len(batch) < enough else batch)
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
        prepared.same_alone = torch.equal(network(probe), _in_company(network, probe))
    if len(batch) > 1 or not prepared.same_alone:
        return _in_company(lambda x: pool(network(x)), batch)
    h = network(batch)  # (1, F, T), or the encoder's own vector
    if h.ndim == 2:
        return h
    time_first = h.permute(2, 0, 1).is_contiguous()  # then two cases would lie in memory so, too
    both = h.permute(2, 0, 1).repeat(1, 2, 1).permute(1, 2, 0) if time_first else h.repeat(2, 1, 1)
    vectors: Tensor = pool(both)
    return vectors[:1]


def _shape(encoder: Encoder, n_times: int, pooling: str | None, composer: Composition) -> tuple[int, ...]:
    """Return the shape of what `embed` gives for one case."""
    if pooling is None:
        return encoder.dim, encoder.out_length(n_times)
    return (composer.dim(pooled_dim(encoder, pooling)),)


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
    bank = features["bank"]
    if bank not in (None, 0, AUTO, *MIXED) and not (is_whole(bank, N_KERNELS) and bank <= MOST_FEATURES):
        known = ", ".join(map(repr, (AUTO, *MIXED)))
        raise InputError(f"bank must be {known}, 0, or {N_KERNELS} to {MOST_FEATURES:,} features; got {bank!r}.")
    for name in ("n_components", "length"):
        if (count := features[name]) and not (is_whole(count, 1) and count <= MOST_COMPONENTS):
            raise InputError(f"{name} must be a whole number up to {MOST_COMPONENTS:,}, 0 for none; got {count!r}.")
    if features["n_components"] and features["length"]:
        raise InputError("n_components is the most numbers of a vector, length their exact number. Set one to 0.")


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
    most = ENOUGH_CASES if length else MOST_CASES
    if len(x) > most:
        drawn = np.sort(np.random.default_rng([seed, most]).choice(len(x), most, replace=False))
        x = x.subset(drawn) if isinstance(x, Conversion) and x.may_split else _Drawn(x, drawn)
    centred: Collection = _Centred(x) if isinstance(x, Conversion) and x.may_split else x
    distinct: Collection = _WithOffsets(x) if isinstance(x, Conversion) and x.may_split else x
    if bank == AUTO:
        bank = "mixed" if x.shape[1] == 1 else "small"
    n_shares, n_groups = MIXED[bank] if isinstance(bank, str) else (bank, 0)
    made = Composition(
        Boxed.load(box, x.shape[1]) if box else None,
        Bank.fit(centred, n_shares, seed=seed) if n_shares else None,
        Contests.draw(x.shape[1], x.shape[2], seed=seed, n_groups=n_groups) if n_groups else None,
        Levels(x.shape[1]) if levels else None,
    )
    if not n_components and not length:
        return made
    z = embed(encoder, x, pooling=pooling, composer=made, **options)
    if all(np.array_equal(distinct[i : i + 1], distinct[:1]) for i in range(1, len(x))):
        z[:] = z[0]  # equal cases have equal vectors, whatever rounding makes of them
    if made.levels is not None:  # they stand last; standardised, what is only rounding would count as much as the rest
        z[:, -made.levels.n_features :] *= made.levels.differing(z[:, -made.levels.n_features :])
    parts, device = made.parts(pooled_dim(encoder, pooling)), resolve_device(options.get("device", "auto"))
    fitted = Compression.fit(z, length or n_components or 0, device, parts=parts, exactly=bool(length))
    return replace(made, compression=fitted)


class _Drawn:
    """Some cases of a collection, read one by one."""

    def __init__(self, x: Collection, index: Array) -> None:
        self.x, self.index = x, index
        self.shape, self.ndim = (len(index), *x.shape[1:]), 3

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: slice, /) -> Array:
        return np.concatenate([self.x[i : i + 1] for i in self.index[rows].tolist()])


def _principal(x: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Return the principal components of centred vectors (N, F) as rows (n, F), and their variances, largest first."""
    n_cases, n_features = x.shape
    wide = n_features > n_cases  # then the cases' products are the smaller matrix with the same eigenvalues
    products = (x @ x.T if wide else x.T @ x) / n_cases
    if len(products) > 2 * most and not products.is_cuda:  # the largest alone take half the time
        largest = (len(products) - most, len(products) - 1)
        found = eigh(products.numpy(), subset_by_index=largest, overwrite_a=True, check_finite=False)
        variances, vectors = map(torch.from_numpy, found)
    else:
        variances, vectors = torch.linalg.eigh(products)
    n = min(most, n_cases - 1, int((variances > NO_VARIANCE * variances[-1]).sum()))
    variances, vectors = variances.flip(0)[:n], vectors.flip(1)[:, :n]
    rows = vectors.T @ x if wide else vectors.T
    rows = rows / rows.norm(dim=1, keepdim=True)
    strongest = rows.gather(1, rows.abs().argmax(dim=1, keepdim=True))
    return rows * strongest.sign(), variances  # an eigenvector has no sign of its own


def equalised(components: Array, variances: Array) -> Array:
    """Rotate components (n, F), largest variance first, so that all have the mean variance.

    Each rotation turns a pair, one above the mean and one below, by the angle that brings one of them there; the others
    stay uncorrelated with what is left of the pair, so that n - 1 rotations do.
    """
    rows, rest = np.array(components, np.float64, order="C"), variances.astype(np.float64)
    target = float(variances.mean())
    high, low = 0, len(rows) - 1
    while high < low:
        # Whichever of the two is nearer to the mean gets there, the other takes up the difference. The last two are
        # equally near, which rounding must not decide.
        gap = rest[high] - rest[low]
        if gap <= 0:
            break
        done, other = (low, high) if target - rest[low] <= (1 + NO_VARIANCE) * (rest[high] - target) else (high, low)
        share = min(1.0, max(0.0, (target - rest[done]) / (rest[other] - rest[done])))
        drot(rows[done], rows[other], np.sqrt(1 - share), np.sqrt(share), overwrite_x=True, overwrite_y=True)
        rest[other] += rest[done] - target
        rest[done] = target
        if done == low:
            low -= 1
        else:
            high += 1
    return rows
