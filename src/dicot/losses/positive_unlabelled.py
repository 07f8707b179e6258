"""Tell neighbours from the rest, where some of the rest are neighbours too (TNC)."""

import torch
import torch.nn.functional as F
from torch import Tensor


def positive_unlabelled(d_close: Tensor, d_distant: Tensor, w_pu: float) -> Tensor:
    """TNC's loss on logits of any shape: close pairs are positive, distant ones positive with weight `w_pu`.

    L = 1/2 [bce(d_close, 1) + w_pu bce(d_distant, 1) + (1 - w_pu) bce(d_distant, 0)], in float32 or wider.
    """
    with torch.autocast(d_close.device.type, enabled=False):
        half = d_close.dtype in (torch.float16, torch.bfloat16)
        d_close, d_distant = (d_close.float(), d_distant.float()) if half else (d_close, d_distant)
        close = -F.logsigmoid(d_close).mean()
        distant_as_close = -F.logsigmoid(d_distant).mean()
        distant = -F.logsigmoid(-d_distant).mean()
        return (close + w_pu * distant_as_close + (1 - w_pu) * distant) / 2


def share_told_apart(d_close: Tensor, d_distant: Tensor) -> Tensor:
    """Share of logits on the right side of 0, the mean of both kinds: 0.5 is chance."""
    return ((d_close > 0).double().mean() + (d_distant < 0).double().mean()) / 2
