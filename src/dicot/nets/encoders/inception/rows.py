"""BatchNorm with ReLU, and pooling over three time steps, forwards and backwards on rows of channels.

There are the same four functions in several forms: by PyTorch's operators for any tensor, in C for a CPU (native.c), in
CUDA for a GPU (kernels.cu), for cases that end before their tensor does, and for the share of one of several ranks.
`row_operations` chooses.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import BatchNorm1d

from dicot.core.machine_code import CFile, KernelFile, Size
from dicot.core.processes.ranks import Ranks
from dicot.nets.encoders.division import DIVISION, Division, Normalised, norm_gradients, normalise

aten = torch.ops.aten
C = CFile("dicot.nets.encoders.inception", "native.c")
MOST_PARTS, WIDEST = 4, 1024  # parts, and columns of a part, as in native.c
CUDA = KernelFile(
    "dicot.nets.encoders.inception",
    "kernels.cu",
    {
        "norm_sums": "PPiiiiP",
        "norm_statistics": "PPiPiiiPPPPPPddP",
        "norm_apply": "PPiiiPPiP",
        "grad_sums": "PPiPPiiiiPP",
        "grad_statistics": "PiiiPPPPP",
        "grad_apply": "PPiPPiiiPPP",
        "pool": "PPii",
        "pool_bf16": "PPii",
        "join": "PPiiiPPP",
        "join_bf16": "PPiiiPPP",
        "pool_backward": "PPPii",
    },
)
AT_A_TIME = {torch.float32: 4, torch.bfloat16: 8}  # values that a thread of a GPU loads at once
OF_TYPE = {torch.float32: "", torch.bfloat16: "_bf16"}  # what the names of their kernels end with
BLOCK = (64, 4, 1)  # four columns each x rows
SHARED = 2 * 64 * 4 * 16  # bytes: two sums of four columns per thread
MOST_BLOCKS = 528  # four per multiprocessor of a large GPU

Parts = Sequence[Tensor]  # (M, C) in parts side by side
Gradients = tuple[Parts, Tensor, Tensor]  # of the rows, of scale and of shift


class Normed(NamedTuple):
    """What the backward pass of BatchNorm and ReLU needs."""

    x: Parts  # input rows (M, C), whole or in parts
    y: Tensor  # (M, C) behind ReLU
    statistics: Tensor  # (1 or more, C): mean, 1 / standard deviation
    widths: list[int]  # columns of the parts


class RowOperations(ABC):
    """What the training pass does beside matrix products; `pooling` has the functions of pooling."""

    def __init__(self, pooling: "RowOperations | None" = None) -> None:
        self.pooling = pooling or self

    @abstractmethod
    def norm_forward(self, parts: Parts, norm: BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
        """Compute relu(BatchNorm(x) + added) of rows; the running statistics move as if `bias` had been added to x."""

    @abstractmethod
    def norm_backward(self, dy: Tensor, saved: Normed, norm: BatchNorm1d, masked: bool = True) -> Gradients:
        """Return the gradients; with masked=False, dy is the one in front of ReLU already."""

    def pool_forward(self, u: Tensor) -> Tensor:
        """Return the largest of three neighbouring time steps of (T, B, C)."""
        return largest_of_three(u, torch.empty_like(u))

    def pool_backward(self, dy: Tensor, u: Tensor) -> Tensor:
        """Return the gradient of u, which goes to the first of equal values; dy may be overwritten.

        pairs[t] = max(u[t], u[t + 1]), and y[t] = max(pairs[t - 1], pairs[t]): no index of 8 bytes is saved.
        """
        if len(u) == 1:
            return dy
        later = _to_the_later(dy[1:-1], torch.maximum(u[:-1], u[1:]))
        dpairs = dy[1:]  # the gradient of pairs[t] overwrites dy[t + 1]
        dpairs[:-1] -= later
        dpairs[1:] += later
        dpairs[0] += dy[0]
        later = _to_the_later(dpairs, u)
        du = torch.empty_like(u)
        torch.sub(dpairs, later, out=du[:-1])
        du[-1] = 0
        du[1:] += later
        return du


def _to_the_later(dlarger: Tensor, x: Tensor) -> Tensor:
    """Return what x[t + 1] gets of the gradient of max(x[t], x[t + 1]): all where it is larger, else nothing."""
    passed: Tensor = aten.threshold_backward(dlarger, x[1:] - x[:-1], 0)
    return passed


def row_operations(u: Tensor, width: int, norm: BatchNorm1d) -> RowOperations:
    """Choose a form for u (T, B, C), whose branches of `width` channels each are normalised together by `norm`."""
    ops: RowOperations = PLAIN
    if u.dtype == torch.float32 and not width % 4 and not u.shape[-1] % 4:
        if u.is_cuda and CUDA.on(u.device) is not None:
            ops = ON_GPU
        elif u.device.type == "cpu" and width * MOST_PARTS <= WIDEST and C.library is not None:
            ops = NATIVE
    division: Division | None = norm.__dict__.get(DIVISION)
    return ops if division is None or division.part is None else DividedRows(division.ranks, ops)


def next_momentum(norm: BatchNorm1d) -> float:
    """Return the next batch's share in the running statistics; without a momentum they are plain averages."""
    assert norm.num_batches_tracked is not None
    return 1 / (1 + float(norm.num_batches_tracked)) if norm.momentum is None else norm.momentum


