"""Rows of one rank, where BatchNorm looks at those of all ranks."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dicot.nets.encoders.inception.rows import Normed, RowOperations
from dicot.nets.encoders.synchronised import Exchange, input_gradient, moments_of_all, move_statistics

aten = torch.ops.aten


class SynchronisedRows:
    """The four functions of `rows`; `pooling` is used as it is, since no other case changes it."""

    def __init__(self, exchange: Exchange, pooling: RowOperations) -> None:
        self.exchange = exchange
        self.pool_forward, self.pool_backward = pooling.pool_forward, pooling.pool_backward

    def norm_forward(
        self, parts: Sequence[Tensor], norm: nn.BatchNorm1d, bias: Tensor, added: Tensor | None = None
    ) -> Normed:
        """See `rows.norm_forward`; of x the distance from the mean is kept."""
        x = torch.cat(list(parts), dim=1) if len(parts) > 1 else parts[0]
        found = moments_of_all(x, self.exchange)
        move_statistics(norm, found, bias)
        rstd = (found.var + norm.eps).rsqrt_()
        centred = x - found.mean
        y = torch.addcmul(norm.bias, centred, norm.weight * rstd)
        y = y if added is None else y.add_(added)
        return Normed([centred], y.relu_(), torch.stack([rstd, found.n_rows.expand_as(rstd)]))

    def norm_backward(
        self, dy: Tensor, saved: Normed, norm: nn.BatchNorm1d, widths: Sequence[int], masked: bool = True
    ) -> tuple[Sequence[Tensor], Tensor, Tensor]:
        """See `rows.norm_backward`; the gradients of scale and shift are this rank's part of them."""
        dpre = aten.threshold_backward(dy, saved.y, 0) if masked else dy
        (centred,), (rstd, count) = saved.x, saved.statistics
        own = torch.stack([dpre.sum(dim=0), (dpre * centred).sum(dim=0) * rstd])
        dx = input_gradient(dpre, centred, norm.weight * rstd, self.exchange.total(own), rstd, count)
        return torch.split(dx, list(widths), dim=1), own[1], own[0]
