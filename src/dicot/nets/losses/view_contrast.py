"""InfoNCE between two views: each vector must find its partner among all vectors of the other view, both ways."""

import torch
from torch import Tensor

from dicot.nets.losses.queue import unit


def view_contrast(
    z1: Tensor, z2: Tensor, temperature: float, queue: Tensor | None = None, barred: Tensor | None = None
) -> Tensor:
    """Mean cross-entropy of both directions on z1, z2 (B, F), by cosine similarity.

    Unlike NT-Xent's, the candidates are those of the other view alone, B of them. A queue (F, K) of unit columns adds
    more, without a gradient; `barred` (B, K) says which of them are no candidates for a row.
    Time O(B (B + K) F), memory O(B (B + K)).
    """
    with torch.autocast(z1.device.type, enabled=False):
        u1, u2 = unit(z1), unit(z2)
        pairs = u1 @ u2.T
        directions = [
            _own_log_p(u1, pairs, temperature, queue, barred),
            _own_log_p(u2, pairs.T, temperature, queue, barred),
        ]
        return -torch.cat(directions).mean()


def _own_log_p(u: Tensor, pairs: Tensor, temperature: float, queue: Tensor | None, barred: Tensor | None) -> Tensor:
    """(B,) log probability of the partner, which is on the diagonal of `pairs`."""
    if queue is not None:
        more = u @ queue.to(u.dtype)
        more = more if barred is None else more.masked_fill(barred, -torch.inf)
        pairs = torch.cat([pairs, more], dim=1)
    return (pairs / temperature).log_softmax(dim=1).diagonal()
