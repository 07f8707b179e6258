"""What a vector holds beside the encoder's pooled features, and how it is compressed; fitted without labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg.blas import drot
from torch import Tensor

from dicot.core.errors import InputError
from dicot.data.cases import Array
from dicot.model.kernels import Bank, Contests

MOST_COMPONENTS = 2_048
NO_SPREAD = 3e-7  # deviation relative to the mean that float32 makes of a constant by rounding
NO_VARIANCE = 1e-10  # of a component, relative to the first
Network = Callable[[Tensor], Any]


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
        """Return what a file keeps."""
        return {"mean": self.mean, "weight": self.weight}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Compression":
        """Make a compression of what `tensors` gave."""
        return cls(tensors["mean"], tensors["weight"])


@dataclass(frozen=True, eq=False)
class Composition:
    """Pooled features, a bank's and contests' beside them, all of it compressed; any part may be off."""

    bank: Bank | None = None
    contests: Contests | None = None
    compression: Compression | None = None

    @property
    def beside(self) -> list[Bank | Contests]:
        """What stands beside the pooled features."""
        return [part for part in (self.bank, self.contests) if part is not None]

    def dim(self, pooled: int) -> int:
        """Return the length of a vector whose pooled features are so many."""
        return sum(self.parts(pooled)) if self.compression is None else self.compression.n_components

    def parts(self, pooled: int) -> list[int]:
        """Return how many features the encoder, the bank and the contests have before they are compressed."""
        return [pooled, *(part.n_features for part in self.beside)]

    @property
    def width(self) -> int:
        """How many numbers for each time step of a case are in memory at once."""
        return max((part.width for part in self.beside), default=0)

    def around(self, network: Network, like: Tensor) -> Network:
        """Return the function (B, C, T) -> (B, vector) around one that pools, for cases on the device of `like`."""
        beside = [part.to(like) for part in self.beside]
        compression = None if self.compression is None else self.compression.to(like)
        if not beside and compression is None:
            return network

        def compute(x: Tensor) -> Tensor:
            parts = [network(x), *(part.transform(x) for part in beside)]
            z = torch.cat([part.to(like.dtype) for part in parts], dim=1)
            return z if compression is None else compression.transform(z)

        return compute

    def tensors(self) -> dict[str, Tensor]:
        """Return what a file keeps, by name; nothing where there is nothing beside the pooled features."""
        parts = {name: getattr(self, name) for name in PARTS if getattr(self, name) is not None}
        return {f"{name}.{key}": tensor for name, part in parts.items() for key, tensor in part.tensors().items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], n_channels: int, pooled: int) -> "Composition":
        """Make a composition of what `tensors` gave; refuse parts that do not fit so many channels and features."""
        kept: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, key = name.partition(".")
            kept.setdefault(part, {})[key] = tensor
        made = cls(**{name: PARTS[name].from_tensors(own) for name, own in kept.items()})
        sizes = set() if made.compression is None else {len(made.compression.mean), len(made.compression.weight)}
        if any(part.n_channels != n_channels for part in made.beside) or sizes - {sum(made.parts(pooled))}:
            raise InputError(f"the parts beside its encoder are not for {n_channels} channels and {pooled} features")
        return made


PARTS: dict[str, Any] = {"bank": Bank, "contests": Contests, "compression": Compression}


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
