"""Neighbourhoods: a short window of a case, windows close to it and windows far away (TNC).

Positions are integer tensors of time steps, one row per case. A centre t stands for the window [t - w//2, t + w//2),
so windows have 2 (w // 2) time steps. What is drawn comes in as tensors of random numbers: the rest is arithmetic.
"""

import torch
from torch import Tensor

from dicot.errors import InputError

REACH = 5  # non-neighbours are at least this many times epsilon * width away, where the case is long enough


def default_width(n_times: int) -> int:
    """A tenth of the case, even and at least 2 (D-19)."""
    return max(2, 2 * (n_times // 20))


def shortest_case(width: int) -> int:
    """Fewer time steps than this, and some window of the rules below would leave the case."""
    return width + width // 2 + 1


def check_width(n_times: int, width: int) -> None:
    """Refuse cases that are too short for their windows."""
    if n_times < shortest_case(width):
        raise InputError(
            f"Neighbourhoods of windows of {width} time steps need cases of at least {shortest_case(width)}; "
            f"got {n_times} time steps. Use longer cases or a shorter window."
        )


def reference_range(n_times: int, width: int) -> tuple[int, int]:
    """First and last centre of a reference window; short cases use all of their length (D-19)."""
    if n_times > 4 * width:
        return 2 * width, n_times - 2 * width - 1
    return width // 2, n_times - width // 2 - 1


def reference_centres(uniform: Tensor, n_times: int, width: int) -> Tensor:
    """(B,) numbers in [0, 1) -> (B,) centres."""
    low, high = reference_range(n_times, width)
    return _integers(uniform, torch.full_like(uniform, low).long(), torch.full_like(uniform, high).long())


def close_centres(normal: Tensor, t: Tensor, epsilon: Tensor, n_times: int, width: int) -> Tensor:
    """(B, m) standard normal numbers, reference centres t and neighbourhood widths epsilon (B,) -> (B, m) centres.

    epsilon is in units of the window width; a centre is rounded towards zero and then clipped into the case.
    """
    centres = (t[:, None] + normal * epsilon[:, None] * width).long()
    return centres.clamp(width // 2 + 1, n_times - width // 2)


def distant_range(t: Tensor, epsilon: Tensor, n_times: int, width: int) -> tuple[Tensor, Tensor]:
    """First and last centre (B,) of a window far from t, on the longer side of the case."""
    delta = REACH * epsilon * width
    late = 2 * t > n_times
    low = torch.where(late, width // 2, (t + delta).clamp(max=n_times - width - 1))
    high = torch.where(late, (t - delta).clamp(min=width // 2), n_times - width // 2 - 1)
    return low, high


def distant_centres(uniform: Tensor, t: Tensor, epsilon: Tensor, n_times: int, width: int) -> Tensor:
    """(B, m) numbers in [0, 1) -> (B, m) centres."""
    low, high = distant_range(t, epsilon, n_times, width)
    return _integers(uniform, low[:, None], high[:, None])


def cut_windows(x: Tensor, centres: Tensor, width: int) -> Tensor:
    """(B, C, T) and centres (B, m) -> (B, m, C, w)."""
    half = width // 2
    row = torch.arange(len(x), device=x.device)[:, None]
    return x.unfold(-1, 2 * half, 1)[row, :, centres - half]


def _integers(uniform: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Numbers in [0, 1) -> integers from low to high, both included, each as likely."""
    drawn = low + (uniform * (high - low + 1)).long()
    return torch.minimum(drawn, high)  # a product may be rounded up to the count itself
