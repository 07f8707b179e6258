"""The four functions of `rows` in CUDA (kernels.cu): half the memory traffic, no index kept for the pooling.

The kernels are compiled by NVRTC at first use, in a fraction of a second. Where that is not possible `rows` does the
work and the log says why.
"""

import logging
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor, nn

from dicot.encoders.rows import Normed, next_momentum

log = logging.getLogger(__name__)
Size = tuple[int, int, int]  # of a grid or block

NAMES = [
    "norm_sums", "norm_statistics", "norm_apply", "grad_sums", "grad_statistics", "grad_apply", "pool", "pool_backward",
]  # fmt: skip
MOST_PARTS = 4
BLOCK = (64, 4, 1)  # four columns each x rows
SHARED = 2 * 64 * 4 * 16  # bytes: two sums of four columns per thread
MOST_BLOCKS = 528  # four per multiprocessor of a large GPU


@lru_cache(maxsize=16)
def compiled(place: torch.device) -> dict[str, Any] | None:
    try:
        from torch.cuda._utils import _cuda_load_module, _nvrtc_compile

        source = files("dicot.encoders").joinpath("kernels.cu").read_text(encoding="utf-8")
        with torch.cuda.device(place):
            code, _ = _nvrtc_compile(source, NAMES[0])
            found: dict[str, Any] = _cuda_load_module(code, NAMES)  # type: ignore[assignment]
            return found
    except (ImportError, AttributeError, TypeError, RuntimeError, OSError) as error:
        log.warning("the CUDA kernels could not be compiled, PyTorch's operators are used instead: %s", error)
        return None


def _launch(name: str, place: torch.device, grid: Size, block: Size, *args: Any) -> None:
    kernels = compiled(place)
    assert kernels is not None
    assert all(arg.is_contiguous() for arg in args if isinstance(arg, Tensor)), "kernels go through memory"
    shared = SHARED if name.endswith("sums") else 0
    kernels[name](grid=grid, block=block, args=list(args), shared_mem=shared, stream=torch.cuda.current_stream(place))


def _four(parts: Sequence[Tensor]) -> list[Any]:
    """Kernels take four parts and the width of one; the places of missing parts are never read."""
    return [*parts, *[parts[0]] * (MOST_PARTS - len(parts)), parts[0].shape[1]]


def _grid(n_rows: int, n_columns: int) -> tuple[Size, int]:
    """Blocks over rows and columns, and the rows of a block."""
    per_block = max(32, -(-n_rows // MOST_BLOCKS))
    return (-(-n_rows // per_block), -(-n_columns // (4 * BLOCK[0])), 1), per_block


def norm_forward(parts: Sequence[Tensor], norm: nn.BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
    """See `rows.norm_forward`."""
    place, n_rows, n_columns = parts[0].device, len(parts[0]), norm.num_features
    grid, per_block = _grid(n_rows, n_columns)
    x = _four(parts)
    partial = parts[0].new_empty(grid[0], 2, n_columns)
    statistics = parts[0].new_empty(4, n_columns)
    y = parts[0].new_empty(n_rows, n_columns)
    _launch("norm_sums", place, grid, BLOCK, *x, n_rows, n_columns, per_block, partial)
    _launch(
        "norm_statistics", place, (-(-n_columns // 32), 1, 1), (32, 16, 1), *x, partial, grid[0], n_rows, n_columns,
        norm.weight, norm.bias, bias, norm.running_mean, norm.running_var, norm.num_batches_tracked,
        float(next_momentum(norm)), float(norm.eps), statistics,
    )  # fmt: skip
    has_added = int(added is not None)
    _launch(
        "norm_apply", place, grid, BLOCK, *x, n_rows, n_columns, statistics, y if added is None else added, has_added, y
    )
    return Normed(parts, y, statistics)


def norm_backward(
    dy: Tensor, kept: Normed, norm: nn.BatchNorm1d, n_parts: int = 1, masked: bool = True
) -> tuple[Sequence[Tensor], Tensor, Tensor]:
    """See `rows.norm_backward`."""
    place, (n_rows, n_columns) = dy.device, kept.y.shape
    grid, per_block = _grid(n_rows, n_columns)
    x, of_output = _four(kept.x), (dy, kept.y, int(masked))
    partial = dy.new_empty(grid[0], 2, n_columns)
    dweight, dbias, of_x = dy.new_empty(n_columns), dy.new_empty(n_columns), dy.new_empty(3, n_columns)
    dparts = [torch.empty_like(part) for part in kept.x]
    _launch("grad_sums", place, grid, BLOCK, *x, *of_output, n_rows, n_columns, per_block, kept.statistics, partial)
    _launch(
        "grad_statistics", place, (-(-n_columns // 32), 1, 1), (32, 16, 1), partial, grid[0], n_rows, n_columns,
        norm.weight, kept.statistics, dweight, dbias, of_x,
    )  # fmt: skip
    _launch("grad_apply", place, grid, BLOCK, *x, *of_output, n_rows, n_columns, of_x, *_four(dparts)[:MOST_PARTS])
    return dparts, dweight, dbias


def pool_forward(u: Tensor) -> tuple[Tensor, Tensor | None]:
    """See `rows.pool_forward`; nothing is kept."""
    y = torch.empty_like(u)
    _launch("pool", u.device, *_over_time(u), u, y, len(u), u[0].numel())
    return y, None


def pool_backward(dy: Tensor, u: Tensor, pairs: Tensor | None) -> Tensor:
    """See `rows.pool_backward`."""
    du = torch.empty_like(u)
    _launch("pool_backward", u.device, *_over_time(u), dy, u, du, len(u), u[0].numel())
    return du


def _over_time(u: Tensor) -> tuple[Size, Size]:
    return (-(-u[0].numel() // (4 * 256)), min(len(u), 65535), 1), (256, 1, 1)
