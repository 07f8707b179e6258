"""The four functions of `rows` in CUDA (kernels.cu): half the memory traffic, nothing saved for the pooling.

Where they cannot be compiled `rows` does the work.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dicot.core.gpu.kernels import Compiled, KernelFile, Size
from dicot.nets.encoders.inception.rows import Normed, next_momentum

ARGUMENTS = {
    "norm_sums": "PPiiiiP",
    "norm_statistics": "PPiPiiiPPPPPPddP",
    "norm_apply": "PPiiiPPiP",
    "grad_sums": "PPiPPiiiiPP",
    "grad_statistics": "PiiiPPPPP",
    "grad_apply": "PPiPPiiiPPP",
    "pool": "PPii",
    "pool_bf16": "PPii",
    "join": "PPiiiiiPPPPPPP",
    "join_bf16": "PPiiiPPP",
    "pool_backward": "PPPii",
}
AT_A_TIME = {torch.float32: 4, torch.bfloat16: 8}  # values that a thread loads at once
OF_TYPE = {torch.float32: "", torch.bfloat16: "_bf16"}  # what the names of their kernels end with
BLOCK = (64, 4, 1)  # four columns each x rows
SHARED = 2 * 64 * 4 * 16  # bytes: two sums of four columns per thread
JOINED_AT_ONCE = 16  # time steps that a thread of `join` goes through
MOST_BLOCKS = 528  # four per multiprocessor of a large GPU
FILE = KernelFile("dicot.nets.encoders.inception", "kernels.cu", ARGUMENTS)


def compiled(device: torch.device) -> Compiled | None:
    """Load the kernels, or return None where they cannot be compiled."""
    return FILE.on(device)


def _launch(name: str, device: torch.device, grid: Size, block: Size, *args: Any) -> None:
    FILE.launch(name, device, grid, block, *args, shared=SHARED if name.endswith("sums") else 0)


def _two(parts: Sequence[Tensor]) -> list[Any]:
    """Return two parts and the width of the first, as kernels take them; of a single part the second is never read."""
    return [parts[0], parts[-1], parts[0].shape[-1]]


def _grid(n_rows: int, n_columns: int) -> tuple[Size, int]:
    """Return the blocks over rows and columns, and the rows of a block."""
    per_block = max(32, -(-n_rows // MOST_BLOCKS))
    return (-(-n_rows // per_block), -(-n_columns // (4 * BLOCK[0])), 1), per_block


def norm_forward(parts: Sequence[Tensor], norm: nn.BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
    """See `rows.norm_forward`."""
    device, n_rows, n_columns = parts[0].device, len(parts[0]), norm.num_features
    grid, per_block = _grid(n_rows, n_columns)
    x = _two(parts)
    partial = parts[0].new_empty(grid[0], 2, n_columns)
    statistics = parts[0].new_empty(4, n_columns)
    y = parts[0].new_empty(n_rows, n_columns)
    _launch("norm_sums", device, grid, BLOCK, *x, n_rows, n_columns, per_block, partial)
    _launch(
        "norm_statistics", device, (-(-n_columns // 32), 1, 1), (32, 16, 1), *x, partial, grid[0], n_rows, n_columns,
        norm.weight, norm.bias, bias, norm.running_mean, norm.running_var, norm.num_batches_tracked,
        float(next_momentum(norm)), float(norm.eps), statistics,
    )  # fmt: skip
    has_added, addend = int(added is not None), y if added is None else added
    _launch("norm_apply", device, grid, BLOCK, *x, n_rows, n_columns, statistics, addend, has_added, y)
    return Normed(parts, y, statistics)


def norm_backward(
    dy: Tensor, saved: Normed, norm: nn.BatchNorm1d, widths: Sequence[int], masked: bool = True
) -> tuple[Sequence[Tensor], Tensor, Tensor]:
    """See `rows.norm_backward`."""
    device, (n_rows, n_columns) = dy.device, saved.y.shape
    grid, per_block = _grid(n_rows, n_columns)
    x, of_output = _two(saved.x), (dy, saved.y, int(masked))
    partial = dy.new_empty(grid[0], 2, n_columns)
    dweight, dbias, of_x = dy.new_empty(n_columns), dy.new_empty(n_columns), dy.new_empty(3, n_columns)
    dparts = [torch.empty_like(part) for part in saved.x]
    _launch("grad_sums", device, grid, BLOCK, *x, *of_output, n_rows, n_columns, per_block, saved.statistics, partial)
    _launch(
        "grad_statistics", device, (-(-n_columns // 32), 1, 1), (32, 16, 1), partial, grid[0], n_rows, n_columns,
        norm.weight, saved.statistics, dweight, dbias, of_x,
    )  # fmt: skip
    _launch("grad_apply", device, grid, BLOCK, *x, *of_output, n_rows, n_columns, of_x, dparts[0], dparts[-1])
    return dparts, dweight, dbias


def serve(like: Tensor, *widths: int) -> bool:
    """Tell whether `pool_into` and `join_into` take tensors of this type and device with so many columns."""
    wide = AT_A_TIME.get(like.dtype) if like.is_cuda else None
    return wide is not None and all(width % wide == 0 for width in widths) and compiled(like.device) is not None


def pool_into(u: Tensor, y: Tensor) -> Tensor:
    """Write the largest of three neighbouring time steps of u (T, B, C) into y."""
    _launch("pool" + OF_TYPE[u.dtype], u.device, *_over_time(u), u, y, len(u), u[0].numel())
    return y


def join_into(
    parts: Sequence[Tensor],
    shift: Tensor,
    lowest: Tensor,
    y: Tensor,
    *,
    factors: Tensor | None = None,
    added: tuple[Tensor | None, Tensor | None] = (None, None),
    largest: Tensor | None = None,
) -> Tensor:
    """Write max(x + shift, lowest) of x (T, B, C) that comes in two parts into y; shift and lowest (C,) are float32.

    What follows is for float32 alone: the first part is first multiplied by `factors` (B,), what is `added` (T, B, C),
    multiplied by factors of its own, goes through ReLU with the rest, and the largest absolute values of cases are put
    into `largest` (B,).
    """
    n_times, n_cases, n_columns = y.shape
    columns = -(-n_columns // AT_A_TIME[y.dtype])
    x, block = _two(parts), (min(BLOCK[0], columns), BLOCK[1], 1)
    if y.dtype != torch.float32:
        n_rows = n_times * n_cases
        grid = (min(-(-n_rows // BLOCK[1]), MOST_BLOCKS * 4), -(-columns // block[0]), 1)
        _launch("join_bf16", y.device, grid, block, *x, n_rows, n_columns, shift, lowest, y)
        return y
    if largest is not None:
        largest.zero_()
    block = (-(-block[0] // 32) * 32, BLOCK[1], 1)  # whole warps: their threads compare what they have
    grid = (-(-n_times // JOINED_AT_ONCE), -(-n_cases // block[1]), -(-columns // block[0]))
    maybe = (0 if tensor is None else tensor for tensor in (factors, *added))
    sizes = n_times, n_cases, n_columns, JOINED_AT_ONCE
    _launch("join", y.device, grid, block, *x, *sizes, shift, lowest, *maybe, y, 0 if largest is None else largest)
    return y


def pool_forward(u: Tensor) -> tuple[Tensor, Tensor | None]:
    """See `rows.pool_forward`; nothing is saved."""
    return pool_into(u, torch.empty_like(u)), None


def pool_backward(dy: Tensor, u: Tensor, pairs: Tensor | None) -> Tensor:
    """See `rows.pool_backward`."""
    du = torch.empty_like(u)
    _launch("pool_backward", u.device, *_over_time(u), dy, u, du, len(u), u[0].numel())
    return du


def _over_time(u: Tensor) -> tuple[Size, Size]:
    return (-(-u[0].numel() // (AT_A_TIME[u.dtype] * 256)), min(len(u), 65535), 1), (256, 1, 1)
