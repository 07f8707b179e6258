"""Vector: the one module that makes a vector of a case.

Its composition is what stands beside the pooled features of an encoder, and how all of it is compressed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.model.box import in_box
from dicot.model.files import read_config, read_weights
from dicot.model.kernels import Bank, Contests
from dicot.model.vector.compression import Compression
from dicot.model.vector.levels import Levels
from dicot.model.vector.poolings import encoded, own_vectors, pooled_dim, pooling_named
from dicot.nets.encoders import Encoder, Universal
from dicot.nets.encoders.base import home_of

LEVELS_COUNT = 0.4  # as much as any other part of a vector that is compressed
FORM = "form"  # the tensor of a box that says which encoder its weights belong to

Part = Universal | Bank | Contests | Levels


class Composition(nn.Module):
    """Join pooled features with what stands beside them, and compress all of it; any part may be None.

    box: a universal encoder, which nobody trains any more
    """

    def __init__(
        self,
        box: Universal | None = None,
        bank: Bank | None = None,
        contests: Contests | None = None,
        levels: Levels | None = None,
        compression: Compression | None = None,
    ) -> None:
        super().__init__()
        self.box = box
        self.bank = bank
        self.contests = contests
        self.levels = levels
        self.compression = compression

    def forward(self, pooled: Tensor, x: Tensor, offsets: Tensor | None = None) -> Tensor:
        """Join pooled features (B, F) with those of the cases (B, C, T) themselves, (B, vector).

        offsets: (B, C), what was subtracted from the channels (see `data.offsets`). Only the levels see them: kernels
        whose taps add up to zero do not, and the box z-scores every channel.
        """
        parts = [pooled]
        if self.box is not None:
            parts.append(own_vectors(self.box, x))
        if self.bank is not None:
            parts.append(self.bank(x))
        if self.contests is not None:
            parts.append(self.contests(x))
        if self.levels is not None:
            parts.append(self.levels(x, offsets))
        z = pooled
        if len(parts) > 1:
            z = torch.cat([part.to(pooled.dtype) for part in parts], dim=1)
        return z if self.compression is None else self.compression(z)

    def beside(self) -> Iterator[Part]:
        """Yield what stands beside the pooled features, in the order that it has in a vector."""
        for part in (self.box, self.bank, self.contests, self.levels):
            if part is not None:
                yield part

    def part_names(self) -> set[str]:
        """Return the names of the parts that are there."""
        return {name for name, _ in self.named_children()}

    def dim(self, pooled: int) -> int:
        """Return the length of a vector whose pooled features are so many."""
        if self.compression is not None:
            return self.compression.n_components
        return sum(size for size, _ in self.sizes(pooled))

    def sizes(self, pooled: int) -> list[tuple[int, float]]:
        """Return the number of features of the encoder and of what stands beside it, and how much each part counts."""
        sizes = [(pooled, 1.0)]
        for part in self.beside():
            n_features = part.embed_dim if isinstance(part, Universal) else part.n_features
            sizes.append((n_features, LEVELS_COUNT if isinstance(part, Levels) else 1.0))
        return sizes

    @property
    def width(self) -> int:
        """How many numbers for each time step of a case are in memory at once."""
        widths = [0]
        for part in self.beside():
            if isinstance(part, Universal):
                widths.append(part.dim * part.n_channels // 4)
            else:
                widths.append(part.width)
        return max(widths)

    def where(self, like: Tensor) -> "Composition":
        """Return the composition on the device and in the type of a tensor; a copy where it is elsewhere."""
        if home_of(self) == (like.device, like.dtype):
            return self
        return deepcopy(self).to(like.device, like.dtype)

    def tensors(self) -> dict[str, Tensor]:
        """Return what a file keeps, by name; nothing where there is nothing beside the pooled features."""
        tensors = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        if self.box is None:
            return tensors
        form = torch.tensor([self.box.n_channels, self.box.dim])
        return {f"box.{FORM}": form, **tensors}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], n_channels: int, pooled: int) -> "Composition":
        """Make a composition of what `tensors` gave; refuse parts that do not fit so many channels and features."""
        by_part: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for name, tensor in tensors.items():
            part, _, key = name.partition(".")
            by_part[part][key] = tensor
        composition = cls()
        for name, of_part in by_part.items():
            setattr(composition, name, MAKERS[name](of_part))

        fits = all(part.n_channels == n_channels for part in composition.beside())
        if composition.compression is not None:
            n_features = sum(size for size, _ in composition.sizes(pooled))
            mean, weight = composition.compression.mean, composition.compression.weight
            fits = fits and len(mean) == len(weight) == n_features
        if not fits:
            raise InputError(f"the parts beside its encoder are not for {n_channels} channels and {pooled} features")
        return composition


def box_of(model: str, n_channels: int) -> Universal:
    """Take the encoder of a model in the box, or of a folder, for so many channels."""
    folder = in_box(model)
    encoder = Universal(n_channels, read_config(folder)["encoder"]["dim"])
    encoder.load_state_dict(read_weights(folder, encoder.state_dict()))
    return encoder.eval()


def _box(tensors: Mapping[str, Tensor]) -> Universal:
    n_channels, dim = tensors[FORM].tolist()
    encoder = Universal(n_channels, dim)
    encoder.load_state_dict({name: tensor for name, tensor in tensors.items() if name != FORM})
    return encoder.eval()


def _levels(tensors: Mapping[str, Tensor]) -> Levels:
    return Levels.from_form(tensors["form"])


def _compression(tensors: Mapping[str, Tensor]) -> Compression:
    return Compression(**tensors)


MAKERS: dict[str, Callable[[Mapping[str, Tensor]], nn.Module]] = {
    "box": _box,
    "bank": Bank.from_tensors,
    "contests": Contests.from_tensors,
    "levels": _levels,
    "compression": _compression,
}
PLAIN = Composition()  # the pooled features alone


class Vector(nn.Module):
    """Cases (B, C, T) in, vectors (B, F) out: an encoder that is pooled, and what its composition makes of that.

    pooling: a name of `dicot list poolings`; None keeps the encoder's features per time step, (B, F, T)
    dtype: the type of the encoder's convolutions, where it is not that of its weights

    `transform` and a stream run it, and `dicot export` writes it to a file.
    """

    def __init__(
        self,
        encoder: Encoder,
        pooling: str | None,
        composition: Composition = PLAIN,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.composition = composition
        self.pooling = pooling
        self.rule = pooling_named(pooling)
        self.dtype = dtype

    def forward(self, x: Tensor, offsets: Tensor | None = None) -> Tensor:
        """Make the vectors of cases; a vector does not depend on the other cases.

        offsets: (B, C), what was subtracted from the channels (see `data.offsets`). The encoder is given them where it
        needs levels.
        """
        with_levels = x
        if offsets is not None and self.encoder.needs_levels:
            with_levels = x + offsets.unsqueeze(2)
        features = encoded(self.encoder, with_levels, self.rule, self.dtype)
        return self.composition(features, x, offsets)  # type: ignore[no-any-return]

    def shape(self, n_times: int) -> tuple[int, ...]:
        """Return the shape of what one case of so many time steps becomes."""
        if self.pooling is None:
            return self.encoder.dim, self.encoder.out_length(n_times)
        return (self.composition.dim(pooled_dim(self.encoder, self.pooling)),)
