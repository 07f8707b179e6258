"""How alike the series of a stack are: as a contrast, and as weights that rebuild each from the others (SimMTM).

A stack has N = (P + 1) B rows: B originals, then copy 1 of all, copy 2 of all and so on; row r shows series r mod B.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.losses.precision import wide


def cosine_similarity(z: Tensor) -> Tensor:
    """z (N, E) -> (N, N), in float32 or wider; a zero vector is similar to nothing. Memory O(N^2)."""
    with torch.autocast(z.device.type, enabled=False):
        z = wide(z)
        u = F.normalize(z, dim=-1, eps=1e-8)
        return u @ u.T


def log_weights(similarity: Tensor, temperature: float) -> Tensor:
    """Log softmax of each row of (N, N) over the N - 1 others; -inf on the diagonal."""
    itself = torch.eye(len(similarity), dtype=torch.bool, device=similarity.device)
    return (similarity / temperature).masked_fill(itself, float("-inf")).log_softmax(dim=-1)


def copies_contrast(log_p: Tensor, n_series: int) -> Tensor:
    """Each row of a stack must find the P other rows of its series: summed over those, averaged over the N rows."""
    n_rows = len(log_p)
    n_views = n_rows // n_series
    by_view = log_p.reshape(n_views, n_series, n_views, n_series)
    own = by_view.diagonal(dim1=1, dim2=3).permute(2, 0, 1)  # (B, P + 1, P + 1)
    itself = torch.eye(n_views, dtype=torch.bool, device=log_p.device)
    return -own.masked_fill(itself, 0).sum() / n_rows


def aggregate(weights: Tensor, features: Tensor) -> Tensor:
    """Weights (R, N) and something per row (N, ...) -> (R, ...): each row's weighted sum over the stack."""
    with torch.autocast(features.device.type, enabled=False):
        total = weights @ features.flatten(1).to(weights.dtype)
    return total.reshape(-1, *features.shape[1:])
