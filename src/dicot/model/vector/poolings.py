"""POOLINGS: the rules that turn what an encoder gives for every time step into one vector. New ones go in there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from dicot.core.errors import lookup
from dicot.nets.encoders import Encoder

Value = TypeVar("Value")


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


def pooled(encoder: Encoder, x: Tensor, pooling: str) -> Tensor:
    """Compute (B, C, T) -> (B, vector) in the mode the encoder is in, with gradients: what training pools by."""
    rule = pooling_named(pooling)
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
