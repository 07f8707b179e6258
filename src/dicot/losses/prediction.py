"""Contrastive prediction: what really followed must be told by its own prediction among those of the batch."""

import torch
from torch import Tensor

from dicot.losses.precision import wide


def prediction_contrast(actual: Tensor, predicted: Tensor) -> Tensor:
    """Mean cross-entropy over K steps, actual (K, B, F) against predicted (K, B, F) (TS-TCC).

    Rows are the true features and columns the predictions of all cases; dot products without a temperature, in
    float32 or wider. 0 for B = 1. Time O(K B^2 F), memory O(K B^2).
    """
    with torch.autocast(actual.device.type, enabled=False):
        rows, columns = (wide(z) for z in (actual, predicted))
        log_p = (rows @ columns.transpose(1, 2)).log_softmax(dim=-1)  # (K, B, B)
        return -log_p.diagonal(dim1=1, dim2=2).mean()
