"""From a batch to the aligned features of two crops, as TS2Vec and what is built on it train.

Two overlapping crops of each case have one geometry per batch and one shift per case. Each step has crops of other
lengths. Op by op they are cut to them. A CUDA graph serves many lengths instead: the crops lie at the beginning of
longer tensors, and where they end is a number on the device. Both ways draw the same random numbers, those of the
whole window.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dicot.core.errors import InputError
from dicot.methods.base import Places, room_for
from dicot.nets.encoders import Encoder

Position = Any  # a whole number, in a CUDA graph a tensor on the device


@dataclass(frozen=True)
class Crops:
    """Where the two views lie in a window of n_times steps that begins at `start` of the case.

    View 1 covers [outer_left, right) of the window, view 2 [left, outer_right), each moved by the case's own shift;
    they share [left, right). outer_left <= left < right <= outer_right.
    """

    n_times: int
    left: Position
    right: Position
    outer_left: Position
    outer_right: Position
    start: Position = 0
    room: tuple[int, ...] = ()  # on the device: time steps of the tensors that hold a view, and the overlap

    @property
    def on_device(self) -> bool:
        """Whether the positions are tensors, on which no shape may depend."""
        return isinstance(self.left, Tensor)

    @property
    def overlap(self) -> Position:
        return self.right - self.left

    @property
    def lengths(self) -> tuple[Position, Position]:
        return self.right - self.outer_left, self.outer_right - self.left

    @property
    def shifts(self) -> tuple[Position, Position]:
        """Smallest shift, and the largest plus one, that keep both views inside the window."""
        return -self.outer_left, self.n_times - self.outer_right + 1


def check_cases(n_times: int, temporal_unit: int, longest: int) -> None:
    """Refuse cases and settings too short for any crop: it must reach the level where the temporal loss begins."""
    shortest = 2 ** (temporal_unit + 1)
    if min(n_times, longest) < shortest:
        raise InputError(
            f"The cases have {n_times} time steps, and max_train_length is {longest}; random crops need {shortest} "
            "(2 ** (temporal_unit + 1)). Use longer windows or a smaller temporal_unit."
        )


def draw_crops(
    n_times: int, integers: Callable[[int, int], int], *, temporal_unit: int = 0, longest: int | None = None
) -> Crops:
    """Draw the geometry; `integers(low, high)` is uniform on low .. high - 1, as numpy's generators have it.

    Order of the draws, after the authors: start of the window (only where a case is longer than `longest`), length of
    the overlap, left, outer left, outer right. The shifts, one per case, are drawn on the device.
    """
    start = 0
    if longest is not None and n_times > longest:
        start, n_times = int(integers(0, n_times - longest + 1)), longest
    overlap = int(integers(2 ** (temporal_unit + 1), n_times + 1))
    left = int(integers(0, n_times - overlap + 1))
    right = left + overlap
    outer_left = int(integers(0, left + 1))
    outer_right = int(integers(right, n_times + 1))
    return Crops(n_times, left, right, outer_left, outer_right, start)


def plan_crops(
    encoder: Encoder, shape: tuple[int, int, int], integers: Callable[[int, int], int], temporal_unit: int, longest: int
) -> Crops | Places:
    """Draw the crops of a step, as places in time where the encoder takes cases of any length by one program."""
    crops = draw_crops(shape[2], integers, temporal_unit=temporal_unit, longest=longest)
    if not encoder.takes_length:
        return crops
    room = room_for((max(crops.lengths), crops.overlap), shape[0], crops.n_times)
    return Places((crops.start, crops.left, crops.right, crops.outer_left, crops.outer_right), room)


def encode_crops(
    encoder: Encoder, x: Tensor, plan: Crops | Places, longest: int, mask: float, dropout: float
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(B, C, T) -> (B, F, overlap) twice, time-aligned, as planned; two calls of the encoder, one per view.

    In training each time step of each view is hidden with probability `mask` behind the encoder's input projection
    (D-11), and features are dropped with probability `dropout`; in evaluation mode neither. With positions on the
    device there is room behind the overlap, with zeros, and the overlap's length comes third.
    """
    if isinstance(plan, Places):
        start, left, right, outer_left, outer_right = plan.at
        n_times = min(x.shape[2], longest)
        plan = Crops(n_times, left, right, outer_left, outer_right, start, plan.room or (n_times, n_times))
    views = cut_crops(x, plan, draw_shifts(plan, len(x), x.device))
    features = []
    for view, length in zip(views, plan.lengths, strict=True):
        keep = None
        if encoder.training:  # (B, length)
            keep = (torch.rand(len(x), plan.n_times, device=x.device) >= mask)[:, : view.shape[2]]
        features.append(encoder(view, keep, length) if plan.on_device else encoder(view, keep))
    h1, h2 = shared_part(features[0], features[1], plan)
    dropout = dropout if encoder.training else 0.0
    return _thin_out(h1, plan, dropout), _thin_out(h2, plan, dropout), plan.overlap if plan.on_device else None


