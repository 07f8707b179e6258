"""What a vector holds beside the encoder's pooled features, and how it is compressed; fitted without labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dicot.core.errors import InputError, is_whole
from dicot.core.gpu.device import resolve_device
from dicot.data.cases import Array, Collection, pieces, release
from dicot.model.embedding.bank import MOST_FEATURES, N_KERNELS, Bank
from dicot.model.embedding.compression import MOST_COMPONENTS, Compression
from dicot.model.embedding.contests import Contests
from dicot.model.embedding.passes import Network, embed
from dicot.model.embedding.poolings import pooled_dim
from dicot.nets.encoders import Encoder

MOST_CASES = 10_000  # that anything is fitted on: as many vectors are in memory at once, in float64
MIXED = "mixed"  # the bank that has contests between kernels beside the shares of time steps
SHARES_OF_MIXED = 2_016
PARTS: dict[str, Any] = {"bank": Bank, "contests": Contests, "compression": Compression}


@dataclass(frozen=True, eq=False)
class Composition:
    """Pooled features, those of the first difference, a bank's, contests', all of it compressed; any may be off.

    difference: (2, C), what a channel's differences are multiplied by, and what is then added: they have the training
    set's mean and deviation again, as the encoder knows it
    """

    difference: Tensor | None = None
    bank: Bank | None = None
    contests: Contests | None = None
    compression: Compression | None = None

    def dim(self, pooled: int) -> int:
        """Return the length of a vector whose pooled features are so many."""
        return sum(self.parts(pooled)) if self.compression is None else self.compression.n_components

    def parts(self, pooled: int) -> list[int]:
        """Return how many features the encoder, the bank and the contests have before they are compressed."""
        beside = [part.n_features for part in (self.bank, self.contests) if part is not None]
        return [pooled * (1 if self.difference is None else 2), *beside]

    @property
    def width(self) -> int:
        """How many numbers for each time step of a case are in memory at once."""
        return max((part.width for part in (self.bank, self.contests) if part is not None), default=0)

    def around(self, network: Network, like: Tensor) -> Network:
        """Return the function (B, C, T) -> (B, vector) around one that pools, for cases on the device of `like`."""
        difference = None if self.difference is None else self.difference.to(like).unsqueeze(2)
        beside = [part.to(like) for part in (self.bank, self.contests) if part is not None]
        compression = None if self.compression is None else self.compression.to(like)

        def compute(x: Tensor) -> Tensor:
            parts = [network(x)]
            if difference is not None:
                parts.append(network(torch.addcmul(difference[1], first_difference(x), difference[0])))
            parts += [part.transform(x) for part in beside]
            z = torch.cat([part.to(like.dtype) for part in parts], dim=1)
            return z if compression is None else compression.transform(z)

        return compute

    def tensors(self) -> dict[str, Tensor]:
        """Return what a file keeps, by name; nothing where there is nothing beside the pooled features."""
        tensors = {} if self.difference is None else {"difference": self.difference}
        for name in PARTS:
            if (part := getattr(self, name)) is not None:
                tensors |= {f"{name}.{key}": tensor for key, tensor in part.tensors().items()}
        return tensors

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Composition":
        """Make a composition of what `tensors` gave."""
        kept: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, key = name.partition(".")
            kept.setdefault(part, {})[key] = tensor
        difference = kept.pop("difference", {}).get("")
        if strange := sorted(kept.keys() - PARTS.keys()):
            raise InputError(f"{strange[0]!r} is no part of what stands beside an encoder")
        return cls(difference, **{name: PARTS[name].from_tensors(own) for name, own in kept.items()})

    def check(self, encoder: Encoder, pooling: str, n_times: int) -> None:
        """Refuse parts that do not fit the encoder, as those of a damaged file."""
        n_channels = encoder.n_channels
        if self.difference is not None and (
            self.difference.shape != (2, n_channels)
            or self.difference.dtype != torch.float32
            or not self.difference.isfinite().all()
        ):
            raise InputError(f"the scale of differences is not two finite numbers for each of {n_channels} channels")
        for name, part in {"bank": self.bank, "contests": self.contests}.items():
            if part is not None and part.n_channels != n_channels:
                raise InputError(f"the {name} has kernels for {part.n_channels} channels, the encoder for {n_channels}")
            if part is not None and max(part.dilations) > max(1, n_times // 8):
                raise InputError(f"the kernels of the {name} reach beyond the {n_times} time steps of training cases")
        joined = sum(self.parts(pooled_dim(encoder, pooling)))
        if self.compression is not None and len(self.compression.mean) != joined:
            raise InputError(f"the compression takes {len(self.compression.mean)} numbers; there are {joined}")


def check_parts(bank: Any, difference: Any, n_components: Any) -> None:
    """Refuse settings that no composition has."""
    for holds, expected in (
        (
            bank in (None, 0, MIXED) or (is_whole(bank, N_KERNELS) and bank <= MOST_FEATURES),
            f"bank must be {MIXED!r}, 0, or {N_KERNELS} to {MOST_FEATURES:,} features; got {bank!r}",
        ),
        (isinstance(difference, bool | np.bool_), f"difference must be True or False; got {difference!r}"),
        (
            n_components in (None, 0) or (is_whole(n_components, 1) and n_components <= MOST_COMPONENTS),
            f"n_components must be a whole number up to {MOST_COMPONENTS:,}, 0 for none; got {n_components!r}",
        ),
    ):
        if not holds:
            raise InputError(f"{expected}.")


def fit_composition(
    encoder: Encoder,
    x: Collection,
    *,
    pooling: str,
    bank: int | str | None = None,
    difference: bool = False,
    n_components: int | None = None,
    seed: int = 0,
    device: str | torch.device = "auto",
    precision: str = "float32",
    on_batch: Callable[[int], None] | None = None,
) -> Composition:
    """Fit the parts that are asked for on training cases (N, C, T), or on 10,000 of them that the seed draws.

    `on_batch` is told how many cases were embedded, which only a compression needs.
    """
    check_parts(bank, difference, n_components)
    x = _some(x, seed)
    n_shares = SHARES_OF_MIXED if isinstance(bank, str) else bank
    composition = Composition(
        _difference_scale(x) if difference else None,
        Bank.fit(x, n_shares, seed=seed) if n_shares else None,
        Contests.draw(x.shape[1], x.shape[2], seed=seed) if bank == MIXED else None,
    )
    if not n_components:
        return composition
    z = embed(encoder, x, pooling=pooling, composer=composition, device=device, precision=precision, on_batch=on_batch)
    parts = composition.parts(pooled_dim(encoder, pooling))
    return replace(composition, compression=Compression.fit(z, n_components, resolve_device(device), parts=parts))


def first_difference(x: Tensor) -> Tensor:
    """Return what each time step adds to the one before it, (B, C, T) -> (B, C, T); the first is given the second's."""
    steps = x.diff(dim=2)
    return torch.cat([steps[..., :1], steps], dim=2) if x.shape[2] > 1 else torch.zeros_like(x)


