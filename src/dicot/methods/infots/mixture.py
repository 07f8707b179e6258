"""InfoTS's candidate augmentations with their random draws, and a weighted sum of them.

All draws are made on the device of x: no draw changes a shape, so the host need not know any.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

# A part of the time axis set to zero. Start and length are numbers, or 0-d tensors on the device of x.


def subsequence(x: Tensor, start: int | Tensor, length: int | Tensor) -> Tensor:
    """(B, C, T) with everything outside the interval [start, start + length) set to zero."""
    return x * _inside(x, start, length)


def cutout(x: Tensor, start: int | Tensor, length: int | Tensor) -> Tensor:
    """(B, C, T) with the interval [start, start + length) set to zero."""
    return x * ~_inside(x, start, length)


def _inside(x: Tensor, start: int | Tensor, length: int | Tensor) -> Tensor:
    step = torch.arange(x.shape[-1], device=x.device)  # (T,)
    return (step >= start) & (step < start + length)


# The time axis cut, stretched and bent: linear interpolation at given positions, as gathers on the device.


def interpolate(x: Tensor, position: Tensor) -> Tensor:
    """Cases (B, C, T) read at the fractional time steps `position` (B, n) -> (B, C, n); clamped at both ends."""
    last = x.shape[-1] - 1
    position = position.clamp(0, last)
    lower = position.floor()
    upper = (lower + 1).clamp(max=last)
    return torch.lerp(_read(x, lower), _read(x, upper), (position - lower).unsqueeze(1))


def window_slice(x: Tensor, starts: Tensor, length: int) -> Tensor:
    """The window [start, start + length) of each case, starts (B,), stretched to the whole length T."""
    position = _half_pixel(_time_steps(x), length, x.shape[-1]).clamp(0, length - 1)
    return interpolate(x, starts.unsqueeze(1) + position)


def window_warp(x: Tensor, starts: Tensor, scales: Tensor, length: int) -> Tensor:
    """The window [start, start + length) of each case made floor(scale * length) long, then all of it resampled to T.

    starts and scales (B,). Two linear interpolations in sequence: the stretched case exists at its own whole time
    steps, and the result reads between these.
    """
    start, stretched = starts.unsqueeze(1), (length * scales.unsqueeze(1)).floor()  # (B, 1)
    total = x.shape[-1] - length + stretched
    position = torch.minimum(_half_pixel(_time_steps(x), total, x.shape[-1]).clamp(min=0), total - 1)  # (B, T)
    lower = position.floor()
    upper = torch.minimum(lower + 1, total - 1)

    def source(step: Tensor) -> Tensor:
        """Where a time step of the stretched case lies in the case itself."""
        window = start + _half_pixel(step - start, length, stretched).clamp(0, length - 1)
        behind = step - stretched + length
        return torch.where(step < start, step, torch.where(step < start + stretched, window, behind))

    return torch.lerp(interpolate(x, source(lower)), interpolate(x, source(upper)), (position - lower).unsqueeze(1))


def time_warp(x: Tensor, speeds: Tensor) -> Tensor:
    """Each case read along a smooth increasing time map of its own, made of speeds (B, K); see `warped_time`."""
    return interpolate(x, warped_time(speeds, x.shape[-1]))


def warped_time(speeds: Tensor, n_times: int) -> Tensor:
    """Positive speeds of K >= 2 stretches of equal duration, (B, K) -> positions (B, T) from 0 to T - 1.

    A monotone piecewise cubic (PCHIP, Fritsch and Butland's slopes) through the K + 1 knots that these
    speeds lead to; only their ratios count.
    """
    n_knots = speeds.shape[1] + 1
    speeds = speeds / speeds.sum(dim=1, keepdim=True)  # per unit of the knots' grid; the whole way is 1
    knots = torch.cat([torch.zeros_like(speeds[:, :1]), speeds.cumsum(dim=1)], dim=1)  # (B, K + 1)
    before, after = speeds[:, :-1], speeds[:, 1:]
    slopes = torch.cat(
        [
            ((3 * speeds[:, :1] - speeds[:, 1:2]) / 2).clamp(min=0),
            2 * before * after / (before + after),
            ((3 * speeds[:, -1:] - speeds[:, -2:-1]) / 2).clamp(min=0),
        ],
        dim=1,
    )
    grid = torch.linspace(0, n_knots - 1, n_times, dtype=speeds.dtype, device=speeds.device)
    left = grid.long().clamp(max=n_knots - 2)
    u = grid - left
    way = (  # the cubic Hermite form on each stretch
        (1 + 2 * u) * (1 - u) ** 2 * knots[:, left]
        + u * (1 - u) ** 2 * slopes[:, left]
        + u**2 * (3 - 2 * u) * knots[:, left + 1]
        - u**2 * (1 - u) * slopes[:, left + 1]
    )
    return (n_times - 1) * way


def _read(x: Tensor, step: Tensor) -> Tensor:
    """(B, C, T) at whole time steps (B, n) -> (B, C, n)."""
    return x.gather(2, step.long().unsqueeze(1).expand(-1, x.shape[1], -1))


def _half_pixel(step: Tensor, n_in: int | Tensor, n_out: int | Tensor) -> Tensor:
    """Where output step j of n_out lies among n_in inputs when steps are seen as intervals with a centre."""
    return (step + 0.5) * n_in / n_out - 0.5


def _time_steps(x: Tensor) -> Tensor:
    return torch.arange(x.shape[-1], dtype=x.dtype, device=x.device).expand(len(x), -1)  # (B, T)


CUTOUT = 0.1  # share of the case that is cut out
JITTER = 0.3  # standard deviation of the noise
SCALING = 0.5  # standard deviation of the factors around 1
SLICE = 0.5  # share of the case that a slice keeps
WARP = 0.3  # share of the case that a window warp stretches by 1/2 or 2
SPEED_CHANGES = 100
SPEED_RATIO = 10.0  # fastest over slowest of a time warp, at most
MARGIN = 1e-4  # the uniform draws of the mixing weights stay this far from 0 and 1


class Candidate(NamedTuple):
    shortest: int  # cases of fewer time steps have no room for it
    view: Callable[[Tensor], Tensor]


def _subsequence(x: Tensor) -> Tensor:
    """One interval per batch, at least 2 long."""
    n_times = x.shape[-1]
    length = torch.randint(2, n_times + 1, (), device=x.device)
    room = n_times - length
    start = (torch.rand((), device=x.device) * (room + 1)).long().minimum(room)
    return subsequence(x, start, length)


def _cutout(x: Tensor) -> Tensor:
    """One interval per batch; nothing for T < 10. The authors' start range ends two steps early."""
    length = int(CUTOUT * x.shape[-1])
    return cutout(x, torch.randint(0, x.shape[-1] - length - 1, (), device=x.device), length)


def _jitter(x: Tensor) -> Tensor:
    return x + JITTER * torch.randn_like(x)


def _scaling(x: Tensor) -> Tensor:
    """One factor per case and channel."""
    return x * (1 + SCALING * torch.randn(*x.shape[:2], 1, dtype=x.dtype, device=x.device))


def _time_warp(x: Tensor) -> Tensor:
    speeds = torch.empty(len(x), SPEED_CHANGES, dtype=x.dtype, device=x.device).uniform_(1, SPEED_RATIO)
    return time_warp(x, speeds)


def _window_slice(x: Tensor) -> Tensor:
    """The authors' start range leaves out the last possible one."""
    length = math.ceil(SLICE * x.shape[-1])
    return window_slice(x, torch.randint(0, x.shape[-1] - length, (len(x),), device=x.device), length)


def _window_warp(x: Tensor) -> Tensor:
    """The window touches neither end of the case."""
    length = math.ceil(WARP * x.shape[-1])
    starts = torch.randint(1, x.shape[-1] - length - 1, (len(x),), device=x.device)
    scales = 0.5 * 4.0 ** torch.randint(0, 2, (len(x),), device=x.device).to(x.dtype)
    return window_warp(x, starts, scales, length)


CANDIDATES: dict[str, Candidate] = {
    "subsequence": Candidate(2, _subsequence),
    "cutout": Candidate(3, _cutout),
    "jitter": Candidate(1, _jitter),
    "scaling": Candidate(1, _scaling),
    "time warp": Candidate(2, _time_warp),
    "window slice": Candidate(2, _window_slice),
    "window warp": Candidate(5, _window_warp),
}


def candidates(n_times: int) -> tuple[str, ...]:
    """The candidates that cases of `n_times` time steps have room for, in the authors' order."""
    return tuple(name for name, candidate in CANDIDATES.items() if n_times >= candidate.shortest)


def mixing_weights(theta: Tensor, *, sample: bool) -> Tensor:
    """Positive weights (A,) that sum to 1: a concrete sample softmax(logit(u) + theta), or softmax(theta) itself.

    The temperature is 1: the authors' annealed one is computed and never used.
    """
    noise = torch.empty_like(theta).uniform_(MARGIN, 1 - MARGIN).logit() if sample else 0
    return (noise + theta).softmax(dim=0)


def mixture(x: Tensor, weights: Tensor) -> Tensor:
    """The sum of all candidates of x (B, C, T), each with its own weight (A,)."""
    names = candidates(x.shape[-1])
    total = torch.zeros_like(x)
    for name, weight in zip(names, weights.unbind(), strict=True):
        total = total + weight * CANDIDATES[name].view(x)
    return total
