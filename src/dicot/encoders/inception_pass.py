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

from dicot.encoders import convolution
from dicot.encoders.branches import together
from dicot.encoders.row_ways import rows_for
from dicot.encoders.rows import Normed

Tasks = list[Callable[[], Any]]


class Kept(NamedTuple):
    """What the backward pass of a module needs."""

    u: Tensor
    convolutions: list[tuple[Tensor, ...]]
    pooled: Tensor
    pairs: Tensor | None
    normed: Normed


def module_forward(module: Any, u: Tensor, rows: Any) -> tuple[Tensor, Kept]:
    """(T, B, C) -> (T, B, F)."""
    n_times, n_cases, width = u.shape
    narrow = torch.addmm(module.bottleneck.bias, u.view(-1, width), module.bottleneck.weight[..., 0].T)
    narrow = narrow.view(n_times, n_cases, -1)
    tasks: Tasks = [partial(convolution.forward, narrow, weights) for weights in _groups(module, u.device)]
    tasks.append(partial(_pool_branch, module, u, rows))
    *convolved, (pooled, pairs, projected) = together(tasks, u.device)
    bias = torch.cat([getattr(module, name).bias for name in (*module.branches, "poolconv")])
    normed = rows.norm_forward([*(y.flatten(0, 1) for y, _ in convolved), projected], module.bn, bias)
    return normed.y.view(n_times, n_cases, -1), Kept(u, [kept for _, kept in convolved], pooled, pairs, normed)


def _groups(module: Any, place: torch.device) -> list[list[Tensor]]:
    return [[getattr(module, name).weight for name in group] for group in convolution.groups(module.branches, place)]


def _pool_branch(module: Any, u: Tensor, rows: Any) -> tuple[Tensor, Tensor | None, Tensor]:
    pooled, pairs = rows.pool_forward(u)
    return pooled, pairs, pooled.flatten(0, 1) @ module.poolconv.weight[..., 0].T


def module_backward(module: Any, dout: Tensor, kept: Kept, rows: Any, gradients: dict[str, Tensor]) -> Tensor:
    """The gradient of u; those of the parameters are put under their names."""
    n_times, n_cases, width = kept.u.shape
    groups = _groups(module, dout.device)
    widths = [*(sum(len(weight) for weight in group) for group in groups), len(module.poolconv.weight)]
    dparts, gradients["bn.weight"], gradients["bn.bias"] = rows.norm_backward(
        dout.flatten(0, 1), kept.normed, module.bn, widths
    )
    tasks: Tasks = [
        partial(convolution.backward, dy.reshape(n_times, n_cases, -1), convolved, weights)
        for dy, convolved, weights in zip(dparts, kept.convolutions, groups, strict=False)
    ]
    tasks.append(partial(_pool_branch_backward, module, dparts[-1], kept, rows))
    du: Tensor
    *convolved, (du, gradients["poolconv.weight"]) = together(tasks, dout.device)
    *biases, gradients["poolconv.bias"] = torch.zeros_like(module.bn.bias).chunk(len(module.branches) + 1)
    dweights = [dweight for _, of_group in convolved for dweight in of_group]
    for name, dweight, bias in zip(module.branches, dweights, biases, strict=True):
        gradients[f"{name}.weight"], gradients[f"{name}.bias"] = dweight, bias
    dnarrow = convolved[0][0]
    for dv, _ in convolved[1:]:
        dnarrow.add_(dv)
    dnarrow = dnarrow.flatten(0, 1)
    gradients["bottleneck.weight"] = (dnarrow.T @ kept.u.view(-1, width)).unsqueeze(2)
    gradients["bottleneck.bias"] = dnarrow.sum(dim=0)
    du.view(-1, width).addmm_(dnarrow, module.bottleneck.weight[..., 0])
    return du


def _pool_branch_backward(module: Any, dprojected: Tensor, kept: Kept, rows: Any) -> tuple[Tensor, Tensor]:
    """Gradients of u, as far as this branch goes, and of the 1 x 1 convolution."""
    dpooled = (dprojected @ module.poolconv.weight[..., 0]).view_as(kept.u)
    dweight = (dprojected.T @ kept.pooled.flatten(0, 1)).unsqueeze(2)
    return rows.pool_backward(dpooled, kept.u, kept.pairs), dweight


class BlockPass(torch.autograd.Function):
    """Three modules in sequence and the linear residual around them."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, block: Any, *parameters: Tensor) -> Tensor:
        rows = rows_for(u, block.module0.poolconv.out_channels)
        h, kept = u, []
        for module in (block.module0, block.module1, block.module2):
            h, state = module_forward(module, h, rows)
            kept.append(state)
        conv = block.residual.conv
        normed = rows.norm_forward(
            [u.flatten(0, 1) @ conv.weight[..., 0].T], block.residual.bn, conv.bias, h.flatten(0, 1)
        )
        ctx.block, ctx.kept, ctx.residual, ctx.rows = block, kept, normed, rows
        out: Tensor = normed.y.view_as(h)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        block, kept, residual, rows = ctx.block, ctx.kept, ctx.residual, ctx.rows
        del ctx.kept, ctx.residual
        u, conv = kept[0].u, block.residual.conv
        gradients = {"residual.conv.bias": torch.zeros_like(conv.bias)}
        dh = torch.ops.aten.threshold_backward(dout.contiguous(), residual.y.view_as(dout), 0)
        (ds,), gradients["residual.bn.weight"], gradients["residual.bn.bias"] = rows.norm_backward(
            dh.flatten(0, 1), residual, block.residual.bn, [dh.shape[2]], masked=False
        )
        gradients["residual.conv.weight"] = (ds.T @ u.flatten(0, 1)).unsqueeze(2)
        for number in (2, 1, 0):
            of_module: dict[str, Tensor] = {}
            dh = module_backward(getattr(block, f"module{number}"), dh, kept.pop(), rows, of_module)
            gradients |= {f"module{number}.{name}": gradient for name, gradient in of_module.items()}
        dh.flatten(0, 1).addmm_(ds, conv.weight[..., 0])
        return dh, None, *(gradients[name] for name, _ in block.named_parameters())


def block_pass(block: nn.Module, u: Tensor) -> Tensor:
    """(T, B, C) -> (T, B, F) through an InceptionBlock in train mode."""
    h: Tensor = BlockPass.apply(u, block, *block.parameters())  # type: ignore[no-untyped-call]
    return h
