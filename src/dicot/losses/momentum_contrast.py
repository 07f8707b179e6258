"""Momentum contrast: pick the own key among the keys of earlier steps, which a queue keeps (MoCo, CoST)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.losses.precision import wide


def unit(z: Tensor) -> Tensor:
    """(B, D) -> (B, D) rows of length 1, in float32 or wider."""
    with torch.autocast(z.device.type, enabled=False):
        return F.normalize(wide(z), dim=1)


def queue_logits(q: Tensor, k: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """Unit queries q and their keys k (B, D), queue (D, K) -> (B, 1 + K); the own key is column 0."""
    return torch.cat([(q * k).sum(dim=1, keepdim=True), q @ queue], dim=1) / temperature


def queue_contrast(q: Tensor, k: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """Mean cross-entropy of each query with its own key. Time and memory O(B K)."""
    with torch.autocast(q.device.type, enabled=False):
        return -queue_logits(q, k, queue, temperature).log_softmax(dim=1)[:, 0].mean()


def enqueued(queue: Tensor, pointer: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """The queue (D, K) with the keys (B, D) written from column `pointer` on, and the pointer behind the last one.

    Columns are a ring; K need not be a multiple of B, as the original asserts. Of B > K keys the last K stay.
    """
    n_keys, size = len(keys), queue.shape[1]
    kept = keys[-size:]
    columns = pointer + n_keys - len(kept) + torch.arange(len(kept), device=queue.device)
    return queue.index_copy(1, columns % size, kept.T.to(queue.dtype)), (pointer + n_keys) % size
