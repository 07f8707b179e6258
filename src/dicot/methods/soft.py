"""Soft (SoftCLT on TS2Vec, ICLR 2024): graded positives by the likeness of cases and the nearness in time."""

import math
import warnings
from collections.abc import Hashable
from functools import partial
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.data.cases import Cases, release
from dicot.methods.averaging import AveragedEncoder
from dicot.methods.base import Batch, Method, Places, TrainingSet
from dicot.methods.cropping import (
    Crops,
    check_cases,
    check_crop_lengths,
    check_share,
    crops_of,
    encode_crops,
    plan_crops,
)
from dicot.nets.encoders import Encoder
from dicot.nets.losses.contrast import contrast, hard_level, mean_over_groups, over_levels, paired_targets
from dicot.nets.losses.padded import over_padded_levels
from dicot.nets.losses.precision import wide, wide_dtype

# How alike the cases of a training set are, without the N x N matrix of all pairs (Soft).


EXACT_UP_TO = 50_000  # cases; above, the range of distances is estimated
SAMPLED_CASES = 4096
BLOCK = 2048  # cases on each side of a block of pairs


class CaseSimilarity(nn.Module):
    """Cosine similarity of whole cases, scaled per column over the training set, slice by slice.

    On the full matrix D = -cos (i, j) the rule is: the diagonal becomes the smallest off-diagonal value of all, each
    column is scaled to [0, 1], similarity = 1 - scaled (D-16). The filled diagonal makes that smallest value the
    minimum of every column, so two buffers are enough (D-17): it, and the largest distance of each column.
    """

    closest: Tensor  # () smallest distance between two different cases
    farthest: Tensor  # (N,) largest distance to each case

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("closest", torch.zeros(()))
        self.register_buffer("farthest", torch.zeros(0))

    def fit(self, x: Cases) -> None:
        """One blocked pass over all pairs of x (N, C, T), on the device this module is on; memory O(N) beside the data.

        Above 50,000 cases the columns are compared with 4096 random cases only, and a warning says so.
        """
        rows = np.arange(len(x))
        if len(x) > EXACT_UP_TO:
            warnings.warn(
                f"The range of similarities of {len(x)} cases is estimated from {SAMPLED_CASES} random ones "
                f"(exact up to {EXACT_UP_TO} cases).",
                stacklevel=2,
            )
            rows = np.sort(torch.randperm(len(x))[:SAMPLED_CASES].numpy())
        closest, farthest = distance_range(x, rows, self.closest.device)
        equal = farthest - closest <= 10 * torch.finfo(farthest.dtype).eps  # up to rounding
        self.closest, self.farthest = closest, torch.where(equal, closest, farthest)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        """(B, B) similarities of the cases x (B, C, T) with the rows `index` of the training set; diagonal 1.

        The distances are those of the cases as they are in the batch; only the scaling is looked up.
        """
        with torch.autocast(x.device.type, enabled=False):
            unit = unit_rows(x)
            span = self.farthest[index] - self.closest  # (B,) one per column
            scaled = (-(unit @ unit.T) - self.closest) / span
            scaled = torch.where(span > 0, scaled.clamp(0, 1), 0)  # all distances of a column equal: similarity 1
            return (1 - scaled).fill_diagonal_(1)


def sharpen(similarity: Tensor, tau: float, alpha: float) -> Tensor:
    """SoftCLT's weights 2 alpha sigmoid(tau (S - 1)) + (1 - alpha) I: 1 on the diagonal, at most alpha beside it."""
    itself = torch.eye(len(similarity), dtype=similarity.dtype, device=similarity.device)
    return 2 * alpha * torch.sigmoid(tau * (similarity - 1)) + (1 - alpha) * itself  # D-14


def unit_rows(x: Tensor) -> Tensor:
    """(N, C, T) -> (N, C T) of length one, float32 or wider; a case of zeros stays zero, so that its cosines are 0."""
    flat = x.flatten(1)
    flat = wide(flat)
    peak = flat.abs().amax(dim=1, keepdim=True)  # taken out first: squares of large values leave the range of float32
    return F.normalize(flat / torch.where(peak > 0, peak, 1), dim=1)


