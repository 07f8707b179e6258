"""InfoTS's candidate augmentations with their random draws, and a weighted sum of them.

All draws are made on the device of x: none of them changes a shape, so none has to be known on the host.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from dicot.views.occlusion import cutout, subsequence
from dicot.views.resampling import time_warp, window_slice, window_warp

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
    """One interval per batch; nothing for T < 10. The authors' start range ends two steps before the last place."""
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
    """The authors' start range leaves out the last place."""
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
