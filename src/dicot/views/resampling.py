"""The time axis cut, stretched and bent: linear interpolation at given positions, as gathers on the device."""

import torch
from torch import Tensor


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
