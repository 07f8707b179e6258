"""InceptionTime as the Di-COT paper uses it: 1,100,096 + 128 C parameters at dim 256.

The modules are the definition, the plain path. Embedding computes the same with fixed weights (`frozen`), and training
by a pass through the residual blocks that is written by hand, forwards and backwards, on (T, B, C) tensors.
Convolutions are matrix products there (see `convolution`), time never moves in memory, and a bias in front of
BatchNorm, which takes it out again, is left out: its gradient is zero.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dicot.core.errors import InputError
from dicot.nets.encoders.base import Encoder, FrozenNetwork, repeat_edges, same_margins
from dicot.nets.encoders.inception.convolution import addmm_, convolve, convolve_backward, mm
from dicot.nets.encoders.inception.frozen import FrozenInception
from dicot.nets.encoders.inception.rows import Normed, PaddedRows, RowOperations, row_operations

WIDTH_IN = 128  # channels after the input projection
WIDTH_BOTTLENECK = 32
KERNELS = (10, 20, 40)
Tasks = list[Callable[[], Any]]


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
        if self.training and not self.is_plain():
            return self._training_pass(x, keep, length)
        assert length is None, "cases end before their tensor does in training only, and not module by module"
        v = self.input(x)
        if keep is not None:
            v = v * keep.unsqueeze(1)
        # Not through `frozen`: preparing it pays over many batches only.
        y: Tensor = self.block1(self.block0(v))
        return y

    def _training_pass(self, x: Tensor, keep: Tensor | None, length: Tensor | None) -> Tensor:
        if length is not None:
            source = torch.arange(x.shape[2], device=x.device).clamp(max=length - 1)
            x, keep = x.index_select(2, source), None if keep is None else keep.index_select(1, source)
        u = F.linear(x.permute(2, 0, 1), self.input.weight[..., 0], self.input.bias)  # (T, B, 128)
        u = u if keep is None else u * keep.T.unsqueeze(2)
        ops = row_operations(u, self.dim // 4, self.block0.module0.bn)
        ops = ops if length is None else PaddedRows(length, u, ops)
        for block in (self.block0, self.block1):
            u = BlockPass.apply(u, block, ops, *block.parameters())  # type: ignore[no-untyped-call]
        return u.permute(1, 2, 0)

    def layers(self) -> Mapping[str, nn.Module]:
        """Return the input projection, each module and each block."""
        kinds = (InceptionModule, InceptionBlock)
        inner = {name: module for name, module in self.named_modules() if isinstance(module, kinds)}
        return {"input": self.input, **inner}

    def frozen(self, n_times: int, dtype: torch.dtype | None = None) -> FrozenNetwork:
        if self.is_plain() or self.inner_modules().have_hooks():
            return super().frozen(n_times, dtype)
        return FrozenInception(self, n_times, dtype)


class Saved(NamedTuple):
    """What the backward pass of a module needs."""

    u: Tensor
    convolutions: list[tuple[Tensor, ...]]
    pooled: Tensor
    normed: Normed


class BlockPass(torch.autograd.Function):
    """An InceptionBlock in train mode on (T, B, C)."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, block: Any, ops: RowOperations, *parameters: Tensor) -> Tensor:
        h, saved = u, []
        for module in (block.module0, block.module1, block.module2):
            h, of_module = module_forward(module, h, ops)
            saved.append(of_module)
        conv = block.residual.conv
        projected = mm(u.flatten(0, 1), conv.weight[..., 0].T)
        normed = ops.norm_forward([projected], block.residual.bn, conv.bias, h.flatten(0, 1))
        ctx.block, ctx.saved, ctx.residual, ctx.ops = block, saved, normed, ops
        return normed.y.view_as(h)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        block, saved, residual, ops = ctx.block, ctx.saved, ctx.residual, ctx.ops
        del ctx.saved, ctx.residual
        u, conv = saved[0].u, block.residual.conv
        gradients = {"residual.conv.bias": torch.zeros_like(conv.bias)}
        dh = torch.ops.aten.threshold_backward(dout.contiguous(), residual.y.view_as(dout), 0)
        (ds,), gradients["residual.bn.weight"], gradients["residual.bn.bias"] = ops.norm_backward(
            dh.flatten(0, 1), residual, block.residual.bn, masked=False
        )
        gradients["residual.conv.weight"] = mm(ds.T, u.flatten(0, 1)).unsqueeze(2)
        for number in (2, 1, 0):
            dh, of_module = module_backward(getattr(block, f"module{number}"), dh, saved.pop(), ops)
            gradients |= {f"module{number}.{name}": gradient for name, gradient in of_module.items()}
        addmm_(dh.flatten(0, 1), ds, conv.weight[..., 0])
        return dh, None, None, *(gradients[name] for name, _ in block.named_parameters())


