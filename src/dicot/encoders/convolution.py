"""A length-preserving convolution with edges repeated, by whichever way is cheapest for the length."""

from types import ModuleType

from torch import Tensor

from dicot.encoders import folded, spectral
from dicot.encoders.padding import same_margins


def forward(v: Tensor, weight: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """(T, B, C) and kernels (O, C, n) -> (T, B, O), and what the backward pass needs."""
    n_taps = weight.shape[2]
    return _way(len(v), n_taps).forward(v, weight.permute(2, 1, 0), same_margins(n_taps)[0])  # type: ignore[no-any-return]


def backward(dy: Tensor, kept: tuple[Tensor, ...], weight: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of v and of the kernels."""
    n_taps = weight.shape[2]
    dv, dtaps = _way(len(dy), n_taps).backward(dy, kept, n_taps, same_margins(n_taps)[0])
    return dv, dtaps.permute(2, 1, 0)


def _way(n_times: int, n_taps: int) -> ModuleType:
    """Per output, a dense map takes T products and the spectral way about 4 (T + n) / T, in more and smaller pieces."""
    return folded if n_times**2 <= 3 * (n_times + n_taps - 1) else spectral
