"""Tell neighbours from the rest, where some of the rest are neighbours too (TNC)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.losses.precision import wide


def positive_unlabelled(d_close: Tensor, d_distant: Tensor, w_pu: float) -> Tensor:
    """TNC's loss on logits of any shape: close pairs are positive, distant ones positive with weight `w_pu`.

    L = 1/2 [bce(d_close, 1) + w_pu bce(d_distant, 1) + (1 - w_pu) bce(d_distant, 0)], in float32 or wider.
    Time and memory O(B m).
    """
    with torch.autocast(d_close.device.type, enabled=False):
        d_close, d_distant = wide(d_close), wide(d_distant)
        close = -F.logsigmoid(d_close).mean()
        distant_as_close = -F.logsigmoid(d_distant).mean()
        distant = -F.logsigmoid(-d_distant).mean()
        return (close + w_pu * distant_as_close + (1 - w_pu) * distant) / 2


def share_told_apart(d_close: Tensor, d_distant: Tensor) -> Tensor:
    """Share of logits on the right side of 0, the mean of both kinds: 0.5 is chance."""
    return ((d_close > 0).double().mean() + (d_distant < 0).double().mean()) / 2
