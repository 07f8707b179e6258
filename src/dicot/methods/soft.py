"""Soft (SoftCLT on TS2Vec, ICLR 2024): graded positives by the likeness of cases and the nearness in time."""

import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.data.cases import Cases, release
from dicot.methods.base import AveragedEncoder, Batch, Method, Places, TrainingSet
from dicot.methods.cropping import Crops, check_cases, encode_crops, plan_crops
from dicot.methods.settings import Count, CountFromZero, NotNegative, Share, ShareBelowOne
from dicot.nets.encoders import Encoder
from dicot.nets.hierarchy import hierarchical_contrast

EXACT_UP_TO = 50_000  # cases; above, the range of distances is estimated
SAMPLED_CASES = 4096
BLOCK = 2048  # cases on each side of a block of pairs


class CaseSimilarity(nn.Module):
    """Cosine similarity of whole cases, scaled per column over the training set, slice by slice.

    On the full matrix D = -cos (i, j) the rule is: the diagonal becomes the smallest off-diagonal value of all, each
    column is scaled to [0, 1], similarity = 1 - scaled (D-16). The filled diagonal makes that smallest value the
    minimum of every column, so two buffers are enough (D-17): it, and the largest distance of each column. The N x N
    matrix is never made.
    """

    closest: Tensor  # () smallest distance between two different cases
    farthest: Tensor  # (N,) largest distance to each case

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("closest", torch.zeros(()))
        self.register_buffer("farthest", torch.zeros(0))

    def fit(self, x: Cases) -> None:
        """One blocked pass over all pairs of x (N, C, T), on the device this module is on; memory O(N)."""
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
        """(B, B) similarities of x (B, C, T); only the scaling is that of the rows `index` of the training set."""
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


class Soft(Method):
    """TS2Vec's views with SoftCLT's loss.

    tau_inst: how fast the weight of another case falls with its cosine distance; 0 takes TS2Vec's instance loss.
    tau_temp: how fast the weight of another time step falls with the lag; 0 takes TS2Vec's temporal loss.
    alpha: largest weight of another case. lambda_: share of the instance loss.
    temporal_unit, mask, dropout, max_train_length, average_weights: see TS2Vec, also for CUDA graphs.
    """

    needs_time_steps = True
    summary = "TS2Vec with graded positives: alike cases and near time steps count in part"
    paper = "Soft Contrastive Learning for Time Series, ICLR 2024"
    complexity = (
        "as TS2Vec, and before training one pass over all pairs of cases, time O(N^2 C T) (above 50,000 cases "
        "4096 N C T), memory O(N)"
    )

    def __init__(
        self,
        encoder: Encoder,
        *,
        tau_inst: NotNegative = 10.0,
        tau_temp: NotNegative = 1.0,
        alpha: Share = 0.5,
        lambda_: Share = 0.5,
        temporal_unit: CountFromZero = 0,
        mask: ShareBelowOne = 0.5,
        dropout: ShareBelowOne = 0.1,
        max_train_length: Count = 3000,
        average_weights: bool = True,
    ) -> None:
        super().__init__(encoder)
        self.tau_inst, self.tau_temp, self.alpha, self.lambda_ = tau_inst, tau_temp, alpha, lambda_
        self.mask, self.dropout = mask, dropout
        self.temporal_unit, self.max_train_length = temporal_unit, max_train_length
        self.average_weights = average_weights
        self.average = AveragedEncoder(encoder) if average_weights else None
        self.similarity = CaseSimilarity() if tau_inst > 0 else None

    def prepare(self, train: TrainingSet) -> None:
        check_cases(train.n_times, self.temporal_unit, self.max_train_length)
        if self.similarity is not None:
            self.similarity.fit(train)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Crops | Places:
        return plan_crops(self.encoder, shape, rng.integers, self.temporal_unit, self.max_train_length)

    def loss(self, batch: Batch, plan: Crops | Places) -> Tensor:
        z1, z2, length = encode_crops(self.encoder, batch.x, plan, self.max_train_length, self.mask, self.dropout)
        weights = None
        if self.similarity is not None:
            weights = sharpen(self.similarity(batch.x, batch.index), self.tau_inst, self.alpha)  # D-13
        return hierarchical_contrast(
            z1,
            z2,
            alpha=self.lambda_,
            temporal_unit=self.temporal_unit,
            case_weights=weights,
            tau_temp=self.tau_temp,
            length=length,
        )
