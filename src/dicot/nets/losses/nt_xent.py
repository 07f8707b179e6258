"""NT-Xent: each vector must find its partner among the 2B - 1 others of the batch."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.nets.losses.precision import wide


def _partner_log_p(zi: Tensor, zj: Tensor, temperature: float, cosine: bool) -> tuple[Tensor, Tensor]:
    """Log probability of the partner for each of the 2B rows."""
    with torch.autocast(zi.device.type, enabled=False):
        z = torch.cat([zi, zj])
        z = wide(z)
        z = F.normalize(z, dim=-1, eps=1e-8) if cosine else z
        n = len(z)
        itself = torch.eye(n, dtype=torch.bool, device=z.device)
        log_p = (z @ z.T / temperature).masked_fill(itself, float("-inf")).log_softmax(dim=-1)
        half = n // 2
        return log_p.diagonal(half), log_p.diagonal(-half)


def nt_xent(zi: Tensor, zj: Tensor, temperature: float = 0.2, *, cosine: bool = True) -> Tensor:
    """Mean cross-entropy over the 2B rows of zi, zj (B, F). Time O(B^2 F), memory O(B^2)."""
    return -torch.cat(_partner_log_p(zi, zj, temperature, cosine)).mean()


def poly_nt_xent(zi: Tensor, zj: Tensor, temperature: float = 0.2, *, cosine: bool = True) -> Tensor:
    """TF-C's variant: NT-Xent + B (1/B - pt), pt the partner's probability averaged over all 2B (2B - 1) entries.

    Time O(B^2 F), memory O(B^2).
    """
    log_p = torch.cat(_partner_log_p(zi, zj, temperature, cosine))
    n_rows = len(log_p)
    pt = log_p.exp().sum() / (n_rows * (n_rows - 1))
    return -log_p.mean() + (n_rows / 2) * (2 / n_rows - pt)
