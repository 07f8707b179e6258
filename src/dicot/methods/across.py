"""Across: divide and contrast across cases. Two distorted views of a case must be found among those of all cases."""

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from dicot.methods.base import Batch, Method, TrainingSet, channel_statistics, projector
from dicot.methods.settings import CountFromZero, NotNegative, Positive, ShareBelowOne
from dicot.nets.encoders import Encoder
from dicot.nets.losses import view_contrast
from dicot.nets.views import Distortion, stretch


class Across(Method):
    """Each case finds its other view among all cases of the batch, by the mean embedding through a head.

    temperature: of the cosine similarities.
    width: of the output of the head, which serves training only; 0 for no head.
    noise, scale, offset, mask, crop, channel_drop: see `nets.views.Distortion`.
    lengths: time steps that the views of a step are brought to, one of these by chance; none: as many as the cases.
    """

    summary = "find the other distorted view of a case among all cases of the batch"
    paper = "none: this library's own, after SimCLR (ICML 2020)"
    complexity = "an encoder pass of 2 T per case; loss O(B^2 F)"
    needs_negatives = True

    channel_mean: Tensor  # (C, 1)
    channel_std: Tensor  # (C, 1)

    def __init__(
        self,
        encoder: Encoder,
        *,
        temperature: Positive = 0.2,
        width: CountFromZero = 128,
        noise: NotNegative = Distortion.noise,
        scale: NotNegative = Distortion.scale,
        offset: NotNegative = Distortion.offset,
        mask: float | Sequence[float] = Distortion.mask,
        crop: ShareBelowOne = Distortion.crop,
        channel_drop: ShareBelowOne = Distortion.channel_drop,
        lengths: Sequence[int] = (),
    ) -> None:
        super().__init__(encoder)
        self.temperature, self.width = temperature, width
        self.noise, self.scale, self.offset, self.crop, self.channel_drop = noise, scale, offset, crop, channel_drop
        self.mask = tuple(mask) if isinstance(mask, Sequence) else mask
        self.distortion = Distortion(noise, scale, offset, self.mask, crop, channel_drop)
        self.lengths = tuple(lengths)
        self.head = projector(encoder.embed_dim, encoder.dim, width) if width else nn.Identity()
        self.register_buffer("channel_mean", torch.zeros(encoder.n_channels, 1))
        self.register_buffer("channel_std", torch.ones(encoder.n_channels, 1))

    def prepare(self, train: TrainingSet) -> None:
        super().prepare(train)
        self.channel_mean, self.channel_std = channel_statistics(train)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Hashable:
        super().plan(shape, rng)
        return int(rng.choice(self.lengths)) if self.lengths else ()

    def extent(self, plan: object) -> int:
        return plan if isinstance(plan, int) else 0

    def loss(self, batch: Batch, plan: object) -> Tensor:
        views = [self.distortion(batch.x, self.channel_mean, self.channel_std) for _ in range(2)]
        if isinstance(plan, int):
            views = [stretch(view, plan) for view in views]
        # Both views by one call of encoder and head: a pass of twice the cases costs less than two.
        z1, z2 = self.head(self.encoder.embed(torch.cat(views))).chunk(2)  # (B, D) each
        return view_contrast(z1, z2, self.temperature)