def draw_shifts(crops: Crops, n_cases: int, device: torch.device) -> Tensor:
    """One shift per case, (B,), drawn where it is used."""
    low, stop = crops.shifts
    n_shifts = stop - low
    drawn: Tensor = (torch.rand(n_cases, device=device) * n_shifts).long().clamp(max=n_shifts - 1) + low
    return drawn


def cut_crops(x: Tensor, crops: Crops, shifts: Tensor) -> tuple[Tensor, Tensor]:
    """(B, C, T) -> (B, C, right - outer_left) and (B, C, outer_right - left), by a gather without a host copy.

    With positions on the device both have room, and the last time step of a view is repeated behind its end.
    """
    views = []
    for left, length in zip((crops.outer_left, crops.left), crops.lengths, strict=True):
        steps = torch.arange(crops.room[0] if crops.on_device else length, device=x.device).clamp(max=length - 1)
        read = (crops.start + shifts + left).unsqueeze(1) + steps  # (B, length)
        views.append(x.gather(2, read.unsqueeze(1).expand(-1, x.shape[1], -1)))
    return views[0], views[1]


def shared_part(h1: Tensor, h2: Tensor, crops: Crops) -> tuple[Tensor, Tensor]:
    """The features of the steps that both views saw, aligned in time: (B, F, overlap) twice.  (D-10)

    With positions on the device there is room; what lies there behind the overlap must not be used.
    """
    if crops.on_device:
        moved = _Advance.apply(h1.permute(2, 0, 1), crops.left - crops.outer_left)  # type: ignore[no-untyped-call]
        return moved.permute(1, 2, 0)[..., : crops.room[1]], h2[..., : crops.room[1]]
    return h1[..., -crops.overlap :], h2[..., : crops.overlap]


class _Advance(torch.autograd.Function):
    """Read (T, ...) from a later time step on, a number on the device; behind the end the last one is repeated.

    The gradient is that of the time steps that are read; those behind the end must have none. By hand, because the
    gradient of a gather is added up in an order that changes from run to run.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, n_steps: Tensor) -> Tensor:
        source = torch.arange(len(h), device=h.device) + n_steps
        ctx.save_for_backward(source - 2 * n_steps)
        return h.index_select(0, source.clamp(max=len(h) - 1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dmoved: Tensor) -> tuple[Tensor, None]:
        (source,) = ctx.saved_tensors
        dh = dmoved.index_select(0, source.clamp(min=0))
        return dh.mul_((source >= 0).view(-1, *[1] * (dh.ndim - 1))), None


def _thin_out(z: Tensor, crops: Crops, dropout: float) -> Tensor:
    """Dropout, and nothing behind the overlap; (B, F, T) with time first in memory, as the encoder leaves it."""
    n_cases, width, n_times = z.shape
    factors = None
    if dropout > 0:
        kept = 1 - dropout
        factors = z.new_empty(crops.n_times, n_cases, width).bernoulli_(kept).div_(kept)[:n_times].permute(1, 2, 0)
    if crops.on_device:
        inside = torch.arange(n_times, device=z.device) < crops.overlap
        factors = inside if factors is None else factors.mul_(inside)
    return z if factors is None else z * factors
