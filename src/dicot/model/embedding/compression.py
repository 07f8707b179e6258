"""Fewer numbers that keep what many told: standardised, then principal components, fitted on unlabelled cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg.blas import drot
from torch import Tensor

from dicot.core.errors import InputError
from dicot.data.cases import Array

MOST_COMPONENTS = 2_048
NO_SPREAD = 3e-7  # deviation relative to the mean that float32 makes of a constant by rounding
NO_VARIANCE = 1e-10  # of a component, relative to the first


@dataclass(frozen=True, eq=False)
class Compression:
    """(x - mean) @ weight. The numbers have mean 0 and deviation 1 over the training cases.

    They are the principal components, rotated so that each has the same variance: distances and angles are those of the
    components, and a head that standardises its input, as most do, leaves them alone. On the components themselves it
    would raise the last ones, which are mostly noise, to the size of the first.
    """

    mean: Tensor  # (F,)
    weight: Tensor  # (F, n)

    @classmethod
    def fit(
        cls, z: Array, n_components: int, device: torch.device | str = "cpu", *, parts: Sequence[int] | None = None
    ) -> "Compression":
        """Find at most n_components numbers for vectors (N, F), and never N or more; computed in float64.

        parts: lengths of the parts that a vector consists of. Each part counts as much as any other, however many
        features it has; without them every feature does.
        """
        if len(z) < 2:
            raise InputError(
                f"n_components={n_components} needs two training cases or more; got n_samples={len(z)}. "
                "Pass more, or n_components=0."
            )
        x = torch.as_tensor(z).to(device).double()
        mean, deviation = x.mean(dim=0), x.std(dim=0, correction=0)
        if not mean.isfinite().all():
            raise InputError(
                f"The embeddings of {int((~x.isfinite().all(dim=1)).sum())} training case(s) are not finite, so that "
                'nothing can be fitted on them. Clip the values, or fit with scale="dataset".'
            )
        spread = deviation > NO_SPREAD * mean.abs()
        if not spread.any():
            raise InputError(
                f"n_components={n_components} needs training cases that differ from each other; the vectors of all "
                f"{len(x)} are the same. Pass others, or n_components=0."
            )
        scale = torch.where(spread, 1 / torch.where(spread, deviation, 1.0), 0.0)  # one without spread plays no part
        if parts is not None:
            counts = [own.sum().clamp_min(1) for own in torch.split_with_sizes(spread, list(parts))]
            scale = scale / torch.stack(counts).sqrt().repeat_interleave(torch.tensor(parts, device=x.device))
        components, variances = _principal((x - mean) * scale, n_components)
        rows = torch.from_numpy(equalised(components.cpu().numpy(), variances.cpu().numpy())).to(x.device)
        weight = (rows / variances.mean().sqrt()).T * scale.unsqueeze(1)
        return cls(mean.float().cpu(), weight.float().contiguous().cpu())

    @property
    def n_components(self) -> int:
        return self.weight.shape[1]

    def to(self, like: Tensor) -> "Compression":
        """Return the compression for vectors on the device and of the type of `like`."""
        if (self.weight.device, self.weight.dtype) == (like.device, like.dtype):
            return self
        return Compression(self.mean.to(like), self.weight.to(like))

    def transform(self, z: Tensor) -> Tensor:
        """Compute (B, F) -> (B, n), a single row as one of two: alone it would be rounded in another way."""
        rows = z - self.mean
        return rows @ self.weight if len(z) > 1 else (rows.repeat(2, 1) @ self.weight)[:1]

    def tensors(self) -> dict[str, Tensor]:
        """Return what a file keeps of the compression."""
        return {"mean": self.mean, "weight": self.weight}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Compression":
        """Make a compression of what `tensors` gave."""
        mean, weight = tensors["mean"], tensors["weight"]
        if weight.dim() != 2 or mean.shape != weight.shape[:1] or 0 in weight.shape:
            raise InputError(f"mean {tuple(mean.shape)} and weight {tuple(weight.shape)} of the compression do not fit")
        if not all(part.dtype == torch.float32 and part.isfinite().all() for part in (mean, weight)):
            raise InputError("the compression does not consist of finite numbers")
        return cls(mean, weight)


def _principal(x: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Return the principal components of centred vectors (N, F) as rows (n, F), and their variances, largest first."""
    n_cases, n_features = x.shape
    wide = n_features > n_cases  # then the cases' products are the smaller matrix with the same eigenvalues
    variances, vectors = torch.linalg.eigh((x @ x.T if wide else x.T @ x) / n_cases)
    n = min(most, n_cases - 1, int((variances > NO_VARIANCE * variances[-1]).sum()))
    variances, vectors = variances.flip(0)[:n], vectors.flip(1)[:, :n]
    rows = vectors.T @ x if wide else vectors.T
    rows = rows / rows.norm(dim=1, keepdim=True)
    strongest = rows.gather(1, rows.abs().argmax(dim=1, keepdim=True))
    return rows * strongest.sign(), variances  # an eigenvector has no sign of its own


def equalised(components: Array, variances: Array) -> Array:
    """Rotate components (n, F), largest variance first, so that all have the mean variance.

    Each rotation turns a pair, one above the mean and one below, by the angle that brings one of them there; the others
    stay uncorrelated with what is left of the pair, so that n - 1 rotations do.
    """
    rows, rest = np.array(components, np.float64, order="C"), variances.astype(np.float64)
    target = float(variances.mean())
    high, low = 0, len(rows) - 1
    while high < low:
        # Whichever of the two is nearer to the mean gets there, the other takes up the difference. The last two are
        # equally near, which rounding must not decide.
        gap = rest[high] - rest[low]
        if gap <= 0:
            break
        done, other = (low, high) if target - rest[low] <= (1 + NO_VARIANCE) * (rest[high] - target) else (high, low)
        share = min(1.0, max(0.0, (target - rest[done]) / (rest[other] - rest[done])))
        drot(rows[done], rows[other], np.sqrt(1 - share), np.sqrt(share), overwrite_x=True, overwrite_y=True)
        rest[other] += rest[done] - target
        rest[done] = target
        if done == low:
            low -= 1
        else:
            high += 1
    return rows
