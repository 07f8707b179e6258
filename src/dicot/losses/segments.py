"""InfoTS's two losses: max-pooled series against each other, and neighbouring segments of one series."""

import torch
from torch import Tensor

from dicot.losses.contrast import paired_contrast
from dicot.losses.precision import wide


def pooled_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """Global loss on features (B, F, T): each case must find its other view among 2B - 1; 0 for B = 1.

    Max over time, dot products, no temperature. Time O(B^2 F), memory O(B^2).
    """
    return paired_contrast(z1.max(dim=-1).values.unsqueeze(0), z2.max(dim=-1).values.unsqueeze(0))


def segment_length(n_times: int, k: int) -> int:
    return n_times // k


def segment_contrast(z: Tensor, k: int, start: int = 0) -> Tensor:
    """Local loss on features (B, F, T): each of k segments must find its neighbour among distant segments of its case.

    The segments have T // k steps each, begin at `start` and are max-pooled; k >= 4, so that every row has a negative.
    Mean over segments and cases. Time O(B k^2 F), memory O(B k^2).
    """
    length = segment_length(z.shape[-1], k)
    covered = z[..., start : start + k * length]
    segments = covered.reshape(*z.shape[:2], k, length).max(dim=-1).values  # (B, F, k)
    with torch.autocast(z.device.type, enabled=False):
        segments = wide(segments)
        similarity = segments.transpose(1, 2) @ segments  # (B, k, k)
        positive, candidate = _targets(k, z.device)
        log_p = similarity.masked_fill(~candidate, float("-inf")).log_softmax(dim=-1)
        return -log_p.gather(2, positive.expand(len(z), -1).unsqueeze(2)).mean()


def _targets(k: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The positive of each row (k,), and which columns (k, k) take part: the positive and k - 3 negatives.

    The positive is the next segment, for the last one the previous. Negatives are at least two segments away; the
    first and the last segment have no neighbour on one side, and leave out their second one on the other instead.
    """
    row = torch.arange(k, device=device)
    positive = torch.where(row == k - 1, k - 2, row + 1)
    distance = (row.unsqueeze(1) - row).abs()
    at_an_end = ((row == 0) | (row == k - 1)).unsqueeze(1)
    negative = (distance >= 2) & ~(at_an_end & (distance == 2))
    return positive, negative | (row == positive.unsqueeze(1))
