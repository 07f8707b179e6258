"""A queue of unit vectors from earlier steps: more candidates for a contrast than a batch holds (MoCo)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.nets.losses.precision import wide


def unit(z: Tensor) -> Tensor:
    """(B, D) -> (B, D) rows of length 1, in float32 or wider."""
    with torch.autocast(z.device.type, enabled=False):
        return F.normalize(wide(z), dim=1)


def enqueued(queue: Tensor, pointer: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """The queue (D, K) with the keys (B, D) written from column `pointer` on, and the pointer behind the last one.

    Columns are a ring; K need not be a multiple of B, as the original asserts. Of B > K keys the last K stay.
    """
    n_keys, size = len(keys), queue.shape[1]
    latest = keys[-size:]
    columns = pointer + n_keys - len(latest) + torch.arange(len(latest), device=queue.device)
    return queue.index_copy(1, columns % size, latest.T.to(queue.dtype)), (pointer + n_keys) % size
