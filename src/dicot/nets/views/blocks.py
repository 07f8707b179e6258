"""Sub-blocks: overlapping parts of a case (Di-COT)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dicot.core.errors import InputError, lookup


@dataclass(frozen=True)
class Blocks:
    """Where the sub-blocks of a case lie: block j covers time steps [starts[j], starts[j] + length)."""

    length: int
    starts: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.starts)


def paper_rule(n_times: int, k: int, overlap: float) -> tuple[int, int, int] | None:
    """Length, stride and count of the paper's appendix to the letter; None where it divides by zero.

    `round` rounds half to even. The count may differ from k and may even be 1 (D-03); the tail may stay unused.
    """
    length = 2 * round(n_times / (1 + (k - 1) * (1 - overlap)) / 2)
    stride = round(length * (1 - overlap))
    if length == 0 or stride == 0:
        return None
    return length, stride, math.floor((n_times - length) / stride) + 1


def paper_blocks(n_times: int, k: int, overlap: float) -> Blocks:
    """The paper's rule made safe for training: length at least 2, stride at least 1 (D-04)."""
    length = min(n_times, max(2, 2 * round(n_times / (1 + (k - 1) * (1 - overlap)) / 2)))
    stride = max(1, round(length * (1 - overlap)))
    return Blocks(length, tuple(range(0, n_times - length + 1, stride)))


def exact_blocks(n_times: int, k: int, overlap: float) -> Blocks:
    """Exactly k distinct blocks that reach both ends of the case (D-69); k is lowered to T // 2 when T < 2 k."""
    k = min(k, n_times // 2)
    length = max(2, round(n_times / (1 + (k - 1) * (1 - overlap))))
    length = min(length, n_times - k + 1)  # a very high overlap would make two blocks start together
    starts = np.round(np.linspace(0, n_times - length, k)).astype(int)
    return Blocks(length, tuple(starts.tolist()))


ROUNDINGS = {"paper": paper_blocks, "exact": exact_blocks}


def k_range(k: int | Sequence[int]) -> tuple[int, int]:
    """Both ends of the range that numbers of sub-blocks are drawn from; a fixed k is the range from k to k."""
    ends = (k, k) if isinstance(k, int) else tuple(k)
    low, high = (int(ends[0]), int(ends[1])) if len(ends) == 2 else (0, 0)
    if not 2 <= low <= high:
        raise InputError(f"k must be a number >= 2 or a range (low, high) with 2 <= low <= high; got {k}.")
    return low, high


def block_layout(n_times: int, k: int, overlap: float, rounding: str = "paper") -> Blocks:
    """Sub-blocks of a case of `n_times` time steps; T = 2 and 3 become blocks of length 1 (D-68)."""
    if n_times < 2:
        raise InputError(f"Sub-blocks need at least 2 time steps; got {n_times}. Drop such cases or pad them.")
    if n_times < 4:
        return Blocks(1, tuple(range(n_times)))
    return lookup(ROUNDINGS, rounding, "rounding")(n_times, k, overlap)


def cut_blocks(x: Tensor, blocks: Blocks) -> Tensor:
    """(B, C, T) -> (B, k, C, L)."""
    return torch.stack([x[..., start : start + blocks.length] for start in blocks.starts], dim=1)


def subblocks(x: Tensor, k: int, overlap: float = 0.5, rounding: str = "paper") -> Tensor:
    """The overlapping sub-blocks of each case, (B, C, T) -> (B, k, C, L); "paper" may yield another count than k."""
    return cut_blocks(x, block_layout(x.shape[-1], k, overlap, rounding))
