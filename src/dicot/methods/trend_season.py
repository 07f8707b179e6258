"""Heads that split features into a trend half and a season half (CoST)."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.errors import InputError
from dicot.losses.precision import wide


class TrendHead(nn.Module):
    """The mean of causal convolutions with several kernels: (B, F, T) -> (B, D, T)."""

    def __init__(self, dim: int, out_dim: int, kernels: Sequence[int]) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(dim, out_dim, kernel) for kernel in kernels)
        self.kernels, self.reach = tuple(kernels), max(kernels)

    def forward(self, h: Tensor) -> Tensor:
        return self._mean(F.pad(h, (self.reach - 1, 0)))

    def at(self, h: Tensor, t: int | Tensor) -> Tensor:
        """The trend at time step t alone, (B, D), for a T-th of the work."""
        seen = t + torch.arange(self.reach, device=h.device)
        return self._mean(F.pad(h, (self.reach - 1, 0)).index_select(2, seen))[..., 0]

    def _mean(self, padded: Tensor) -> Tensor:
        """`padded` has reach - 1 time steps before the first output; a shorter kernel starts later."""
        pairs = zip(self.kernels, self.convolutions, strict=True)
        outputs = [convolution(padded[..., self.reach - kernel :]) for kernel, convolution in pairs]
        return torch.stack(outputs).mean(dim=0)


class SeasonHead(nn.Module):
    """A complex affine map per frequency: (B, F, T) -> (B, D, T), for cases of `n_times` time steps only.

    Real and imaginary parts are parameters of their own: files and dtype casts know real numbers. The weights take
    about 8 F D (T / 2 + 1) bytes in float32.
    """

    def __init__(self, dim: int, out_dim: int, n_times: int, dropout: float) -> None:
        super().__init__()
        n_bins = n_times // 2 + 1
        self.n_times = n_times
        self.weight_real, self.weight_imag = (nn.Parameter(torch.empty(n_bins, dim, out_dim)) for _ in range(2))
        self.bias_real, self.bias_imag = (nn.Parameter(torch.empty(n_bins, 1, out_dim)) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        # The original's Kaiming-uniform with a = sqrt(5) counts F D inputs for a weight of this shape.
        bound = 1 / math.sqrt(dim * out_dim)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, h: Tensor) -> Tensor:
        if h.shape[-1] != self.n_times:
            raise InputError(
                f"The season head was built for {self.n_times} time steps; got {h.shape[-1]}. "
                "Use windows of the training length."
            )
        with torch.autocast(h.device.type, enabled=False):  # there is no complex half precision
            h = wide(h)
            c = torch.fft.rfft(h, dim=2).permute(2, 0, 1)  # (n_bins, B, F)
            # (a + bi)(c + di) in real products, so that no complex copy of the weights is made
            real = torch.baddbmm(self.bias_real, c.real, self.weight_real) - c.imag @ self.weight_imag
            imag = torch.baddbmm(self.bias_imag, c.real, self.weight_imag) + c.imag @ self.weight_real
            season = torch.fft.irfft(torch.complex(real, imag).permute(1, 2, 0), n=self.n_times, dim=2)
        dropped: Tensor = self.dropout(season)
        return dropped
