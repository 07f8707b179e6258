"""The training pass's memory traffic on a GPU, halved: BatchNorm with ReLU and pooling over time, in Triton.

PyTorch's operators for the same read and write the features two to three times as often. Sums are taken in a fixed
order, so the same input gives the same bits.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import BatchNorm1d

ROWS, COLUMNS = 32, 64  # of a tile
MOST_BLOCKS = 528  # over rows; four per multiprocessor of a large GPU
TIME_STEPS, VALUES = 8, 256  # of a tile of the pooling


@triton.jit
def _load(a, b, rows, columns, width, n_columns, inside):
    """Read a tile of a matrix whose first `width` columns lie in a, the others in b."""
    in_a = columns < width
    from_a = tl.load(a + rows * width + columns, mask=inside & in_a, other=0.0)
    from_b = tl.load(b + rows * (n_columns - width) + columns - width, mask=inside & (columns >= width), other=0.0)
    return tl.where(in_a, from_a, from_b)


@triton.jit
def _norm_sums(a, b, width, sums, n_rows, n_columns, per_block, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sums of x - x[0] and of its square over the rows of a block: taken from the first row they do not cancel."""
    block = tl.program_id(0)
    columns = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    is_column = columns < n_columns
    origin = _load(a, b, 0, columns, width, n_columns, is_column)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    squares = tl.zeros((ROWS, COLUMNS), tl.float32)
    start = block * per_block
    for first in range(start, min(start + per_block, n_rows), ROWS):
        rows = (first + tl.arange(0, ROWS))[:, None].to(tl.int64)
        inside = (rows < min(start + per_block, n_rows)) & is_column
        x = _load(a, b, rows, columns, width, n_columns, inside) - origin
        x = tl.where(inside, x, 0.0)
        total += x
        squares += x * x
    at = sums + block * 2 * n_columns + columns
    tl.store(at, tl.sum(total, 0)[None, :], mask=is_column)
    tl.store(at + n_columns, tl.sum(squares, 0)[None, :], mask=is_column)


