"""From a batch to the aligned features of two crops, as TS2Vec and what is built on it train."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.encoders import Encoder
from dicot.errors import InputError
from dicot.methods.base import TrainingSet
from dicot.views.crops import Crops, cut_crops, draw_shifts, shared_part, shortest_overlap


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
