"""A training pass through a residual block of InceptionTime, forwards and backwards by hand, on (T, B, C) tensors.

Convolutions are matrix products there (see `convolution`), time never moves in memory, and a bias in front of
BatchNorm, which takes it out again, is left out: its gradient is zero.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dicot.encoders import convolution, pooling
from dicot.encoders.branches import together
from dicot.encoders.pictures import as_picture, as_rows

aten = torch.ops.aten


class Normed(NamedTuple):
    """What BatchNorm and ReLU keep: input and output rows (M, C), mean and 1 / standard deviation of the batch."""

    x: Tensor
    y: Tensor
    mean: Tensor
    rstd: Tensor


class Kept(NamedTuple):
    """What the backward pass of a module needs."""

    u: Tensor
    convolutions: list[tuple[Tensor, ...]]
    pooled: Tensor
    winner: Tensor
    normed: Normed


def norm_forward(x: Tensor, norm: nn.BatchNorm1d, bias: Tensor) -> Normed:
    """BatchNorm of rows (M, C); the running statistics move as if `bias` had been added to x."""
    assert norm.running_mean is not None and norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    momentum = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    y, mean, rstd = aten.native_batch_norm(
        as_picture(x), norm.weight, norm.bias, norm.running_mean, norm.running_var, True, momentum, norm.eps
    )
    norm.running_mean.add_(bias, alpha=momentum)
    return Normed(x, as_rows(y), mean, rstd)


def norm_backward(dy: Tensor, kept: Normed, norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the rows, of the scale and of the shift."""
    statistics = (norm.running_mean, norm.running_var, kept.mean, kept.rstd)
    dx, dweight, dbias = aten.native_batch_norm_backward(
        as_picture(dy), as_picture(kept.x), norm.weight, *statistics, True, norm.eps, [True, True, True]
    )
    return as_rows(dx), dweight, dbias


def module_forward(module: Any, u: Tensor) -> tuple[Tensor, Kept]:
    """(T, B, C) -> (T, B, F)."""
    n_times, n_cases, width = u.shape
    narrow = torch.addmm(module.bottleneck.bias, u.view(-1, width), module.bottleneck.weight[..., 0].T)
    narrow = narrow.view(n_times, n_cases, -1)
    convs = [getattr(module, name) for name in module.branches]
    tasks: list[Callable[[], Any]] = [partial(convolution.forward, narrow, conv.weight) for conv in convs]
    tasks.append(partial(_pool_branch, module, u))
    *convolved, (pooled, winner, projected) = together(tasks, u.device)
    joined = torch.cat([*(y for y, _ in convolved), projected], dim=2)
    bias = torch.cat([conv.bias for conv in (*convs, module.poolconv)])
    normed = norm_forward(joined.flatten(0, 1), module.bn, bias)
    return normed.y.relu_().view_as(joined), Kept(u, [kept for _, kept in convolved], pooled, winner, normed)


def _pool_branch(module: Any, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    pooled, winner = pooling.forward(u)
    return pooled, winner, pooled @ module.poolconv.weight[..., 0].T


def module_backward(module: Any, dout: Tensor, kept: Kept, gradients: dict[str, Tensor]) -> Tensor:
    """The gradient of u; those of the parameters are put under their names."""
    n_times, n_cases, width = kept.u.shape
    rows = kept.u.view(-1, width)
    dpre = aten.threshold_backward(dout.flatten(0, 1), kept.normed.y, 0)
    dx, gradients["bn.weight"], gradients["bn.bias"] = norm_backward(dpre, kept.normed, module.bn)
    *doutputs, dpoolconv = dx.chunk(len(module.branches) + 1, dim=1)
    *biases, gradients["poolconv.bias"] = torch.zeros_like(module.bn.bias).chunk(len(doutputs) + 1)
    tasks: list[Callable[[], Any]] = [
        partial(convolution.backward, doutput.reshape(n_times, n_cases, -1), convolved, getattr(module, name).weight)
        for name, doutput, convolved in zip(module.branches, doutputs, kept.convolutions, strict=True)
    ]
    tasks.append(partial(_pool_branch_backward, module, dpoolconv, kept))
    du: Tensor
    *convolved, (du, gradients["poolconv.weight"]) = together(tasks, rows.device)
    for name, (_, dweight), bias in zip(module.branches, convolved, biases, strict=True):
        gradients[f"{name}.weight"], gradients[f"{name}.bias"] = dweight, bias
    dnarrow = convolved[0][0]
    for dv, _ in convolved[1:]:
        dnarrow.add_(dv)
    dnarrow = dnarrow.view(len(rows), -1)
    gradients["bottleneck.weight"] = (dnarrow.T @ rows).unsqueeze(2)
    gradients["bottleneck.bias"] = dnarrow.sum(dim=0)
    du.view(-1, width).addmm_(dnarrow, module.bottleneck.weight[..., 0])
    return du


def _pool_branch_backward(module: Any, dprojected: Tensor, kept: Kept) -> tuple[Tensor, Tensor]:
    """Gradients of u, as far as this branch goes, and of the 1 x 1 convolution."""
    dpooled = (dprojected @ module.poolconv.weight[..., 0]).view_as(kept.u)
    dweight = (dprojected.T @ kept.pooled.flatten(0, 1)).unsqueeze(2)
    return pooling.backward(dpooled, kept.u, kept.winner), dweight


class BlockPass(torch.autograd.Function):
    """Three modules in sequence and the linear residual around them."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, block: Any, *parameters: Tensor) -> Tensor:
        h, kept = u, []
        for module in (block.module0, block.module1, block.module2):
            h, state = module_forward(module, h)
            kept.append(state)
        conv = block.residual.conv
        normed = norm_forward((u @ conv.weight[..., 0].T).flatten(0, 1), block.residual.bn, conv.bias)
        ctx.block, ctx.kept, ctx.residual = block, kept, normed
        return normed.y.view_as(h).add_(h).relu_()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        block, kept, residual = ctx.block, ctx.kept, ctx.residual
        u, conv, norm = kept[0].u, block.residual.conv, block.residual.bn
        gradients = {"residual.conv.bias": torch.zeros_like(conv.bias)}
        dh = aten.threshold_backward(dout.contiguous(), residual.y.view_as(dout), 0)
        ds, gradients["residual.bn.weight"], gradients["residual.bn.bias"] = norm_backward(
            dh.flatten(0, 1), residual, norm
        )
        gradients["residual.conv.weight"] = (ds.T @ u.flatten(0, 1)).unsqueeze(2)
        for number in (2, 1, 0):
            of_module: dict[str, Tensor] = {}
            dh = module_backward(getattr(block, f"module{number}"), dh, kept[number], of_module)
            gradients |= {f"module{number}.{name}": gradient for name, gradient in of_module.items()}
        dh.flatten(0, 1).addmm_(ds, conv.weight[..., 0])
        del ctx.kept, ctx.residual
        return dh, None, *(gradients[name] for name, _ in block.named_parameters())


def block_pass(block: nn.Module, u: Tensor) -> Tensor:
    """(T, B, C) -> (T, B, F) through an InceptionBlock in train mode."""
    h: Tensor = BlockPass.apply(u, block, *block.parameters())  # type: ignore[no-untyped-call]
    return h
