"""The training pass of InceptionTime's residual blocks, forwards and backwards by hand, on (T, B, C) tensors.

Convolutions are matrix products there (see `convolution`), time never moves in memory, and a bias in front of
BatchNorm, which takes it out again, is left out: its gradient is zero.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dicot.nets.encoders.inception import convolution, products
from dicot.nets.encoders.inception.divided import divided_rows
from dicot.nets.encoders.inception.rows import Normed, PaddedRows, RowOperations, row_operations

Tasks = list[Callable[[], Any]]


class Saved(NamedTuple):
    """What the backward pass of a module needs."""

    u: Tensor
    convolutions: list[tuple[Tensor, ...]]
    pooled: Tensor
    pairs: Tensor | None
    normed: Normed


def block_pass(block: Any, u: Tensor, padded: PaddedRows | None = None) -> Tensor:
    """Send (T, B, C) through an InceptionBlock in train mode -> (T, B, F); `padded` says where cases end before T."""
    ops: RowOperations = row_operations(u, block.module0.poolconv.out_channels) if padded is None else padded
    ops = divided_rows(block.module0.bn, ops)
    h: Tensor = BlockPass.apply(u, block, ops, *block.parameters())  # type: ignore[no-untyped-call]
    return h


def pad_rows(block: Any, u: Tensor, length: Tensor) -> PaddedRows:
    """Describe cases (T, B, C) of which the first `length` time steps count, for `block_pass`."""
    return PaddedRows(length, u.shape, u.dtype, row_operations(u, block.module0.poolconv.out_channels))


class BlockPass(torch.autograd.Function):
    """Three modules in sequence and the linear residual around them."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, block: Any, ops: RowOperations, *parameters: Tensor) -> Tensor:
        h, saved = u, []
        for module in (block.module0, block.module1, block.module2):
            h, of_module = module_forward(module, h, ops)
            saved.append(of_module)
        conv = block.residual.conv
        projected = products.mm(u.flatten(0, 1), conv.weight[..., 0].T)
        normed = ops.norm_forward([projected], block.residual.bn, conv.bias, h.flatten(0, 1))
        ctx.block, ctx.saved, ctx.residual, ctx.ops = block, saved, normed, ops
        out: Tensor = normed.y.view_as(h)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        block, saved, residual, ops = ctx.block, ctx.saved, ctx.residual, ctx.ops
        del ctx.saved, ctx.residual
        u, conv = saved[0].u, block.residual.conv
        gradients = {"residual.conv.bias": torch.zeros_like(conv.bias)}
        dh = torch.ops.aten.threshold_backward(dout.contiguous(), residual.y.view_as(dout), 0)
        (ds,), gradients["residual.bn.weight"], gradients["residual.bn.bias"] = ops.norm_backward(
            dh.flatten(0, 1), residual, block.residual.bn, [dh.shape[2]], masked=False
        )
        gradients["residual.conv.weight"] = products.mm(ds.T, u.flatten(0, 1)).unsqueeze(2)
        for number in (2, 1, 0):
            of_module: dict[str, Tensor] = {}
            dh = module_backward(getattr(block, f"module{number}"), dh, saved.pop(), ops, of_module)
            gradients |= {f"module{number}.{name}": gradient for name, gradient in of_module.items()}
        products.addmm_(dh.flatten(0, 1), ds, conv.weight[..., 0])
        return dh, None, None, *(gradients[name] for name, _ in block.named_parameters())


def module_forward(module: Any, u: Tensor, ops: RowOperations) -> tuple[Tensor, Saved]:
    """Send (T, B, C) through an InceptionModule -> (T, B, F), and say what its backward pass needs."""
    n_times, n_cases, width = u.shape
    narrow = products.addmm(module.bottleneck.bias, u.view(-1, width), module.bottleneck.weight[..., 0].T)
    narrow = narrow.view(n_times, n_cases, -1)
    tasks: Tasks = [partial(convolution.forward, narrow, weights) for weights in _groups(module, u.device)]
    tasks.append(partial(_pool_branch, module, u, ops))
    *convolved, (pooled, pairs, projected) = in_parallel(tasks, u.device)
    bias = torch.cat([getattr(module, name).bias for name in (*module.branches, "poolconv")])
    normed = ops.norm_forward([*(y.flatten(0, 1) for y, _ in convolved), projected], module.bn, bias)
    return normed.y.view(n_times, n_cases, -1), Saved(u, [saved for _, saved in convolved], pooled, pairs, normed)


def module_backward(
    module: Any, dout: Tensor, saved: Saved, ops: RowOperations, gradients: dict[str, Tensor]
) -> Tensor:
    """Return the gradient of u; put those of the parameters under their names."""
    n_times, n_cases, width = saved.u.shape
    groups = _groups(module, dout.device)
    widths = [*(sum(len(weight) for weight in group) for group in groups), len(module.poolconv.weight)]
    dparts, gradients["bn.weight"], gradients["bn.bias"] = ops.norm_backward(
        dout.flatten(0, 1), saved.normed, module.bn, widths
    )
    tasks: Tasks = [
        partial(convolution.backward, dy.reshape(n_times, n_cases, -1), convolved, weights)
        for dy, convolved, weights in zip(dparts, saved.convolutions, groups, strict=False)
    ]
    tasks.append(partial(_pool_branch_backward, module, dparts[-1], saved, ops))
    du: Tensor
    *convolved, (du, gradients["poolconv.weight"]) = in_parallel(tasks, dout.device)
    *biases, gradients["poolconv.bias"] = torch.zeros_like(module.bn.bias).chunk(len(module.branches) + 1)
    dweights = [dweight for _, of_group in convolved for dweight in of_group]
    for name, dweight, bias in zip(module.branches, dweights, biases, strict=True):
        gradients[f"{name}.weight"], gradients[f"{name}.bias"] = dweight, bias
    dnarrow = convolved[0][0]
    for dv, _ in convolved[1:]:
        dnarrow.add_(dv)
    dnarrow = dnarrow.flatten(0, 1)
    gradients["bottleneck.weight"] = products.mm(dnarrow.T, saved.u.view(-1, width)).unsqueeze(2)
    gradients["bottleneck.bias"] = dnarrow.sum(dim=0)
    products.addmm_(du.view(-1, width), dnarrow, module.bottleneck.weight[..., 0])
    return du


def _groups(module: Any, device: torch.device) -> list[list[Tensor]]:
    """Return the kernels over one input, in groups that are joined into one convolution.

    A GPU likes few and large products. On a CPU it is the arithmetic that counts, and joined kernels are all as long as
    the longest of them.
    """
    weights = [getattr(module, name).weight for name in module.branches]
    return [weights] if device.type == "cuda" else [[weight] for weight in weights]


def _pool_branch(module: Any, u: Tensor, ops: RowOperations) -> tuple[Tensor, Tensor | None, Tensor]:
    pooled, pairs = ops.pool_forward(u)
    return pooled, pairs, products.mm(pooled.flatten(0, 1), module.poolconv.weight[..., 0].T)


def _pool_branch_backward(module: Any, dprojected: Tensor, saved: Saved, ops: RowOperations) -> tuple[Tensor, Tensor]:
    """Return this branch's share of the gradient of u, and the gradient of the 1 x 1 convolution."""
    dpooled = products.mm(dprojected, module.poolconv.weight[..., 0]).view_as(saved.u)
    dweight = products.mm(dprojected.T, saved.pooled.flatten(0, 1)).unsqueeze(2)
    return ops.pool_backward(dpooled, saved.u, saved.pairs), dweight


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
