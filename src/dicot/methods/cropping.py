"""From a batch to the aligned features of two crops, as TS2Vec and what is built on it train."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.encoders import Encoder
from dicot.errors import InputError
from dicot.methods.base import TrainingSet

# Two overlapping crops of each case, with one geometry per batch and one shift per case (TS2Vec).


@dataclass(frozen=True)
class Crops:
    """Where the two views lie in a window of n_times steps that begins at `start` of the case.

    View 1 covers [outer_left, right) of the window, view 2 [left, outer_right), each moved by the case's own shift;
    they share [left, right). outer_left <= left < right <= outer_right.
    """

    n_times: int
    left: int
    right: int
    outer_left: int
    outer_right: int
    start: int = 0

    @property
    def overlap(self) -> int:
        return self.right - self.left

    @property
    def extent(self) -> int:
        """Time steps of both views together."""
        return self.right - self.outer_left + self.outer_right - self.left

    @property
    def shifts(self) -> tuple[int, int]:
        """Smallest shift, and the largest plus one, that keep both views inside the window."""
        return -self.outer_left, self.n_times - self.outer_right + 1


def shortest_overlap(temporal_unit: int) -> int:
    """The overlap must reach the pooling level at which the temporal loss begins."""
    return int(2 ** (temporal_unit + 1))


def draw_crops(
    n_times: int,
    integers: Callable[[int, int], int],
    *,
    temporal_unit: int = 0,
    longest: int | None = None,
) -> Crops:
    """Draw the geometry; `integers(low, high)` is uniform on low .. high - 1, as numpy's generators have it.

    Order of the draws, after the authors: start of the window (only where a case is longer than `longest`), length of
    the overlap, left, outer left, outer right. The shifts, one per case, are drawn on the device.
    """
    shortest = shortest_overlap(temporal_unit)
    if n_times < shortest:
        raise InputError(
            f"Crops need cases of at least {shortest} time steps (2 ** (temporal_unit + 1)); got {n_times}. "
            "Use longer windows or a smaller temporal_unit."
        )
    start = 0
    if longest is not None and n_times > longest:
        start = int(integers(0, n_times - longest + 1))
        n_times = longest
    overlap = int(integers(shortest, n_times + 1))
    left = int(integers(0, n_times - overlap + 1))
    right = left + overlap
    outer_left = int(integers(0, left + 1))
    outer_right = int(integers(right, n_times + 1))
    return Crops(n_times, left, right, outer_left, outer_right, start)


def draw_shifts(crops: Crops, n_cases: int, device: torch.device) -> Tensor:
    """One shift per case, (B,), drawn where it is used."""
    return torch.randint(*crops.shifts, (n_cases,), device=device)


def cut_crops(x: Tensor, crops: Crops, shifts: Tensor) -> tuple[Tensor, Tensor]:
    """(B, C, T) -> (B, C, right - outer_left) and (B, C, outer_right - left), by a gather without a host copy."""
    begin = crops.start + shifts  # (B,)
    return (
        _cut(x, begin + crops.outer_left, crops.right - crops.outer_left),
        _cut(x, begin + crops.left, crops.outer_right - crops.left),
    )


def shared_part(h1: Tensor, h2: Tensor, crops: Crops) -> tuple[Tensor, Tensor]:
    """The features of the steps that both views saw, aligned in time: (B, F, overlap) twice."""
    return h1[..., -crops.overlap :], h2[..., : crops.overlap]  # D-10


def _cut(x: Tensor, begin: Tensor, length: int) -> Tensor:
    steps = begin.unsqueeze(1) + torch.arange(length, device=x.device)  # (B, length)
    return x.gather(2, steps.unsqueeze(1).expand(-1, x.shape[1], -1))


def check_share(name: str, value: float, *, below: bool = False) -> float:
    """A share from 0 to 1; with `below` 1 itself is refused."""
    if not (0 <= value < 1 if below else 0 <= value <= 1):
        raise InputError(f"{name} is a share, 0 <= {name} {'<' if below else '<='} 1; got {value}.")
    return value


def check_crop_lengths(temporal_unit: Any, max_train_length: Any) -> None:
    """Refuse settings under which no crop exists."""
    if not isinstance(temporal_unit, int) or temporal_unit < 0:
        raise InputError(f"temporal_unit is a pooling depth, a whole number from 0; got {temporal_unit!r}.")
    shortest = shortest_overlap(temporal_unit)
    if not isinstance(max_train_length, int) or max_train_length < shortest:
        raise InputError(
            f"max_train_length must be a whole number of at least {shortest} time steps (2 ** (temporal_unit + 1)); "
            f"got {max_train_length!r}."
        )


def check_cases(train: TrainingSet, temporal_unit: int) -> None:
    """Refuse cases too short for any crop."""
    shortest = shortest_overlap(temporal_unit)
    if train.n_times < shortest:
        raise InputError(
            f"The cases have {train.n_times} time steps; random crops need {shortest} (2 ** (temporal_unit + 1)). "
            "Use longer windows or a smaller temporal_unit."
        )


def encode_crops(encoder: Encoder, x: Tensor, crops: Crops, *, mask: float, dropout: float) -> tuple[Tensor, Tensor]:
    """(B, C, T) -> (B, F, overlap) twice, time-aligned; two calls of the encoder, one per view.

    In training each time step of each view is hidden with probability `mask` behind the encoder's input projection
    (D-11), and features are dropped with probability `dropout`; in evaluation mode neither.
    """
    views = cut_crops(x, crops, draw_shifts(crops, len(x), x.device))
    h1, h2 = (encoder(view, _keep(view, mask) if encoder.training else None) for view in views)
    z1, z2 = shared_part(h1, h2, crops)
    return F.dropout(z1, dropout, encoder.training), F.dropout(z2, dropout, encoder.training)


def _keep(view: Tensor, mask: float) -> Tensor:
    return torch.rand(view.shape[0], view.shape[2], device=view.device) >= mask  # (B, length)
