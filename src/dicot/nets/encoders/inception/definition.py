"""InceptionTime as the Di-COT paper uses it: 1,100,096 + 128 C parameters at dim 256.

Every module computes in two ways. `forward` is the definition, on (B, C, T). Training goes by `on_rows`, on (T, B, C):
convolutions are matrix products there (see `convolution`), time never moves in memory, and a bias in front of
BatchNorm, which takes it out again, is left out. Embedding with fixed weights is in `frozen`.
"""

from collections.abc import Mapping
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.nets.encoders.base import Encoder, FrozenNetwork, repeat_edges, same_margins
from dicot.nets.encoders.inception.convolution import convolve
from dicot.nets.encoders.inception.frozen import FrozenInception
from dicot.nets.encoders.inception.rows import largest_of_three, norm_relu

WIDTH_IN = 128  # channels after the input projection
WIDTH_BOTTLENECK = 32
KERNELS = (10, 20, 40)


class InceptionModule(nn.Module):
    """Three convolutions of different reach behind a bottleneck, and a max-pool branch beside them."""

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        branch = width_out // (len(KERNELS) + 1)
        self.bottleneck = nn.Conv1d(width_in, WIDTH_BOTTLENECK, 1)
        self.branches = tuple(f"conv{kernel}" for kernel in KERNELS)
        for kernel, name in zip(KERNELS, self.branches, strict=True):
            conv = nn.Conv1d(WIDTH_BOTTLENECK, branch, kernel)
            # Stored with taps first, so that all kernels together are joined and split without strided copies.
            conv.weight = nn.Parameter(conv.weight.detach().permute(2, 1, 0).contiguous().permute(2, 1, 0))
            self.add_module(name, conv)
        self.poolconv = nn.Conv1d(width_in, branch, 1)
        self.bn = nn.BatchNorm1d(width_out)

    def convolutions(self) -> list[nn.Conv1d]:
        """Return the convolutions over the bottleneck, the shortest first."""
        return [cast(nn.Conv1d, self.get_submodule(name)) for name in self.branches]

    def forward(self, u: Tensor) -> Tensor:
        # One padding serves all kernels: the shorter ones read the middle of what the longest one reads.
        left, right = same_margins(KERNELS[-1])
        padded = repeat_edges(self.bottleneck(u), left, right)
        branches = []
        for kernel, conv in zip(KERNELS, self.convolutions(), strict=True):
            before, after = same_margins(kernel)
            start = left - before
            stop = padded.shape[-1] - (right - after)
            branches.append(conv(padded[..., start:stop]))
        branches.append(self.poolconv(F.max_pool1d(u, 3, stride=1, padding=1)))
        return torch.relu(self.bn(torch.cat(branches, dim=1)))

    def on_rows(self, u: Tensor, length: Tensor | None) -> Tensor:
        """Compute the same on (T, B, C), in train mode."""
        narrow = per_time_step(u, self.bottleneck, self.bottleneck.bias)
        kernels = [conv.weight for conv in self.convolutions()]
        branches = [convolve(narrow, group) for group in grouped(kernels, u.device)]
        branches.append(per_time_step(largest_of_three(u), self.poolconv))
        bias = torch.cat([bias_of(conv) for conv in (*self.convolutions(), self.poolconv)])
        return norm_relu(branches, self.bn, bias, length=length)


class InceptionBlock(nn.Module):
    """Three modules in sequence with a linear residual around them."""

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.module0 = InceptionModule(width_in, width_out)
        self.module1 = InceptionModule(width_out, width_out)
        self.module2 = InceptionModule(width_out, width_out)
        self.residual = nn.Sequential()
        self.residual.add_module("conv", nn.Conv1d(width_in, width_out, 1))
        self.residual.add_module("bn", nn.BatchNorm1d(width_out))

    def forward(self, v: Tensor) -> Tensor:
        path = self.module2(self.module1(self.module0(v)))
        return torch.relu(path + self.residual(v))

    def on_rows(self, u: Tensor, length: Tensor | None) -> Tensor:
        """Compute the same on (T, B, C), in train mode."""
        path = u
        for module in (self.module0, self.module1, self.module2):
            path = module.on_rows(path, length)
        conv = cast(nn.Conv1d, self.residual.conv)
        norm = cast(nn.BatchNorm1d, self.residual.bn)
        return norm_relu([per_time_step(u, conv)], norm, bias_of(conv), added=path, length=length)


