"""Vector: the one module that makes a vector of a case."""

import torch
from torch import Tensor, nn

from dicot.model.vector.composition import PLAIN, Composition
from dicot.model.vector.encoding import encoded
from dicot.model.vector.poolings import pooled_dim, pooling_named
from dicot.nets.encoders import Encoder


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