def _whole(parts: Parts) -> Tensor:
    return torch.cat(list(parts), dim=1) if len(parts) > 1 else parts[0]


def _widths(parts: Parts) -> list[int]:
    return [part.shape[1] for part in parts]


def _activated(y: Tensor, added: Tensor | None) -> Tensor:
    return (y if added is None else y.add_(added)).relu_()


def _in_front(dy: Tensor, saved: Normed, masked: bool) -> Tensor:
    """Return the gradient in front of ReLU."""
    dpre: Tensor = aten.threshold_backward(dy, saved.y, 0) if masked else dy
    return dpre


class PlainRows(RowOperations):
    """By PyTorch's operators, for any device and type."""

    def norm_forward(self, parts: Parts, norm: BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
        assert norm.running_mean is not None and norm.num_batches_tracked is not None
        x, momentum = _whole(parts), next_momentum(norm)
        norm.num_batches_tracked.add_(1)
        image, mean, rstd = aten.native_batch_norm(
            _as_image(x), norm.weight, norm.bias, norm.running_mean, norm.running_var, True, momentum, norm.eps
        )
        norm.running_mean.add_(bias, alpha=momentum)
        return Normed([x], _activated(_as_rows(image), added), torch.stack([mean, rstd]), _widths(parts))

    def norm_backward(self, dy: Tensor, saved: Normed, norm: BatchNorm1d, masked: bool = True) -> Gradients:
        dpre, (x,), (mean, rstd) = _in_front(dy, saved, masked), saved.x, saved.statistics
        dx, dweight, dbias = aten.native_batch_norm_backward(
            _as_image(dpre), _as_image(x), norm.weight, None, None, mean, rstd, True, norm.eps, [True, True, True]
        )
        return torch.split(_as_rows(dx), saved.widths, dim=1), dweight, dbias


def _as_image(rows: Tensor) -> Tensor:
    """View (M, C) as an image (1, C, M, 1) with channels stored last, for which these operators are fast."""
    return rows.view(1, len(rows), 1, -1).permute(0, 3, 1, 2)


def _as_rows(image: Tensor) -> Tensor:
    return image.permute(0, 2, 3, 1).flatten(0, 2)


class NativeRows(RowOperations):
    """In C: one or two passes over memory, where PyTorch takes four to eight. Parts have equally many columns."""

    def norm_forward(self, parts: Parts, norm: BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
        assert norm.num_batches_tracked is not None
        n_rows, n_columns = len(parts[0]), norm.num_features
        y, statistics = parts[0].new_empty(n_rows, n_columns), parts[0].new_empty(2, n_columns)
        momentum = next_momentum(norm)
        norm.num_batches_tracked.add_(1)
        C.call(
            "norm_forward", *_four(parts), parts[0].shape[1], n_rows, n_columns, norm.weight, norm.bias, bias,
            norm.running_mean, norm.running_var, float(momentum), float(norm.eps), added, y, statistics,
            *_work(n_columns),
        )  # fmt: skip
        return Normed(parts, y, statistics, _widths(parts))

    def norm_backward(self, dy: Tensor, saved: Normed, norm: BatchNorm1d, masked: bool = True) -> Gradients:
        n_rows, n_columns = saved.y.shape
        dparts = [torch.empty_like(part) for part in saved.x]
        dweight, dshift = dy.new_empty(n_columns), dy.new_empty(n_columns)
        C.call(
            "norm_backward", dy, saved.y, int(masked), *_four(saved.x), saved.x[0].shape[1], n_rows, n_columns,
            norm.weight, saved.statistics, *_four(dparts), dweight, dshift, *_work(n_columns),
        )  # fmt: skip
        return dparts, dweight, dshift

    def pool_forward(self, u: Tensor) -> Tensor:
        y = torch.empty_like(u)
        C.call("pool", u, y, len(u), u[0].numel())
        return y

    def pool_backward(self, dy: Tensor, u: Tensor) -> Tensor:
        du = torch.empty_like(u)
        C.call("pool_backward", dy, u, du, len(u), u[0].numel())
        return du


def _four(parts: Parts) -> list[Tensor]:
    return [*parts, *[parts[0]] * (MOST_PARTS - len(parts))]


def _work(n_columns: int) -> tuple[Tensor, Tensor]:
    """Return memory for the sums of each thread, and for an affine map per column."""
    return torch.empty(2 * torch.get_num_threads() * n_columns, dtype=torch.float64), torch.empty(3 * n_columns)


class CudaRows(RowOperations):
    """In CUDA: half the memory traffic, nothing saved for the pooling. Rows come in one or two parts."""

    def norm_forward(self, parts: Parts, norm: BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
        device, n_rows, n_columns = parts[0].device, len(parts[0]), norm.num_features
        grid, per_block = _grid(n_rows, n_columns)
        x = _two(parts)
        partial = parts[0].new_empty(grid[0], 2, n_columns)
        statistics = parts[0].new_empty(4, n_columns)
        y = parts[0].new_empty(n_rows, n_columns)
        CUDA.launch("norm_sums", device, grid, BLOCK, *x, n_rows, n_columns, per_block, partial, shared=SHARED)
        CUDA.launch(
            "norm_statistics", device, (-(-n_columns // 32), 1, 1), (32, 16, 1), *x, partial, grid[0], n_rows,
            n_columns, norm.weight, norm.bias, bias, norm.running_mean, norm.running_var, norm.num_batches_tracked,
            float(next_momentum(norm)), float(norm.eps), statistics,
        )  # fmt: skip
        has_added, addend = int(added is not None), y if added is None else added
        CUDA.launch("norm_apply", device, grid, BLOCK, *x, n_rows, n_columns, statistics, addend, has_added, y)
        return Normed(parts, y, statistics, _widths(parts))

    def norm_backward(self, dy: Tensor, saved: Normed, norm: BatchNorm1d, masked: bool = True) -> Gradients:
        device, (n_rows, n_columns) = dy.device, saved.y.shape
        grid, per_block = _grid(n_rows, n_columns)
        x, of_output = _two(saved.x), (dy, saved.y, int(masked), n_rows, n_columns)
        partial = dy.new_empty(grid[0], 2, n_columns)
        dweight, dbias, of_x = dy.new_empty(n_columns), dy.new_empty(n_columns), dy.new_empty(3, n_columns)
        dparts = [torch.empty_like(part) for part in saved.x]
        sums = per_block, saved.statistics, partial
        CUDA.launch("grad_sums", device, grid, BLOCK, *x, *of_output, *sums, shared=SHARED)
        CUDA.launch(
            "grad_statistics", device, (-(-n_columns // 32), 1, 1), (32, 16, 1), partial, grid[0], n_rows, n_columns,
            norm.weight, saved.statistics, dweight, dbias, of_x,
        )  # fmt: skip
        CUDA.launch("grad_apply", device, grid, BLOCK, *x, *of_output, of_x, dparts[0], dparts[-1])
        return dparts, dweight, dbias

    def pool_backward(self, dy: Tensor, u: Tensor) -> Tensor:
        du = torch.empty_like(u)
        CUDA.launch("pool_backward", u.device, *_over_time(u), dy, u, du, len(u), u[0].numel())
        return du


def cuda_serves(like: Tensor, *widths: int) -> bool:
    """Tell whether the kernels of pooling and joining take tensors of this type and device with so many columns."""
    wide = AT_A_TIME.get(like.dtype) if like.is_cuda else None
    return wide is not None and all(width % wide == 0 for width in widths) and CUDA.on(like.device) is not None


def largest_of_three(u: Tensor, out: Tensor) -> Tensor:
    """Write the largest of three neighbouring time steps of u (T, B, C) into `out`."""
    if cuda_serves(u, u.shape[2]):
        CUDA.launch("pool" + OF_TYPE[u.dtype], u.device, *_over_time(u), u, out, len(u), u[0].numel())
        return out
    out[0] = u[0]
    torch.maximum(u[1:], u[:-1], out=out[1:])
    torch.maximum(out[:-1], u[1:], out=out[:-1])
    return out


def join_into(parts: Parts, shift: Tensor, lowest: Tensor, y: Tensor) -> Tensor:
    """Write max(x + shift, lowest) of x (T, B, C) in two parts into y, on a GPU; shift and lowest (C,) are float32."""
    n_rows, n_columns = y.shape[0] * y.shape[1], y.shape[2]
    columns = -(-n_columns // AT_A_TIME[y.dtype])
    block = (min(BLOCK[0], columns), BLOCK[1], 1)
    grid = (min(-(-n_rows // BLOCK[1]), MOST_BLOCKS * 4), -(-columns // block[0]), 1)
    name = "join" + OF_TYPE[y.dtype]
    CUDA.launch(name, y.device, grid, block, *_two(parts), n_rows, n_columns, shift, lowest, y)
    return y


def _two(parts: Parts) -> list[Any]:
    """Return two parts and the width of the first, as kernels take them; of a single part the second is never read."""
    return [parts[0], parts[-1], parts[0].shape[-1]]


def _grid(n_rows: int, n_columns: int) -> tuple[Size, int]:
    """Return the blocks over rows and columns, and the rows of a block."""
    per_block = max(32, -(-n_rows // MOST_BLOCKS))
    return (-(-n_rows // per_block), -(-n_columns // (4 * BLOCK[0])), 1), per_block


def _over_time(u: Tensor) -> tuple[Size, Size]:
    return (-(-u[0].numel() // (AT_A_TIME[u.dtype] * 256)), min(len(u), 65535), 1), (256, 1, 1)


class PaddedRows(RowOperations):
    """For cases (T, B, C) whose first `length` time steps count, a number that only the device knows.

    A CUDA graph has fixed shapes, so cases of changing length lie at the beginning of a tensor of fixed length there.
    Behind its end a case repeats its last time step, as the padding of a convolution does: then every time step reads
    what it reads in a tensor of the case's own length. BatchNorm looks at the time steps of the case alone.

    Nothing waits for the device, and sums are taken in a fixed order. Repeated time steps do not change `pooling`.
    """

    def __init__(self, length: Tensor, like: Tensor, pooling: RowOperations) -> None:
        super().__init__(pooling)
        n_times, n_cases, _ = like.shape
        time, count = torch.arange(n_times, device=length.device), (length * n_cases).to(like.dtype)
        self.shape = n_times, n_cases, -1
        self.source = time.clamp(max=length - 1)  # (T,) the time step that each one repeats
        inside, self.before = ((time < end).to(like.dtype).view(-1, 1, 1) for end in (length, length - 1))
        self.is_last = inside - self.before
        self.behind = 1 - self.before  # the last time step and its repetitions
        self.shares = inside / count  # of a row in a mean
        self.unbiased = count / (count - 1).clamp(min=1)

    def norm_forward(self, parts: Parts, norm: BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
        """Of x the distance from the mean is kept."""
        assert norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None
        momentum = next_momentum(norm)
        norm.num_batches_tracked.add_(1)
        x = _whole(parts).view(self.shape).index_select(0, self.source)
        mean = (x * self.shares).sum(dim=(0, 1))
        x.sub_(mean)
        var = (x * self.shares).mul_(x).sum(dim=(0, 1))
        norm.running_mean.lerp_(mean + bias, momentum)
        norm.running_var.lerp_(var * self.unbiased, momentum)
        rstd = (var + norm.eps).rsqrt_()
        x = x.flatten(0, 1)
        y = _activated(torch.addcmul(norm.bias, x, norm.weight * rstd), added)
        return Normed([x], y, rstd.unsqueeze(0), _widths(parts))

    def norm_backward(self, dy: Tensor, saved: Normed, norm: BatchNorm1d, masked: bool = True) -> Gradients:
        """What the repetitions are given goes to the time step that they repeat."""
        dpre, (x,), (rstd,) = _in_front(dy, saved, masked), saved.x, saved.statistics
        dshift, dweight = dpre.sum(dim=0), (dpre * x).sum(dim=0).mul_(rstd)
        of_statistics = torch.addcmul(dshift, x, dweight * rstd).view(self.shape)
        dx = torch.addcmul(dpre.view(self.shape), of_statistics, self.shares, value=-1).mul_(norm.weight * rstd)
        last = (dx * self.behind).sum(dim=0)
        dx = dx.mul_(self.before).addcmul_(self.is_last, last).flatten(0, 1)
        return torch.split(dx, saved.widths, dim=1), dweight, dshift


class DividedRows(RowOperations):
    """For the rows of one rank, where BatchNorm looks at those of all; `pooling` has what no other case changes."""

    def __init__(self, ranks: Ranks, pooling: RowOperations) -> None:
        super().__init__(pooling)
        self.ranks = ranks

    def norm_forward(self, parts: Parts, norm: BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
        centred, rstd, n_rows = normalise(_whole(parts), norm, self.ranks, bias)
        y = _activated(torch.addcmul(norm.bias, centred, norm.weight * rstd), added)
        return Normed([centred], y, torch.stack([rstd, n_rows.expand_as(rstd)]), _widths(parts))

    def norm_backward(self, dy: Tensor, saved: Normed, norm: BatchNorm1d, masked: bool = True) -> Gradients:
        """The gradients of scale and shift are this rank's part of them."""
        dpre, found = _in_front(dy, saved, masked), Normalised(saved.x[0], *saved.statistics)
        dx, dweight, dbias = norm_gradients(dpre, found, norm.weight, self.ranks)
        return torch.split(dx, saved.widths, dim=1), dweight, dbias


PLAIN, NATIVE, ON_GPU = PlainRows(), NativeRows(), CudaRows()
