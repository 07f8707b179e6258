"""Length-preserving convolutions with edges repeated, by the algorithm that is cheapest for the length."""

from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor

from dicot.nets.encoders.inception import folded, spectral
from dicot.nets.encoders.padding import same_margins


def groups(names: Sequence[str], device: torch.device) -> list[Sequence[str]]:
    """Say which kernels of different length over one input to join into one convolution.

    A GPU likes few and large products. On a CPU it is the arithmetic that counts, and joined kernels are all as long as
    the longest of them.
    """
    return [names] if device.type == "cuda" else [[name] for name in names]


def forward(v: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Convolve (T, B, C) with kernels (O, C, n), each with its n -> (T, B, sum of O), and what `backward` needs."""
    taps = joined(weights)
    return _algorithm(len(v), len(taps)).forward(v, taps, same_margins(len(taps))[0])  # type: ignore[no-any-return]


def backward(dy: Tensor, saved: tuple[Tensor, ...], weights: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Return the gradients of v and of the kernels."""
    longest = max(weight.shape[2] for weight in weights)
    dv, dtaps = _algorithm(len(dy), longest).backward(dy, saved, longest, same_margins(longest)[0])
    return dv, [part.permute(2, 1, 0) for part in _parts(dtaps, weights)]


def joined(weights: Sequence[Tensor]) -> Tensor:
    """Join kernels (O, C, n) of several lengths into taps (longest n, C, sum of O) that read the same time steps."""
    if len(weights) == 1:
        return weights[0].permute(2, 1, 0)
    shape = max(weight.shape[2] for weight in weights), weights[0].shape[1], sum(len(weight) for weight in weights)
    taps = weights[0].new_zeros(shape)
    for part, weight in zip(_parts(taps, weights), weights, strict=True):
        part.copy_(weight.permute(2, 1, 0))
    return taps


def _parts(taps: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """View each kernel among the joined taps: the shorter ones read the middle of what the longest one reads."""
    parts, column = [], 0
    for weight in weights:
        n_out, _, n_taps = weight.shape
        start = same_margins(len(taps))[0] - same_margins(n_taps)[0]
        parts.append(taps[start : start + n_taps, :, column : column + n_out])
        column += n_out
    return parts


def _algorithm(n_times: int, n_taps: int) -> ModuleType:
    """Choose by arithmetic: per output a dense map takes T products, the spectral form about 4 (T + n) / T."""
    return folded if n_times**2 <= 3 * (n_times + n_taps - 1) else spectral