def distance_range(x: Cases, rows: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """Smallest of all distances -cos (i, j), i != j, and the largest of each column j; i runs over `rows`."""
    if len(x) == 1:
        return torch.zeros((), device=device), torch.zeros(1, device=device)  # no pair: nothing to scale
    smallest, largest = [], []
    for first in range(0, len(x), BLOCK):
        columns = np.arange(first, min(first + BLOCK, len(x)))
        right = unit_rows(_read(x, columns, device))
        low, high = (right.new_full((len(columns),), sign * torch.inf) for sign in (1, -1))
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            distance = -(unit_rows(_read(x, part, device)) @ right.T)
            itself = torch.from_numpy(part[:, None] == columns).to(device)
            low = torch.minimum(low, distance.masked_fill(itself, torch.inf).amin(dim=0))
            high = torch.maximum(high, distance.masked_fill(itself, -torch.inf).amax(dim=0))
        smallest.append(low.amin())
        largest.append(high)
    return torch.stack(smallest).amin(), torch.cat(largest)


def _read(x: Cases, rows: np.ndarray, device: torch.device) -> Tensor:
    """These cases on the device, by a slice where the rows follow each other: memory maps are given back then."""
    together = rows[-1] - rows[0] == len(rows) - 1
    block = x[rows[0] : rows[-1] + 1] if together else x[rows]
    on_device = torch.tensor(block, device=device)
    release(block)
    return on_device


# SoftCLT: graded targets instead of one positive, across cases and across time.


SMALLEST_LAG_WEIGHT = 1e-6  # smaller ones are set to 0


def time_lag_weights(n_times: int, tau: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(T, T): 2 / (1 + exp(tau |t - t'|)), 1 on the diagonal."""
    time = torch.arange(n_times, dtype=dtype, device=device)
    weights = 2 * torch.sigmoid(-tau * (time.unsqueeze(1) - time).abs())
    return torch.where(weights < SMALLEST_LAG_WEIGHT, 0, weights)


def soft_contrast(z1: Tensor, z2: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy of all pairs of (G, n, F) twice against `weights` (n, n), which all groups share.

    Both views of vector j are candidates of vector i with target weights[i, j], itself left out. Targets do not sum to
    one; the mean is over the 2n anchors. With the identity it is `paired_contrast`. Time O(G n^2 F), memory O(G n^2).
    """
    return contrast(z1, z2, soft_targets(weights))


def soft_targets(weights: Tensor) -> Tensor:
    """(n, n) -> (2n, 2n): the same in both views, 0 for the vector itself."""
    return weights.repeat(2, 2).fill_diagonal_(0)


def soft_hierarchical_contrast(
    z1: Tensor,
    z2: Tensor,
    instance_weights: Tensor | None,
    *,
    tau_temp: float,
    lambda_: float = 0.5,
    temporal_unit: int = 0,
    length: Tensor | None = None,
) -> Tensor:
    """SoftCLT's loss on aligned features (B, F, T); `lambda_` is the share of the instance loss.

    `instance_weights` (B, B) grades the cases, None takes the hard loss. Time lags are graded with tau_temp 2^depth;
    tau_temp = 0 takes the hard loss. Cost and memory as `hierarchical_contrast`, and one (2T, 2T) array of targets.
    With a `length`, a number on the device, only so many of the first time steps count.
    """
    if length is not None:
        dtype, device = wide_dtype(z1), z1.device
        paired = partial(paired_targets, dtype=dtype, device=device)
        cases = paired(len(z1)) if instance_weights is None else soft_targets(instance_weights)

        def lags(n: int, depth: int) -> Tensor:
            tau = tau_temp * 2**depth
            return soft_targets(time_lag_weights(n, tau, dtype, device)) if tau > 0 else paired(n)

        return over_padded_levels(z1, z2, length, cases, lags, alpha=lambda_, temporal_unit=temporal_unit)
    instance = hard_level if instance_weights is None else partial(_soft_level, weights=instance_weights)
    temporal = partial(_lag_level, tau_temp=tau_temp) if tau_temp > 0 else hard_level
    return over_levels(z1, z2, instance, temporal, alpha=lambda_, temporal_unit=temporal_unit)


def _soft_level(z1: Tensor, z2: Tensor, depth: int, weights: Tensor) -> Tensor:
    return mean_over_groups(partial(soft_contrast, weights=weights), z1, z2)


def _lag_level(z1: Tensor, z2: Tensor, depth: int, tau_temp: float) -> Tensor:
    """Lags weigh more at deeper levels, where a step stands for 2^depth of the first one's."""
    weights = time_lag_weights(z1.shape[1], tau_temp * 2**depth, wide_dtype(z1), z1.device)
    return _soft_level(z1, z2, depth, weights)


class Soft(Method):
    """TS2Vec's views with SoftCLT's loss.

    tau_inst: how fast the weight of another case falls with its cosine distance; 0 takes TS2Vec's instance loss.
    tau_temp: how fast the weight of another time step falls with the lag; 0 takes TS2Vec's temporal loss.
    alpha: largest weight of another case. lambda_: share of the instance loss.
    temporal_unit, mask, dropout, max_train_length, average_weights: see TS2Vec, also for CUDA graphs.
    """

    needs_time_steps: ClassVar[bool] = True
    summary: ClassVar[str] = "TS2Vec with graded positives: alike cases and near time steps count in part"
    paper: ClassVar[str] = "Soft Contrastive Learning for Time Series, ICLR 2024"
    complexity: ClassVar[str] = (
        "as TS2Vec, and before training one pass over all pairs of cases, time O(N^2 C T) (above 50,000 cases "
        "4096 N C T), memory O(N)"
    )

    def __init__(
        self,
        encoder: Encoder,
        *,
        tau_inst: float = 10.0,
        tau_temp: float = 1.0,
        alpha: float = 0.5,
        lambda_: float = 0.5,
        temporal_unit: int = 0,
        mask: float = 0.5,
        dropout: float = 0.1,
        max_train_length: int = 3000,
        average_weights: bool = True,
    ) -> None:
        super().__init__(encoder)
        check_crop_lengths(temporal_unit, max_train_length)
        for name, tau in (("tau_inst", tau_inst), ("tau_temp", tau_temp)):
            if not 0 <= tau < math.inf:
                raise InputError(f"{name} must be 0 (hard loss) or above, and finite; got {tau}.")
        self.tau_inst, self.tau_temp = tau_inst, tau_temp
        self.alpha = check_share("alpha", alpha)
        self.lambda_ = check_share("lambda_", lambda_)
        self.mask = check_share("mask", mask, below=True)
        self.dropout = check_share("dropout", dropout, below=True)
        self.temporal_unit, self.max_train_length = temporal_unit, max_train_length
        self.average_weights = average_weights
        self.average = AveragedEncoder(encoder) if average_weights else None
        self.similarity = CaseSimilarity() if tau_inst > 0 else None

    def prepare(self, train: TrainingSet) -> None:
        check_cases(train, self.temporal_unit)
        if self.similarity is not None:
            self.similarity.fit(train)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Crops | Places:
        return plan_crops(self.encoder, shape[2], rng.integers, self.temporal_unit, self.max_train_length)

    def extent(self, plan: Hashable) -> int:
        return plan.extent if isinstance(plan, Crops) else 0  # a plan of places does not change shapes

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        crops = crops_of(plan, batch.x.shape[2], self.max_train_length)
        z1, z2 = encode_crops(self.encoder, batch.x, crops, mask=self.mask, dropout=self.dropout)
        weights = None
        if self.similarity is not None:
            weights = sharpen(self.similarity(batch.x, batch.index), self.tau_inst, self.alpha)  # D-13
        return soft_hierarchical_contrast(
            z1,
            z2,
            weights,
            tau_temp=self.tau_temp,
            lambda_=self.lambda_,
            temporal_unit=self.temporal_unit,
            length=crops.overlap if crops.on_device else None,
        )

    def after_step(self, batch: Batch, progress: float) -> None:
        if self.average is not None:
            self.average.update(self.encoder)

    def trained_encoder(self) -> Encoder:
        return self.encoder if self.average is None else self.average.encoder
