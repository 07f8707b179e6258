"""Softmax contrast between two views of the same vectors, the piece that several methods share."""

import torch
from torch import Tensor

from dicot.losses.precision import wide


def without_diagonal(square: Tensor) -> Tensor:
    """(..., n, n) -> (..., n, n - 1): each row without its diagonal entry, the order of the others kept."""
    return square.tril(-1)[..., :-1] + square.triu(1)[..., 1:]


def other_log_probabilities(z1: Tensor, z2: Tensor) -> Tensor:
    """(G, n, F) twice -> (G, 2n, 2n - 1): for each of the 2n vectors of a group, log softmax over all the others.

    Rows and columns run over view 1, then view 2; the vector itself is left out of its row. Dot products without
    temperature or normalisation, in float32 or wider.
    """
    with torch.autocast(z1.device.type, enabled=False):
        z = torch.cat([z1, z2], dim=1)
        z = wide(z)
        return without_diagonal(z @ z.transpose(1, 2)).log_softmax(dim=-1)


def paired_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """Each vector of a group (G, n, F) must find itself in the other view among the 2n - 1 others; 0 for n = 1."""
    n = z1.shape[1]
    if n == 1:
        return (z1 * 0).sum() + (z2 * 0).sum()
    log_p = other_log_probabilities(z1, z2)
    forth = log_p[:, :n].diagonal(offset=n - 1, dim1=1, dim2=2)  # view 1 -> view 2
    back = log_p[:, n:].diagonal(dim1=1, dim2=2)  # view 2 -> view 1
    return -(forth.mean() + back.mean()) / 2


def instance_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """TS2Vec's instance loss on (B, T, F): at every time step, tell the own series from the others.

    Time O(T B^2 F), memory O(T B^2).
    """
    return paired_contrast(z1.transpose(0, 1), z2.transpose(0, 1))


def temporal_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """TS2Vec's temporal loss on (B, T, F): in every series, tell the own time step from the others.

    Time O(B T^2 F), memory O(B T^2).
    """
    return paired_contrast(z1, z2)
