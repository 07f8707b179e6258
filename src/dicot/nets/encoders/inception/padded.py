"""Rows of cases that are shorter than their tensor, by a number of time steps that only the device knows.

A CUDA graph has fixed shapes, so cases of changing length lie at the beginning of a tensor of fixed length there.
Behind its end a case repeats its last time step, as the padding of a convolution does: then every time step of the case
reads what it reads in a tensor of the case's own length. BatchNorm looks at the time steps of the case alone.
"""

from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor, nn

from dicot.nets.encoders.inception.rows import Normed, next_momentum

aten = torch.ops.aten


class PaddedRows:
    """The four functions of `rows` for cases (T, B, C) whose first `length` time steps count.

    Nothing waits for the device, and sums are taken in a fixed order. `pooling` is the module whose pooling is used:
    repeated time steps do not change it.
    """

    def __init__(self, length: Tensor, shape: Sequence[int], dtype: torch.dtype, pooling: ModuleType) -> None:
        n_times, n_cases, _ = shape
        time, count = torch.arange(n_times, device=length.device), (length * n_cases).to(dtype)
        self.shape = n_times, n_cases, -1
        self.source = time.clamp(max=length - 1)  # (T,) the time step that each one repeats
        inside, self.before = ((time < end).to(dtype).view(-1, 1, 1) for end in (length, length - 1))
        self.is_last = inside - self.before
        self.behind = 1 - self.before  # the last time step and its repetitions
        self.shares = inside / count  # of a row in a mean
        self.unbiased = count / (count - 1).clamp(min=1)
        self.pool_forward, self.pool_backward = pooling.pool_forward, pooling.pool_backward

    def norm_forward(
        self, parts: Sequence[Tensor], norm: nn.BatchNorm1d, bias: Tensor, added: Tensor | None = None
    ) -> Normed:
        """See `rows.norm_forward`; of x the distance from the mean is kept."""
        assert norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None
        momentum = next_momentum(norm)
        norm.num_batches_tracked.add_(1)
        x = torch.cat(list(parts), dim=1) if len(parts) > 1 else parts[0]
        x = x.view(self.shape).index_select(0, self.source)
        mean = (x * self.shares).sum(dim=(0, 1))
        x.sub_(mean)
        var = (x * self.shares).mul_(x).sum(dim=(0, 1))
        norm.running_mean.lerp_(mean + bias, momentum)
        norm.running_var.lerp_(var * self.unbiased, momentum)
        rstd = (var + norm.eps).rsqrt_()
        x = x.flatten(0, 1)
        y = torch.addcmul(norm.bias, x, norm.weight * rstd)
        return Normed([x], (y if added is None else y.add_(added)).relu_(), rstd.unsqueeze(0))

    def norm_backward(
        self, dy: Tensor, saved: Normed, norm: nn.BatchNorm1d, widths: Sequence[int], masked: bool = True
    ) -> tuple[Sequence[Tensor], Tensor, Tensor]:
        """See `rows.norm_backward`; what the repetitions are given goes to the time step that they repeat."""
        dpre = aten.threshold_backward(dy, saved.y, 0) if masked else dy
        (x,), (rstd,) = saved.x, saved.statistics
        dshift, dweight = dpre.sum(dim=0), (dpre * x).sum(dim=0).mul_(rstd)
        of_statistics = torch.addcmul(dshift, x, dweight * rstd).view(self.shape)
        dx = torch.addcmul(dpre.view(self.shape), of_statistics, self.shares, value=-1).mul_(norm.weight * rstd)
        last = (dx * self.behind).sum(dim=0)
        dx = dx.mul_(self.before).addcmul_(self.is_last, last).flatten(0, 1)
        return torch.split(dx, list(widths), dim=1), dweight, dshift
