"""POOLINGS: the rules that turn what an encoder gives for every time step into one vector. New ones go in there.

A case's vector does not depend on its company. A single case or a few short ones go through the encoder beside copies
of themselves, because other kernels may compute them alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from dicot.core.errors import lookup
from dicot.nets.encoders import Encoder
from dicot.nets.encoders.base import Prepared, is_exporting

Value = TypeVar("Value")
Network = Callable[[Tensor], Tensor]
ENOUGH_ROWS = 48  # of matrices, a row for each time step: products of fewer take their sums in another order


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

    @property
    def needs_layers(self) -> bool:
        """Whether it pools several layers, or layers by name, and not the last one alone."""
        return self.layers not in (None, "own")

    def chosen(self, layers: Mapping[str, Value]) -> dict[str, Value]:
        """Return what is pooled of what there is for every layer, by name."""
        names = layers if self.layers == "all" else self.layers or ()
        return {name: lookup(layers, name, "layer") for name in names}


def mean_over_time(h: Tensor) -> Tensor:
    """Return the mean over time, in float32 where the features have 16 bits."""
    return h.mean(dim=-1, dtype=torch.promote_types(h.dtype, torch.float32))


def max_over_time(h: Tensor) -> Tensor:
    return h.amax(dim=-1)


def deviation_over_time(h: Tensor) -> Tensor:
    """Return the standard deviation over time."""
    if h.device.type != "cpu" or h.requires_grad:
        # The gradient of the root below is infinite at 0; this one is 0 there.
        return h.std(dim=-1, correction=0)
    # On a CPU this is several times as fast as torch's own.
    centred = h - mean_over_time(h).to(h.dtype).unsqueeze(-1)
    return centred.square_().mean(dim=-1).sqrt_()


def mean_max_and_deviation(h: Tensor) -> Tensor:
    return torch.cat([mean_over_time(h), max_over_time(h), deviation_over_time(h)], dim=1)


def mean_of_every_layer(layers: Mapping[str, Tensor]) -> Tensor:
    return torch.cat([mean_over_time(h) for h in layers.values()], dim=1)


def unchanged(features: Tensor) -> Tensor:
    return features


POOLINGS: dict[str, Pooling] = {
    "own": Pooling("own", unchanged, "the vector that the encoder makes itself, its mean over time as a rule"),
    "mean": Pooling(None, mean_over_time, "mean over time"),
    "max": Pooling(None, max_over_time, "maximum over time"),
    "mean+max+std": Pooling(
        None, mean_max_and_deviation, "mean, maximum and standard deviation over time, side by side"
    ),
    "layers": Pooling("all", mean_of_every_layer, "mean over time of every layer, side by side"),
}
NO_POOLING = Pooling(None, unchanged)


def pooling_named(name: str | None) -> Pooling:
    """Return the rule of this name; None keeps the time steps."""
    return NO_POOLING if name is None else lookup(POOLINGS, name, "pooling")


def pooled(encoder: Encoder, x: Tensor, pooling: str | Pooling) -> Tensor:
    """Compute (B, C, T) -> (B, vector) in the mode the encoder is in, with gradients: what training pools by."""
    rule = pooling_named(pooling) if isinstance(pooling, str) else pooling
    if rule.layers == "own":
        return encoder.embed(x)
    features = rule.chosen(encoder.features(x)) if rule.needs_layers else encoder(x)
    return rule.pool(features)


def pooled_dim(encoder: Encoder, pooling: str) -> int:
    """Return the length of the vectors that `embed` makes with this pooling."""
    rule = pooling_named(pooling)
    if rule.layers == "own":
        return encoder.embed_dim
    if not rule.needs_layers:
        return int(rule.pool(torch.zeros(1, encoder.dim, 1)).shape[1])
    layers = {name: torch.zeros(1, dim, 1) for name, dim in encoder.layer_dims().items()}
    return int(rule.pool(rule.chosen(layers)).shape[1])


def own_vectors(encoder: Encoder, x: Tensor) -> Tensor:
    """Compute (B, C, T) -> (B, embed_dim), the vectors that an encoder makes itself."""
    return encoded(encoder, x, POOLINGS["own"])


def encoded(encoder: Encoder, x: Tensor, rule: Pooling, dtype: torch.dtype | None = None) -> Tensor:
    """Compute (B, C, T) -> (B, vector), or what `rule` gives; with a `dtype` convolutions are computed in that type."""
    if is_exporting():
        return pooled(encoder, x, rule)
    if rule.needs_layers:
        return _beside_copies(partial(_layers_pooled, encoder, rule, dtype), x)
    with encoder.prepared(x.shape[2], dtype, pooled=rule.layers == "own") as prepared:
        if encoder.inner_modules().have_hooks():
            # To find out whether a single case has the same bits alone would call them once more.
            prepared.same_alone = False
        return _pooled(prepared, rule.pool, x)


def _layers_pooled(encoder: Encoder, rule: Pooling, dtype: torch.dtype | None, x: Tensor) -> Tensor:
    """Pool the features of several layers once all are there."""
    with torch.autocast(x.device.type, dtype, enabled=dtype is not None):
        features = encoder.features(x)
    return rule.pool(rule.chosen(features))


def _beside_copies(network: Network, x: Tensor) -> Tensor:
    """Compute vectors, those of a single case or of a few short ones beside copies."""
    enough = max(2, ENOUGH_ROWS // x.shape[2])
    if len(x) >= enough:
        return network(x)
    return network(x.repeat(enough, 1, 1))[: len(x)]


def _pooled(prepared: Prepared, pool: Network, x: Tensor) -> Tensor:
    """Pool the last layer; the features of a single case are doubled for the pooling, which costs little."""
    network = prepared.network
    if len(x) > 1 or not _is_same_alone(prepared, x):
        return _beside_copies(lambda cases: pool(network(cases)), x)
    h = network(x)
    if h.ndim == 2:  # the encoder's own vector
        return h
    # Two cases would lie in memory as one does: with time first, or with the case first.
    is_time_first = h.permute(2, 0, 1).is_contiguous()
    twice = h.permute(2, 0, 1).repeat(1, 2, 1).permute(1, 2, 0) if is_time_first else h.repeat(2, 1, 1)
    return pool(twice)[:1]


def _is_same_alone(prepared: Prepared, x: Tensor) -> bool:
    """Tell whether the network gives a single case the bits that it has among others; tried out once."""
    if prepared.same_alone is None:
        probe = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).to(x)
        alone = prepared.network(probe)
        prepared.same_alone = torch.equal(alone, _beside_copies(prepared.network, probe))
    return prepared.same_alone