def _difference_scale(x: Collection) -> Tensor:
    """Return (2, C): factor and shift that give differences the mean and deviation of the cases themselves."""
    own = _moments(x, lambda block: block)
    other = _moments(x, lambda block: first_difference(torch.from_numpy(block)).numpy())
    flat = other[1] <= 0
    factor = np.where(flat, 0.0, own[1] / np.where(flat, 1.0, other[1]))
    return torch.from_numpy(np.stack([factor, own[0] - factor * other[0]])).float()


def _moments(x: Collection, of: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Return mean and deviation of every channel of of(x), looked at piece by piece."""

    def mean_of(what: Callable[[Array], Array]) -> Array:
        total = np.zeros(x.shape[1])
        for rows in pieces(x.shape):
            block = x[rows]
            total += what(np.array(block, np.float64)).sum(axis=(0, 2))
            release(block)
        return total / (len(x) * x.shape[2])

    mean = mean_of(of)
    return mean, np.sqrt(mean_of(lambda block: np.square(of(block) - mean[:, None])))


class _Drawn:
    """Some cases of a collection, read one by one."""

    def __init__(self, x: Collection, index: Array) -> None:
        self.x, self.index = x, index
        self.shape, self.ndim = (len(index), *x.shape[1:]), 3

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: slice, /) -> Array:
        return np.concatenate([self.x[i : i + 1] for i in self.index[rows].tolist()])


def _some(x: Collection, seed: int) -> Collection:
    if len(x) <= MOST_CASES:
        return x
    return _Drawn(x, np.sort(np.random.default_rng([seed, MOST_CASES]).choice(len(x), MOST_CASES, replace=False)))
