"""Variance, invariance, covariance: two views of a case agree and the batch stays spread out, without negatives."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.nets.losses.precision import wide

SHIFT = 1e-4  # keeps the root differentiable where a feature is constant in the batch


def vicreg(
    z1: Tensor, z2: Tensor, *, invariance: float = 25.0, variance: float = 25.0, covariance: float = 1.0
) -> Tensor:
    """VICReg's loss (ICLR 2022) on z1, z2 (B, F), B of 2 or more.

    The weighted sum of three terms: the mean squared difference of the views; how far the standard deviation of a
    feature is below 1, mean over features and views; the sum of the squared covariances of different features, divided
    by F, mean over views. Time O(B F^2), memory O(F^2).
    """
    with torch.autocast(z1.device.type, enabled=False):
        z1, z2 = wide(z1), wide(z2)
        n_cases, width = z1.shape
        loss = invariance * F.mse_loss(z1, z2)
        for z in (z1, z2):
            centred = z - z.mean(dim=0)
            c = centred.T @ centred / (n_cases - 1)
            squares = c.diagonal()  # the variances
            loss = loss + variance * F.relu(1 - (squares + SHIFT).sqrt()).mean() / 2
            loss = loss + covariance * (c.square().sum() - squares.square().sum()) / width / 2
        return loss
