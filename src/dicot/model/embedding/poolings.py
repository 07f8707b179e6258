"""Poolings: rules that turn what an encoder gives for every time step into one vector per case."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from dicot.core.errors import lookup
from dicot.nets.encoders import Encoder


@dataclass(frozen=True)
class Pooling:
    """A rule that turns features into one vector per case.

    layers: None for the features of the last layer, which `pool` is given as a tensor (B, F, T); the names of layers,
    "all", or "centred" (see `Encoder.centred_layers`), for a dictionary of such tensors by name (see
    `Encoder.features`; their F and T may differ).
    pool: gives (B, vector). A case's row must not depend on the others; zeros (1, F, 1) must give the vector's length.
    summary: one line for `dicot list poolings`.
    each: given this, no layer is kept, and the encoder may take its fast path: `each` turns the features of every
    chosen layer into (B, vector) as soon as they are there, `pool` is given those of the last layer, and all vectors
    stand side by side.
    """

    layers: tuple[str, ...] | Literal["all", "centred"] | None
    pool: Callable[[Any], Tensor]
    summary: str = ""
    each: Callable[[Tensor], Tensor] | None = None

    def chosen(self, encoder: Encoder) -> list[str]:
        """Return the names of the layers that are pooled beside the last one, or instead of it."""
        if self.layers == "centred":
            return list(encoder.centred_layers())
        return list(encoder.layer_dims() if self.layers == "all" else self.layers or ())

    def vectors(self, layers: dict[str, Tensor], last: Tensor) -> Tensor:
        """Return (B, vector) of the chosen layers' features and those of the last layer."""
        if self.layers is None:
            return self.pool(last)
        if self.each is None:
            return self.pool(layers)
        return torch.cat([*(self.each(h) for h in layers.values()), self.pool(last)], dim=1)


def _mean(h: Tensor) -> Tensor:
    return h.mean(dim=-1, dtype=torch.promote_types(h.dtype, torch.float32))


def _max(h: Tensor) -> Tensor:
    return h.amax(dim=-1)


def _mean_max(h: Tensor) -> Tensor:
    return torch.cat([_mean(h), _max(h)], dim=1)


def _share_positive(h: Tensor) -> Tensor:
    """Return the share of time steps at which a feature is positive."""
    return _mean(torch.gt(h, 0, out=torch.empty_like(h)))  # as numbers at once: a CPU counts truth values slowly


def _std(h: Tensor) -> Tensor:
    if h.device.type != "cpu" or h.requires_grad:  # its gradient is that of a root, infinite at 0, made 0 there
        return h.std(dim=-1, correction=0)
    centred = h - _mean(h).to(h.dtype).unsqueeze(-1)  # several times as fast on a CPU
    return centred.square_().mean(dim=-1).sqrt_()


def _mean_max_std(h: Tensor) -> Tensor:
    return torch.cat([_mean(h), _max(h), _std(h)], dim=1)


def _mean_of_layers(layers: dict[str, Tensor]) -> Tensor:
    return torch.cat([_mean(h) for h in layers.values()], dim=1)


def as_it_is(h: Any) -> Any:
    return h


POOLINGS: dict[str, Pooling] = {
    "mean": Pooling(None, _mean, "mean over time"),
    "max": Pooling(None, _max, "maximum over time"),
    "mean+max+std": Pooling(None, _mean_max_std, "mean, maximum and standard deviation over time, side by side"),
    "layers": Pooling("all", _mean_of_layers, "mean over time of every layer, side by side"),
    "shares+mean+max": Pooling(
        "centred", _mean_max, "share of positive time steps in every layer, then mean and maximum", _share_positive
    ),
    "shares+mean+max+std": Pooling(
        "centred", _mean_max_std, "the same, and the standard deviation of the last layer", _share_positive
    ),
}
NO_POOLING = Pooling(None, as_it_is)


def pooling_named(name: str | None) -> Pooling:
    """Return the rule of this name; None keeps the time steps."""
    return NO_POOLING if name is None else lookup(POOLINGS, name, "pooling")


def pooled(encoder: Encoder, x: Tensor, pooling: str) -> Tensor:
    """Compute (B, C, T) -> (B, vector) in the mode the encoder is in, with gradients: what training pools by."""
    rule = pooling_named(pooling)
    if rule.layers is None:
        return rule.vectors({}, encoder(x))
    layers = encoder.features(x)
    chosen = {name: lookup(layers, name, "layer") for name in rule.chosen(encoder)}
    return rule.vectors(chosen, layers[next(reversed(layers))])


def pooled_dim(encoder: Encoder, pooling: str) -> int:
    """Return the length of the vectors that `embed` makes with this pooling."""
    rule = pooling_named(pooling)
    dims = {} if rule.layers is None else encoder.layer_dims()
    return _length(rule, tuple((name, lookup(dims, name, "layer")) for name in rule.chosen(encoder)), encoder.dim)


@lru_cache(maxsize=64)
def _length(rule: Pooling, chosen: tuple[tuple[str, int], ...], last: int) -> int:
    layers = {name: torch.zeros(1, dim, 1) for name, dim in chosen}
    return int(rule.vectors(layers, torch.zeros(1, last, 1)).shape[1])