@triton.jit
def _norm_apply(
    a, b, width, scale, shift, added, y, n_rows, n_columns,
    HAS_ADDED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """y = relu(x * scale + shift + added)."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None].to(tl.int64)
    columns = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    is_column = columns < n_columns
    inside = (rows < n_rows) & is_column
    x = _load(a, b, rows, columns, width, n_columns, inside)
    value = x * tl.load(scale + columns, mask=is_column) + tl.load(shift + columns, mask=is_column)
    if HAS_ADDED:
        value += tl.load(added + rows * n_columns + columns, mask=inside)
    tl.store(y + rows * n_columns + columns, tl.where(value < 0, 0.0, value), mask=inside)  # NaN stays NaN


@triton.jit
def _gradient_sums(
    a, b, width, mean, dy, y, sums, n_rows, n_columns, per_block, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Sums of g and of g * (x - mean) over the rows of a block, where g is the gradient in front of ReLU."""
    block = tl.program_id(0)
    columns = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    is_column = columns < n_columns
    centre = tl.load(mean + columns, mask=is_column)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    products = tl.zeros((ROWS, COLUMNS), tl.float32)
    start = block * per_block
    for first in range(start, min(start + per_block, n_rows), ROWS):
        rows = (first + tl.arange(0, ROWS))[:, None].to(tl.int64)
        inside = (rows < min(start + per_block, n_rows)) & is_column
        at = rows * n_columns + columns
        is_on = tl.load(y + at, mask=inside, other=0.0) > 0
        g = tl.where(is_on, tl.load(dy + at, mask=inside, other=0.0), 0.0)
        total += g
        products += g * (_load(a, b, rows, columns, width, n_columns, inside) - centre)
    at = sums + block * 2 * n_columns + columns
    tl.store(at, tl.sum(total, 0)[None, :], mask=is_column)
    tl.store(at + n_columns, tl.sum(products, 0)[None, :], mask=is_column)


@triton.jit
def _gradient_apply(
    a, b, width, by_g, by_x, constant, dy, y, da, db, dadded, n_rows, n_columns,
    HAS_ADDED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """dx = by_g * g + by_x * x + constant, per column, and the gradient of what was added, which is g."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None].to(tl.int64)
    columns = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    is_column = columns < n_columns
    inside = (rows < n_rows) & is_column
    at = rows * n_columns + columns
    is_on = tl.load(y + at, mask=inside, other=0.0) > 0
    g = tl.where(is_on, tl.load(dy + at, mask=inside, other=0.0), 0.0)
    x = _load(a, b, rows, columns, width, n_columns, inside)
    dx = tl.load(by_g + columns, mask=is_column) * g + tl.load(by_x + columns, mask=is_column) * x
    dx += tl.load(constant + columns, mask=is_column)
    tl.store(da + rows * width + columns, dx, mask=inside & (columns < width))
    tl.store(db + rows * (n_columns - width) + columns - width, dx, mask=inside & (columns >= width))
    if HAS_ADDED:
        tl.store(dadded + at, g, mask=inside)


@triton.jit
def _pool(u, y, n_times, n_values, TIME_STEPS: tl.constexpr, VALUES: tl.constexpr):
    """y[t] = max(u[t - 1], u[t], u[t + 1])."""
    time = (tl.program_id(0) * TIME_STEPS + tl.arange(0, TIME_STEPS))[:, None].to(tl.int64)
    values = (tl.program_id(1) * VALUES + tl.arange(0, VALUES))[None, :]
    inside = (time < n_times) & (values < n_values)
    before = tl.load(u + tl.maximum(time - 1, 0) * n_values + values, mask=inside)
    now = tl.load(u + time * n_values + values, mask=inside)
    after = tl.load(u + tl.minimum(time + 1, n_times - 1) * n_values + values, mask=inside)
    largest = tl.where(now > before, now, before)
    largest = tl.where(after > largest, after, largest)
    tl.store(y + time * n_values + values, largest, mask=inside)


@triton.jit
def _pool_gradient(dy, u, du, n_times, n_values, TIME_STEPS: tl.constexpr, VALUES: tl.constexpr):
    """Each output's gradient goes to the first of the three that equals it."""
    time = (tl.program_id(0) * TIME_STEPS + tl.arange(0, TIME_STEPS))[:, None].to(tl.int64)
    values = (tl.program_id(1) * VALUES + tl.arange(0, VALUES))[None, :]
    inside = (time < n_times) & (values < n_values)
    low = float("-inf")
    u_2 = tl.load(u + (time - 2) * n_values + values, mask=inside & (time >= 2), other=low)
    u_1 = tl.load(u + (time - 1) * n_values + values, mask=inside & (time >= 1), other=low)
    u0 = tl.load(u + time * n_values + values, mask=inside)
    u1 = tl.load(u + (time + 1) * n_values + values, mask=inside & (time + 1 < n_times), other=low)
    u2 = tl.load(u + (time + 2) * n_values + values, mask=inside & (time + 2 < n_times), other=low)
    dy_1 = tl.load(dy + (time - 1) * n_values + values, mask=inside & (time >= 1), other=0.0)
    dy0 = tl.load(dy + time * n_values + values, mask=inside)
    dy1 = tl.load(dy + (time + 1) * n_values + values, mask=inside & (time + 1 < n_times), other=0.0)
    as_last = (u0 > u_1) & (u0 > u_2)  # of the three around t - 1
    as_middle = (u0 > u_1) & (u0 >= u1)  # of those around t
    as_first = (u0 >= u1) & (u0 >= u2)  # of those around t + 1
    gradient = tl.where(as_last, dy_1, 0.0) + tl.where(as_middle, dy0, 0.0) + tl.where(as_first, dy1, 0.0)
    tl.store(du + time * n_values + values, gradient, mask=inside)


class NormRelu(torch.autograd.Function):
    """relu(BatchNorm(x) + added) of x (..., C), in one part or in two side by side, with the batch's statistics.

    Also returns mean and variance (C,), which have no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor | None, weight: Tensor, shift: Tensor, added: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        parts = a.contiguous(), (a if b is None else b).contiguous()
        width = a.shape[-1]
        n_columns = len(weight)
        n_rows = a.numel() // width
        blocks, per_block = _blocks(n_rows, n_columns)
        sums = a.new_empty(blocks[0], 2, n_columns)
        _norm_sums[blocks](*parts, width, sums, n_rows, n_columns, per_block, ROWS=ROWS, COLUMNS=COLUMNS)

        offset, square = (sums.sum(dim=0, dtype=torch.float64) / n_rows).unbind()
        first_row = parts[0].view(n_rows, -1)[0]
        if b is not None:
            first_row = torch.cat([first_row, parts[1].view(n_rows, -1)[0]])
        variance = (square - offset.square()).clamp(min=0).float()
        mean = first_row + offset.float()
        rstd = (variance + eps).rsqrt()
        scale = weight * rstd

        y = a.new_empty(*a.shape[:-1], n_columns)
        tiles = triton.cdiv(n_rows, ROWS), blocks[1]
        _norm_apply[tiles](
            *parts, width, scale, shift - mean * scale, y if added is None else added.contiguous(), y, n_rows,
            n_columns, HAS_ADDED=added is not None, ROWS=ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
        ctx.save_for_backward(*parts, y, mean, rstd, weight)
        ctx.in_two, ctx.has_added = b is not None, added is not None
        ctx.mark_non_differentiable(mean, variance)
        return y, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        *parts, y, mean, rstd, weight = ctx.saved_tensors
        dy = dy.contiguous()
        width, n_columns = parts[0].shape[-1], len(weight)
        n_rows = y.numel() // n_columns
        blocks, per_block = _blocks(n_rows, n_columns)
        sums = y.new_empty(blocks[0], 2, n_columns)
        _gradient_sums[blocks](
            *parts, width, mean, dy, y, sums, n_rows, n_columns, per_block, ROWS=ROWS, COLUMNS=COLUMNS
        )
        dshift, products = sums.sum(dim=0, dtype=torch.float64).float().unbind()
        dweight = products * rstd

        # dx = weight * rstd * (g - mean of g - (x - mean) * rstd * mean of g * (x - mean) * rstd)
        by_g = weight * rstd
        by_x = -by_g * rstd * dweight / n_rows
        constant = -by_g * dshift / n_rows - by_x * mean
        da = torch.empty_like(parts[0])
        db = torch.empty_like(parts[1]) if ctx.in_two else da
        dadded = torch.empty_like(y) if ctx.has_added else y
        tiles = triton.cdiv(n_rows, ROWS), blocks[1]
        _gradient_apply[tiles](
            *parts, width, by_g, by_x, constant, dy, y, da, db, dadded, n_rows, n_columns,
            HAS_ADDED=ctx.has_added, ROWS=ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
        return da, db if ctx.in_two else None, dweight, dshift, dadded if ctx.has_added else None, None


def norm_relu(
    branches: Sequence[Tensor], norm: BatchNorm1d, shift: Tensor, added: Tensor | None, momentum: float
) -> Tensor:
    """Compute relu(BatchNorm(x) + added) of x (T, B, C), which comes in one branch or in two."""
    assert norm.running_mean is not None and norm.running_var is not None
    first, *others = branches
    second = torch.cat(others, dim=2) if others else None
    y, mean, variance = NormRelu.apply(first, second, norm.weight, shift, added, norm.eps)
    n_rows = y.shape[0] * y.shape[1]
    norm.running_mean.lerp_(mean, momentum)
    norm.running_var.lerp_(variance * (n_rows / (n_rows - 1)), momentum)
    normed: Tensor = y
    return normed


def _blocks(n_rows: int, n_columns: int) -> tuple[tuple[int, int], int]:
    """Return the blocks over rows and columns whose sums are taken apart, and the rows of a block."""
    per_block = max(2 * ROWS, triton.cdiv(n_rows, MOST_BLOCKS))
    return (triton.cdiv(n_rows, per_block), triton.cdiv(n_columns, COLUMNS)), per_block


class LargestOfThree(torch.autograd.Function):
    """The largest of three neighbouring time steps of (T, B, C). No index of 8 bytes is saved for the gradient."""

    @staticmethod
    def forward(ctx: Any, u: Tensor) -> Tensor:
        u = u.contiguous()
        ctx.save_for_backward(u)
        y = torch.empty_like(u)
        _pool[_tiles(u)](u, y, len(u), u[0].numel(), TIME_STEPS=TIME_STEPS, VALUES=VALUES)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (u,) = ctx.saved_tensors
        du = torch.empty_like(u)
        _pool_gradient[_tiles(u)](dy.contiguous(), u, du, len(u), u[0].numel(), TIME_STEPS=TIME_STEPS, VALUES=VALUES)
        return du


def _tiles(u: Tensor) -> tuple[int, int]:
    return triton.cdiv(len(u), TIME_STEPS), triton.cdiv(u[0].numel(), VALUES)
