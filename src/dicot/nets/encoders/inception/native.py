"""The four functions of `rows` in C (native.c): one or two passes over memory, where PyTorch takes four to eight.

Where they cannot be compiled (see `compiled`) `rows` does the work.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dicot.nets.encoders.inception.compiled import address, compiled
from dicot.nets.encoders.inception.rows import Normed, next_momentum

MOST_PARTS = 4
WIDEST = 1024  # columns of a part, as in native.c


def library() -> ctypes.CDLL | None:
    """Load the compiled functions, or return None where they cannot be compiled."""
    return compiled("dicot.nets.encoders.inception", "native.c")


def _call(name: str, *arguments: Any) -> None:
    loaded = library()
    assert loaded is not None
    getattr(loaded, name)(*(address(a) if a is None or isinstance(a, Tensor) else a for a in arguments))


def _four(parts: Sequence[Tensor]) -> list[Tensor]:
    return [*parts, *[parts[0]] * (MOST_PARTS - len(parts))]


def _work(n_columns: int) -> tuple[Tensor, Tensor, int]:
    """Return memory for the sums of each thread and for an affine map per column, and the number of threads."""
    n_threads = torch.get_num_threads()
    return torch.empty(2 * n_threads * n_columns, dtype=torch.float64), torch.empty(3 * n_columns), n_threads


def norm_forward(parts: Sequence[Tensor], norm: nn.BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
    """See `rows.norm_forward`; the parts have equally many columns."""
    assert norm.num_batches_tracked is not None
    n_rows, n_columns = len(parts[0]), norm.num_features
    y, statistics = parts[0].new_empty(n_rows, n_columns), parts[0].new_empty(2, n_columns)
    momentum = next_momentum(norm)
    norm.num_batches_tracked.add_(1)
    _call(
        "norm_forward", *_four(parts), parts[0].shape[1], ctypes.c_long(n_rows), n_columns, norm.weight, norm.bias,
        bias, norm.running_mean, norm.running_var, ctypes.c_double(momentum), ctypes.c_double(norm.eps), added, y,
        statistics, *_work(n_columns),
    )  # fmt: skip
    return Normed(parts, y, statistics)


def norm_backward(
    dy: Tensor, saved: Normed, norm: nn.BatchNorm1d, widths: Sequence[int], masked: bool = True
) -> tuple[Sequence[Tensor], Tensor, Tensor]:
    """See `rows.norm_backward`."""
    n_rows, n_columns = saved.y.shape
    dparts = [torch.empty_like(part) for part in saved.x]
    dweight, dshift = dy.new_empty(n_columns), dy.new_empty(n_columns)
    _call(
        "norm_backward", dy, saved.y, int(masked), *_four(saved.x), saved.x[0].shape[1], ctypes.c_long(n_rows),
        n_columns, norm.weight, saved.statistics, *_four(dparts), dweight, dshift, *_work(n_columns),
    )  # fmt: skip
    return dparts, dweight, dshift


def pool_forward(u: Tensor) -> tuple[Tensor, Tensor | None]:
    """See `rows.pool_forward`; nothing is saved."""
    y = torch.empty_like(u)
    _call("pool", u, y, ctypes.c_long(len(u)), ctypes.c_long(u[0].numel()), torch.get_num_threads())
    return y, None


def pool_backward(dy: Tensor, u: Tensor, pairs: Tensor | None) -> Tensor:
    """See `rows.pool_backward`; dy stays as it is."""
    du = torch.empty_like(u)
    _call("pool_backward", dy, u, du, ctypes.c_long(len(u)), ctypes.c_long(u[0].numel()), torch.get_num_threads())
    return du
