"""SoftCLT: graded targets instead of one positive, across cases and across time."""

from functools import partial

import torch
from torch import Tensor

from dicot.losses.chunking import mean_over_groups
from dicot.losses.contrast import contrast
from dicot.losses.hierarchical import hard_level, over_levels

SMALLEST_LAG_WEIGHT = 1e-6  # smaller ones are set to 0


def time_lag_weights(n_times: int, tau: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(T, T): 2 / (1 + exp(tau |t - t'|)), 1 on the diagonal."""
    time = torch.arange(n_times, dtype=dtype, device=device)
    weights = 2 * torch.sigmoid(-tau * (time.unsqueeze(1) - time).abs())
    return torch.where(weights < SMALLEST_LAG_WEIGHT, 0, weights)


def soft_contrast(z1: Tensor, z2: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy of all pairs of (G, n, F) twice against `weights` (n, n), which all groups share.

    Both views of vector j are candidates of vector i with target weights[i, j], itself left out. Targets do not sum to
    one; the mean is over the 2n anchors. With the identity it is `paired_contrast`. Time O(G n^2 F), memory O(G n^2).
    """
    targets = weights.repeat(2, 2)
    targets.fill_diagonal_(0)
    return contrast(z1, z2, targets)


def soft_hierarchical_contrast(
    z1: Tensor,
    z2: Tensor,
    instance_weights: Tensor | None,
    *,
    tau_temp: float,
    lambda_: float = 0.5,
    temporal_unit: int = 0,
) -> Tensor:
    """SoftCLT's loss on aligned features (B, F, T); `lambda_` is the share of the instance loss.

    `instance_weights` (B, B) grades the cases, None takes the hard loss. Time lags are graded with tau_temp 2^depth;
    tau_temp = 0 takes the hard loss. Cost and memory as `hierarchical_contrast`, and one (2T, 2T) array of targets.
    """
    instance = hard_level if instance_weights is None else partial(_soft_level, weights=instance_weights)
    temporal = partial(_lag_level, tau_temp=tau_temp) if tau_temp > 0 else hard_level
    return over_levels(z1, z2, instance, temporal, alpha=lambda_, temporal_unit=temporal_unit)


def _soft_level(z1: Tensor, z2: Tensor, depth: int, weights: Tensor) -> Tensor:
    return mean_over_groups(partial(soft_contrast, weights=weights), z1, z2)


def _lag_level(z1: Tensor, z2: Tensor, depth: int, tau_temp: float) -> Tensor:
    """Lags weigh more at deeper levels, where a step stands for 2^depth of the first one's."""
    dtype = torch.promote_types(z1.dtype, torch.float32)
    weights = time_lag_weights(z1.shape[1], tau_temp * 2**depth, dtype, z1.device)
    return _soft_level(z1, z2, depth, weights)
