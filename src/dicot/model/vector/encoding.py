"""Pooled features of an encoder in eval mode, computed with weights that are prepared for inference.

A case's features do not depend on its company. A single case or a few short ones go through beside copies of
themselves, because other kernels may compute them alone.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from dicot.model.vector.poolings import POOLINGS, Pooling
from dicot.nets.encoders import Encoder
from dicot.nets.encoders.base import Prepared

ENOUGH_ROWS = 48  # of matrices, a row for each time step: products of fewer take their sums in another order
Network = Callable[[Tensor], Tensor]


def own_vectors(encoder: Encoder, x: Tensor) -> Tensor:
    """Compute (B, C, T) -> (B, embed_dim), the vectors that an encoder makes itself."""
    return encoded(encoder, x, POOLINGS["own"])


def encoded(encoder: Encoder, x: Tensor, rule: Pooling, dtype: torch.dtype | None = None) -> Tensor:
    """Compute (B, C, T) -> (B, vector), or what `rule` gives; with a `dtype` convolutions are computed in that type."""
    if torch.compiler.is_exporting():
        return _module_by_module(encoder, x, rule)
    if rule.needs_layers:
        return _beside_copies(partial(_layers_pooled, encoder, rule, dtype), x)
    with encoder.prepared(x.shape[2], dtype, pooled=rule.layers == "own") as prepared:
        if encoder.inner_modules().have_hooks():
            # To find out whether a single case has the same bits alone would call them once more.
            prepared.same_alone = False
        return _pooled(prepared, rule.pool, x)


def _module_by_module(encoder: Encoder, x: Tensor, rule: Pooling) -> Tensor:
    if rule.layers == "own":
        return encoder.embed(x)
    if rule.needs_layers:
        return rule.pool(rule.chosen(encoder.features(x)))
    return rule.pool(encoder(x))


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