def grouped(kernels: list[Tensor], device: torch.device) -> list[list[Tensor]]:
    """Put kernels that are to be one convolution into one group.

    A GPU likes few and large products. On a CPU it is the arithmetic that counts, and joined kernels are all as long as
    the longest of them.
    """
    return [kernels] if device.type == "cuda" else [[kernel] for kernel in kernels]


def bias_of(conv: nn.Conv1d) -> Tensor:
    assert conv.bias is not None
    return conv.bias


def per_time_step(u: Tensor, conv: nn.Conv1d, bias: Tensor | None = None) -> Tensor:
    """Apply a convolution of one tap to (T, B, C), with this bias and not its own."""
    return F.linear(u, conv.weight.squeeze(2), bias)


class InceptionTime(Encoder):
    """The paper's backbone: input projection, then two residual blocks of three modules each."""

    def __init__(self, n_channels: int, dim: int = 256) -> None:
        super().__init__(n_channels, dim)
        if dim % 4:
            raise InputError(f"InceptionTime joins four branches, so dim must be a multiple of 4; got {dim}.")
        self.input = nn.Conv1d(n_channels, WIDTH_IN, 1)  # a linear map per time step
        self.block0 = InceptionBlock(WIDTH_IN, dim)
        self.block1 = InceptionBlock(dim, dim)

    @property
    def takes_length(self) -> bool:
        return not self.is_plain()

    def forward(self, x: Tensor, keep: Tensor | None = None, length: Tensor | None = None) -> Tensor:
        self.check_shape(x.shape)
        if self.training and x.shape[0] * x.shape[2] == 1:  # else BatchNorm would divide by a variance of 0
            raise InputError("BatchNorm cannot train on one time step of one case. Use a larger batch or longer cases.")
        if self.training and not self.is_plain():
            return self._on_rows(x, keep, length)
        assert length is None, "cases end before their tensor does in training only, and not module by module"
        v = self.input(x)
        if keep is not None:
            v = v * keep.unsqueeze(1)
        # Not through `frozen`: preparing it pays over many batches only.
        y: Tensor = self.block1(self.block0(v))
        return y

    def _on_rows(self, x: Tensor, keep: Tensor | None, length: Tensor | None) -> Tensor:
        if length is not None:
            # Behind its end a case repeats its last time step.
            source = torch.arange(x.shape[2], device=x.device).clamp(max=length - 1)
            x = x.index_select(2, source)
            keep = None if keep is None else keep.index_select(1, source)
        u = per_time_step(x.permute(2, 0, 1), self.input, self.input.bias)  # (T, B, 128)
        if keep is not None:
            u = u * keep.T.unsqueeze(2)
        for block in (self.block0, self.block1):
            u = block.on_rows(u, length)
        return u.permute(1, 2, 0)

    def layers(self) -> Mapping[str, nn.Module]:
        """Return the input projection, each module and each block."""
        kinds = (InceptionModule, InceptionBlock)
        inner = {name: module for name, module in self.named_modules() if isinstance(module, kinds)}
        return {"input": self.input, **inner}

    def frozen(self, n_times: int, dtype: torch.dtype | None = None) -> FrozenNetwork:
        if dtype is not None or self.is_plain() or self.inner_modules().have_hooks():
            return super().frozen(n_times, dtype)
        return FrozenInception(self, n_times)
