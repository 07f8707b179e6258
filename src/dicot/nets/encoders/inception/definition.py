"""InceptionTime as the Di-COT paper uses it: 1,100,096 + 128 C parameters at dim 256."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.nets.encoders.base import Encoder, FrozenNetwork
from dicot.nets.encoders.inception.frozen import FrozenInception
from dicot.nets.encoders.inception.training import block_pass, pad_rows
from dicot.nets.encoders.padding import repeat_edges, same_margins

WIDTH_IN = 128  # channels after the input projection
WIDTH_BOTTLENECK = 32
KERNELS = (10, 20, 40)


class InceptionModule(nn.Module):
    """Three convolutions of different reach behind a bottleneck, and a max-pool branch beside them.

    `forward` is the definition, the plain path; training and embedding compute the same faster (see `training` and
    `frozen`).
    """

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

    def forward(self, u: Tensor) -> Tensor:
        # One padding serves all kernels: the shorter ones read the middle of what the longest one reads.
        left, right = same_margins(KERNELS[-1])
        padded = repeat_edges(self.bottleneck(u), left, right)
        branches = []
        for kernel in KERNELS:
            start, stop = (wide - narrow for wide, narrow in zip((left, right), same_margins(kernel), strict=True))
            branches.append(self.get_submodule(f"conv{kernel}")(padded[..., start : padded.shape[-1] - stop]))
        branches.append(self.poolconv(F.max_pool1d(u, 3, stride=1, padding=1)))
        return torch.relu(self.bn(torch.cat(branches, dim=1)))


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
        if length is not None:
            return self._padded(x, keep, length)
        if self.training and not self.is_plain():
            u = self._projected(x, keep)
            return block_pass(self.block1, block_pass(self.block0, u)).permute(1, 2, 0)
        v = self.input(x)
        if keep is not None:
            v = v * keep.unsqueeze(1)
        # Not through `frozen`: preparing it pays over many batches only.
        y: Tensor = self.block1(self.block0(v))
        return y

    def _projected(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """Project (B, C, T) -> (T, B, 128)."""
        u = F.linear(x.permute(2, 0, 1), self.input.weight[..., 0], self.input.bias)
        return u if keep is None else u * keep.T.unsqueeze(2)

    def _padded(self, x: Tensor, keep: Tensor | None, length: Tensor) -> Tensor:
        if not self.training or self.is_plain():
            raise InputError(
                "Cases that end before their tensor does can be encoded in train mode only, and not module by module. "
                "Cut them to their length instead."
            )
        source = torch.arange(x.shape[2], device=x.device).clamp(max=length - 1)
        u = self._projected(x.index_select(2, source), None if keep is None else keep.index_select(1, source))
        padded = pad_rows(self.block0, u, length)
        return block_pass(self.block1, block_pass(self.block0, u, padded), padded).permute(1, 2, 0)

    def layers(self) -> Mapping[str, nn.Module]:
        """Return the input projection, each module and each block."""
        kinds = (InceptionModule, InceptionBlock)
        inner = {name: module for name, module in self.named_modules() if isinstance(module, kinds)}
        return {"input": self.input, **inner}

    def frozen(self, n_times: int, dtype: torch.dtype | None = None) -> FrozenNetwork:
        if self.is_plain() or self.inner_modules().have_hooks():
            return super().frozen(n_times, dtype)
        return FrozenInception(self, n_times, dtype)
