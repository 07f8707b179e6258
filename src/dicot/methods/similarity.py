"""How alike the cases of a training set are, without the N x N matrix of all pairs (Soft)."""

import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.data.pieces import release
from dicot.losses.precision import wide
from dicot.methods.base import Cases

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
