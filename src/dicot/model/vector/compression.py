"""Compression: vectors of many features as fewer numbers with the same distances."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from scipy.linalg import eigh
from scipy.linalg.blas import drot
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.core.settings import how_to_prepare
from dicot.data.cases import Array
from dicot.nets.encoders.base import is_exporting

NO_SPREAD = 3e-7  # deviation relative to the mean that float32 makes of a constant by rounding
NO_VARIANCE = 1e-10  # of a component, relative to the first
ROWS_AT_ONCE = 4  # of a product; rows that are left over would be rounded in another way


class Compression(nn.Module):
    """(x - mean) @ weight @ turn. The numbers have mean 0 and deviation 1 over the training cases.

    They are the principal components, rotated so that each has the same variance: distances and angles are those of the
    components, and a head that standardises its input, as most do, leaves them alone. On the components themselves it
    would raise the last ones, which are mostly noise, to the size of the first.

    mean: (F,)
    weight: (F, n), or (F, r) where there are fewer components than numbers
    turn: (r, n) there, else None
    """

    mean: Tensor
    weight: Tensor
    turn: Tensor | None

    def __init__(self, mean: Tensor, weight: Tensor, turn: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        # Each column in one piece: a single case would otherwise wait for memory twice as long.
        self.register_buffer("weight", weight.T.contiguous().T)
        self.register_buffer("turn", turn)

    @classmethod
    def fit(
        cls,
        z: Array,
        n_components: int,
        device: torch.device | str = "cpu",
        *,
        parts: Sequence[tuple[int, float]] | None = None,
        exactly: bool = False,
    ) -> Self:
        """Find at most n_components numbers for vectors (N, F), and never N or more; computed in float64.

        parts: lengths of the parts that a vector consists of, and how much each counts, however many features it has;
        without them every feature counts alike.
        exactly: n_components numbers, whatever N is. They have the distances and angles that fewer would have.
        """
        x = torch.as_tensor(z).to(device).double()
        mean = x.mean(dim=0)
        scale = _scale(x, mean, n_components)
        if parts is not None:
            scale = scale / _sizes_of_parts(scale != 0, parts)
        components, variances = _principal((x - mean) * scale, n_components)

        lacking = n_components - len(variances) if exactly else 0
        variances = F.pad(variances, (0, lacking))
        # Few components are turned into many numbers behind the product, which is the smaller for it.
        start = np.eye(n_components, len(components)) if lacking else components.cpu().numpy()
        turned = torch.from_numpy(equalised(start, variances.cpu().numpy()))
        rows = components if lacking else turned.to(x.device)

        weight = ((rows / variances.mean().sqrt()).T * scale.unsqueeze(1)).float().contiguous().cpu()
        turn = turned.T.float().contiguous() if lacking else None
        return cls(mean.float().cpu(), weight, turn)

    @property
    def n_components(self) -> int:
        last = self.weight if self.turn is None else self.turn
        return last.shape[1]

    def forward(self, z: Tensor) -> Tensor:
        """Compute (B, F) -> (B, n)."""
        centred = z - self.mean
        if is_exporting():
            product = centred @ self.weight
            return product if self.turn is None else product @ self.turn
        missing = -len(z) % ROWS_AT_ONCE
        product = F.pad(centred, (0, 0, 0, missing)) @ self.weight
        compressed = product if self.turn is None else product @ self.turn
        return compressed[: len(z)]


def _scale(x: Tensor, mean: Tensor, n_components: int) -> Tensor:
    """Return what each feature of vectors (N, F) is multiplied by; 0 for one without spread, which plays no part."""
    if not mean.isfinite().all():
        n_lost = int((~x.isfinite().all(dim=1)).sum())
        raise InputError(
            f"The embeddings of {n_lost} training case(s) are not finite, so that nothing can be fitted on them. "
            f"Clip the values, or fit with {how_to_prepare('scale', 'dataset')}."
        )
    deviation = x.std(dim=0, correction=0)
    has_spread = deviation > NO_SPREAD * mean.abs()
    if not has_spread.any():
        raise InputError(
            f"n_components={n_components} needs training cases that differ from each other; got "
            f"n_samples={len(x)}, all with the same vector. Pass others, or n_components=0."
        )
    return torch.where(has_spread, 1 / torch.where(has_spread, deviation, 1.0), 0.0)


def _sizes_of_parts(is_used: Tensor, parts: Sequence[tuple[int, float]]) -> Tensor:
    """Return for each feature the root of how many features its part has, divided by how much the part counts."""
    sizes = [size for size, _ in parts]
    counts = [of_part.sum().clamp_min(1) for of_part in torch.split_with_sizes(is_used, sizes)]
    shares = torch.tensor([share for _, share in parts], dtype=torch.float64, device=is_used.device)
    roots = torch.stack(counts).sqrt() / shares
    return roots.repeat_interleave(torch.tensor(sizes, device=is_used.device))


def _principal(x: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Return the principal components of centred vectors (N, F) as rows (n, F), and their variances, largest first."""
    n_cases, n_features = x.shape
    # Where there are fewer cases, their products are the smaller matrix with the same eigenvalues.
    is_wide = n_features > n_cases
    products = (x @ x.T if is_wide else x.T @ x) / n_cases
    if len(products) > 2 * most and not products.is_cuda:
        # The largest alone take half the time.
        largest = (len(products) - most, len(products) - 1)
        pair = eigh(products.numpy(), subset_by_index=largest, overwrite_a=True, check_finite=False)
        variances, vectors = map(torch.from_numpy, pair)
    else:
        variances, vectors = torch.linalg.eigh(products)

    n_with_variance = int((variances > NO_VARIANCE * variances[-1]).sum())
    n = min(most, n_cases - 1, n_with_variance)
    variances = variances.flip(0)[:n]
    vectors = vectors.flip(1)[:, :n]

    rows = vectors.T @ x if is_wide else vectors.T
    rows = rows / rows.norm(dim=1, keepdim=True)
    # An eigenvector has no sign of its own: its largest number becomes positive.
    strongest = rows.gather(1, rows.abs().argmax(dim=1, keepdim=True))
    return rows * strongest.sign(), variances


def equalised(components: Array, variances: Array) -> Array:
    """Rotate components (n, F), largest variance first, so that all have the mean variance.

    Each rotation turns a pair, one above the mean and one below, by the angle that brings one of them there; the others
    stay uncorrelated with what is left of the pair, so that n - 1 rotations do.
    """
    rows = np.array(components, np.float64, order="C")
    remaining = variances.astype(np.float64)
    target = float(variances.mean())
    high, low = 0, len(rows) - 1
    while high < low:
        gap = remaining[high] - remaining[low]
        if gap <= 0:
            break
        # Whichever of the two is nearer to the mean gets there, the other takes up the difference. The last two are
        # equally near, which rounding must not decide.
        low_is_nearer = target - remaining[low] <= (1 + NO_VARIANCE) * (remaining[high] - target)
        done, other = (low, high) if low_is_nearer else (high, low)
        share = (target - remaining[done]) / (remaining[other] - remaining[done])
        share = min(1.0, max(0.0, share))
        drot(rows[done], rows[other], np.sqrt(1 - share), np.sqrt(share), overwrite_x=True, overwrite_y=True)
        remaining[other] += remaining[done] - target
        remaining[done] = target
        if done == low:
            low -= 1
        else:
            high += 1
    return rows
