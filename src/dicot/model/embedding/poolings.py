"""Poolings: rules that turn what an encoder gives for every time step into one vector per case."""

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
    or "all", for a dictionary of such tensors by name (see `Encoder.features`; their F and T may differ).
    pool: gives (B, vector). A case's row must not depend on the others; zeros (1, F, 1) must give the vector's length.
    summary: one line for `dicot list poolings`.
    """

    layers: tuple[str, ...] | Literal["all"] | None
    pool: Callable[[Any], Tensor]
    summary: str = ""

    def chosen(self, layers: Mapping[str, Value]) -> dict[str, Value]:
        """Return what is pooled of what there is for every layer, by name."""
        return {name: lookup(layers, name, "layer") for name in (layers if self.layers == "all" else self.layers or ())}


def _mean(h: Tensor) -> Tensor:
    return h.mean(dim=-1, dtype=torch.promote_types(h.dtype, torch.float32))


def _max(h: Tensor) -> Tensor:
    return h.amax(dim=-1)


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
}
NO_POOLING = Pooling(None, as_it_is)


def pooling_named(name: str | None) -> Pooling:
    """Return the rule of this name; None keeps the time steps."""
    return NO_POOLING if name is None else lookup(POOLINGS, name, "pooling")


def pooled(encoder: Encoder, x: Tensor, pooling: str) -> Tensor:
    """Compute (B, C, T) -> (B, vector) in the mode the encoder is in, with gradients: what training pools by."""
    rule = pooling_named(pooling)
    return rule.pool(encoder(x) if rule.layers is None else rule.chosen(encoder.features(x)))


def pooled_dim(encoder: Encoder, pooling: str) -> int:
    """Return the length of the vectors that `embed` makes with this pooling."""
    rule = pooling_named(pooling)
    if rule.layers is None:
        return int(rule.pool(torch.zeros(1, encoder.dim, 1)).shape[1])
    layers = {name: torch.zeros(1, dim, 1) for name, dim in encoder.layer_dims().items()}
    return int(rule.pool(rule.chosen(layers)).shape[1])
