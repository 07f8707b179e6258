"""InfoNCE between two views: each vector must find its partner among all vectors of the other view, both ways."""

import torch
from torch import Tensor

from dicot.nets.losses.queue import unit


def view_contrast(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    """Mean cross-entropy of both directions on z1, z2 (B, F), by cosine similarity. Time O(B^2 F), memory O(B^2).

    Unlike NT-Xent's, the candidates are those of the other view alone, B of them.
    """
    with torch.autocast(z1.device.type, enabled=False):
        pairs = unit(z1) @ unit(z2).T
        # (B,) each: the log probability of the partner, which is on the diagonal.
        directions = [(way / temperature).log_softmax(dim=1).diagonal() for way in (pairs, pairs.T)]
        return -torch.cat(directions).mean()
