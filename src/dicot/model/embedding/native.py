"""What stands beside an encoder in C (native.c), case by case, several times as fast as PyTorch's operators.

Where it cannot be compiled (see `encoders.inception.compiled`), and for other types and devices, `bank`, `contests` and
`compression` do the work by PyTorch's operators.
"""

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from dicot.nets.encoders.inception.compiled import address, compiled

# How matrix products split long sums, as (products of a sum, what half of the last two is a multiple of): OpenBLAS
# does so by the size of a processor's cache. The first one: not at all.
SPLITS = ((2**40, 1), (640, 16), (512, 16), (384, 16), (352, 16), (320, 16), (320, 8), (256, 16), (256, 8), (240, 8))


def library() -> ctypes.CDLL | None:
    """Load the compiled functions, or return None where they cannot be compiled."""
    return compiled("dicot.model.embedding", "native.c")


def serves(x: Tensor) -> bool:
    """Tell whether there are functions for such cases (B, C, T)."""
    return _plain(x) and library() is not None


def shares(
    x: Tensor, dilations: Tensor, counts: Tensor, starts: Tensor, chosen: Tensor, taps: Tensor, biases: Tensor
) -> Tensor:
    """Compute what `Bank.transform` does, for at least 9 time steps; see native.c for the lists of numbers (int32)."""
    x, out = x.contiguous(), x.new_empty(len(x), biases.numel())
    lists = (address(part) for part in (dilations, counts, starts, chosen, taps, biases, out))
    _call("shares", address(x), *_sizes(x), len(dilations), *lists)
    return out


def contests(x: Tensor, taps: Tensor, channels: Tensor, nothing: float) -> Tensor:
    """Compute what `Contests.transform` does, for at least 9 time steps and groups that add up at most 9 channels."""
    x, out = x.contiguous(), x.new_empty(len(x), 2 * taps[..., 0].numel())
    n_dilations, _, n_groups = taps.shape[:3]
    numbers = (address(taps), address(channels), ctypes.c_double(nothing), address(out))
    _call("contests", address(x), *_sizes(x), n_dilations, n_groups, *numbers)
    return out


def find_split(rows: Tensor, weight: Tensor) -> tuple[int, int] | None:
    """Say how torch splits the sums of rows @ weight, if it adds up products in order at all: to the last bit.

    None where it does not, and for a single column, which is no matrix product to it.
    """
    if not _plain(rows) or weight.shape[1] == 1 or library() is None:
        return None
    right = rows @ weight

    def same(split: tuple[int, int], i: int) -> bool:
        return torch.equal(one_row(rows[i : i + 1], weight, split), right[i : i + 1])

    return next((split for split in SPLITS if all(same(split, i) for i in range(len(rows)))), None)


def one_row(row: Tensor, weight: Tensor, split: Sequence[int]) -> Tensor:
    """Compute row (1, K) @ weight (K, N), reading the weight once as it lies in memory."""
    row, out = row.contiguous(), row.new_empty(1, weight.shape[1])
    sizes = (ctypes.c_long(size) for size in (*weight.shape, *split))
    _call("one_row", address(row), address(weight), *sizes, address(out))
    return out


def _plain(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32


def _sizes(x: Tensor) -> tuple[ctypes.c_long, int, ctypes.c_long]:
    return ctypes.c_long(len(x)), x.shape[1], ctypes.c_long(x.shape[2])


def _call(name: str, *arguments: object) -> None:
    loaded = library()
    assert loaded is not None
    getattr(loaded, name)(*arguments, torch.get_num_threads())