def module_forward(module: Any, u: Tensor, ops: RowOperations) -> tuple[Tensor, Saved]:
    """Send (T, B, C) through an InceptionModule -> (T, B, F), and say what its backward pass needs."""
    n_times, n_cases, width = u.shape
    narrow = mm(u.view(-1, width), module.bottleneck.weight[..., 0].T, module.bottleneck.bias)
    narrow = narrow.view(n_times, n_cases, -1)

    def pool_branch() -> tuple[Tensor, Tensor]:
        pooled = ops.pooling.pool_forward(u)
        return pooled, mm(pooled.flatten(0, 1), module.poolconv.weight[..., 0].T)

    tasks: Tasks = [partial(convolve, narrow, weights) for weights in _groups(module, u.device)]
    *convolved, (pooled, projected) = in_parallel([*tasks, pool_branch], u.device)
    bias = torch.cat([getattr(module, name).bias for name in (*module.branches, "poolconv")])
    normed = ops.norm_forward([*(y.flatten(0, 1) for y, _ in convolved), projected], module.bn, bias)
    return normed.y.view(n_times, n_cases, -1), Saved(u, [saved for _, saved in convolved], pooled, normed)


def module_backward(module: Any, dout: Tensor, saved: Saved, ops: RowOperations) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the gradient of u, and those of the parameters by name."""
    n_times, n_cases, width = saved.u.shape
    gradients: dict[str, Tensor] = {}
    (*dys, dprojected), gradients["bn.weight"], gradients["bn.bias"] = ops.norm_backward(
        dout.flatten(0, 1), saved.normed, module.bn
    )

    def pool_branch() -> tuple[Tensor, Tensor]:
        dpooled = mm(dprojected, module.poolconv.weight[..., 0]).view_as(saved.u)
        dweight = mm(dprojected.T, saved.pooled.flatten(0, 1)).unsqueeze(2)
        return ops.pooling.pool_backward(dpooled, saved.u), dweight

    tasks: Tasks = [
        partial(convolve_backward, dy.reshape(n_times, n_cases, -1), convolved, weights)
        for dy, convolved, weights in zip(dys, saved.convolutions, _groups(module, dout.device), strict=True)
    ]
    *convolved, (du, gradients["poolconv.weight"]) = in_parallel([*tasks, pool_branch], dout.device)
    *biases, gradients["poolconv.bias"] = torch.zeros_like(module.bn.bias).chunk(len(module.branches) + 1)
    dweights = [dweight for _, of_group in convolved for dweight in of_group]
    for name, dweight, bias in zip(module.branches, dweights, biases, strict=True):
        gradients[f"{name}.weight"], gradients[f"{name}.bias"] = dweight, bias
    dnarrow = convolved[0][0]
    for dv, _ in convolved[1:]:
        dnarrow.add_(dv)
    dnarrow = dnarrow.flatten(0, 1)
    gradients["bottleneck.weight"] = mm(dnarrow.T, saved.u.view(-1, width)).unsqueeze(2)
    gradients["bottleneck.bias"] = dnarrow.sum(dim=0)
    addmm_(du.view(-1, width), dnarrow, module.bottleneck.weight[..., 0])
    return du, gradients


def _groups(module: Any, device: torch.device) -> list[list[Tensor]]:
    """Return the kernels over one input, in groups that are joined into one convolution.

    A GPU likes few and large products. On a CPU it is the arithmetic that counts, and joined kernels are all as long as
    the longest of them.
    """
    weights = [getattr(module, name).weight for name in module.branches]
    return [weights] if device.type == "cuda" else [[weight] for weight in weights]


def in_parallel(tasks: Sequence[Callable[[], Any]], device: torch.device) -> list[Any]:
    """Run tasks that do not need each other; while a CUDA graph is captured, as parallel branches of it.

    Small kernels leave most of a GPU idle, so branches are nearly free there. Outside a capture the tasks run one
    after the other: the host would be slower than the device anyway.
    """
    if device.type != "cuda" or not torch.cuda.is_current_stream_capturing():
        return [task() for task in tasks]
    trunk = torch.cuda.current_stream(device)
    streams = [trunk, *_side_streams(trunk.cuda_stream, len(tasks) - 1, device)]
    results = []
    # A side stream first waits for the trunk: memory that it reuses may have been read there.
    for stream in streams[1:]:
        stream.wait_stream(trunk)
    try:
        for task, stream in zip(tasks, streams, strict=True):
            with torch.cuda.stream(stream):
                results.append(task())
    except BaseException:
        with suppress(RuntimeError):  # a capture that fails can be ended only with its branches joined
            _join(trunk, streams[1:])
        raise
    _join(trunk, streams[1:])
    return results


def _join(trunk: Any, others: Sequence[Any]) -> None:
    for stream in others:
        trunk.wait_stream(stream)


@lru_cache(maxsize=256)
def _side_streams(trunk: int, count: int, device: torch.device) -> tuple[Any, ...]:
    """Return the side streams of a trunk, always the same: two trunks at work at once must never share one.

    cuBLAS has one scratch memory per stream. PyTorch hands out 32 streams per priority in turn, so these are taken from
    another priority than the trunks.
    """
    return tuple(torch.cuda.Stream(device, priority=-1) for _ in range(count))  # type: ignore[no-untyped-call]
