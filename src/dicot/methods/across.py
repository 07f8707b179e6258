"""Across: divide and contrast across cases. Two distorted views of a case must be found among those of all cases."""

from collections.abc import Hashable, Sequence
from dataclasses import asdict
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.methods.base import Batch, Method, TrainingSet
from dicot.methods.negatives import require_negatives
from dicot.methods.noise import channel_statistics
from dicot.nets.encoders import Encoder
from dicot.nets.losses.queue import enqueued, unit
from dicot.nets.losses.vicreg import vicreg
from dicot.nets.losses.view_contrast import view_contrast
from dicot.nets.views.blocks import Blocks, block_layout, cut_blocks, k_range
from dicot.nets.views.distortions import Distortion, check_axes


class Across(Method):
    """Three objectives on two views of every case, each with a weight; one of weight 0 is not computed.

    whole: each case finds its other view among all cases of the batch, by the mean embedding through a head.
    cross: each sub-block finds the next one, in the other view, among all sub-blocks of the batch.
    vic: the even sub-blocks of one view agree in the mean with the odd ones of the other; no negatives.

    temperature: of `whole` and `cross`. k, overlap: of the sub-blocks, as Di-COT draws them.
    queue: how many keys of earlier steps are further candidates for `whole`, where the batch is small; 0 keeps none.
    A case's own earlier keys do not count: in a small training set it comes again before the queue has forgotten it.
    width: of the output of the head, which serves training only; 0 for no head.
    noise, scale, offset, mask, crop, channel_drop, frequency, warp, rotation: see `nets.views.distortions`.
    centred: scaling and dropped channels go by the mean of the channel in the training set; else by 0.
    """

    summary: ClassVar[str] = "find the other distorted view of a case among all cases of the batch"
    paper: ClassVar[str] = "none: this library's own, after SimCLR (ICML 2020), MoCo (CVPR 2020), VICReg (ICLR 2022)"
    complexity: ClassVar[str] = (
        "an encoder pass of 2 T per case; loss O(B (B + queue) F). With sub-blocks 2.6 T to 3.6 T more, O(B^2 k^2 F)"
    )

    channel_mean: Tensor  # (C, 1)
    channel_std: Tensor  # (C, 1)
    keys: Tensor  # (D, K) unit columns
    key_rows: Tensor  # (1, K) the case that each key is of; -1 where there is none yet
    pointer: Tensor  # () the column that the next key takes

    def __init__(
        self,
        encoder: Encoder,
        *,
        whole: float = 1.0,
        cross: float = 0.0,
        vic: float = 0.0,
        temperature: float = 0.2,
        k: int | Sequence[int] = (2, 10),
        overlap: float = 0.5,
        queue: int = 0,
        width: int = 128,
        noise: float = Distortion.noise,
        scale: float = Distortion.scale,
        offset: float = Distortion.offset,
        mask: float | Sequence[float] = Distortion.mask,
        crop: float = Distortion.crop,
        channel_drop: float = Distortion.channel_drop,
        frequency: float = Distortion.frequency,
        warp: float = Distortion.warp,
        rotation: float = Distortion.rotation,
        centred: bool = True,
    ) -> None:
        super().__init__(encoder)
        weights = (whole, cross, vic)
        for holds, problem in (
            (min(weights) >= 0, f"whole, cross and vic are weights of 0 or more; got {weights}"),
            (max(weights) > 0, "whole, cross and vic are all 0; give one of them a weight"),
            (temperature > 0, f"temperature must be above 0; got {temperature}"),
            (0 <= overlap < 1, f"overlap is a share of a block, 0 <= overlap < 1; got {overlap}"),
            (queue >= 0, f"queue must be 0 or more keys; got {queue}"),
            (
                not queue or whole > 0,
                f"queue serves the objective `whole`, whose weight is 0; got {queue}. Set it to 0",
            ),
            (width >= 0, f"width must be 0 or more; got {width}"),
        ):
            if not holds:
                raise InputError(f"{problem}.")
        self.whole, self.cross, self.vic = whole, cross, vic
        self.temperature, self.queue, self.width, self.centred = temperature, queue, width, centred
        self.k, self.k_range, self.overlap = k if isinstance(k, int) else tuple(k), k_range(k), overlap
        self.distortion = Distortion(noise, scale, offset, mask, crop, channel_drop, frequency, warp, rotation)
        if rotation:
            check_axes(encoder.n_channels)
        for name, value in asdict(self.distortion).items():
            setattr(self, name, value)  # settings are attributes of their own names
        dim = encoder.dim
        self.head = (
            nn.Sequential(nn.Linear(dim, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, width))
            if width
            else nn.Identity()
        )
        self.register_buffer("channel_mean", torch.zeros(encoder.n_channels, 1))
        self.register_buffer("channel_std", torch.ones(encoder.n_channels, 1))

    @property
    def divides(self) -> bool:
        """Whether an objective on sub-blocks is on."""
        return self.cross > 0 or self.vic > 0

    def prepare(self, train: TrainingSet) -> None:
        require_negatives(len(train), "Across", what="training set")
        if self.divides and train.n_times < 2:
            raise InputError(
                f"The cases have {train.n_times} time step; sub-blocks (cross, vic) need 2. Use longer windows, or set "
                "cross=0 and vic=0."
            )
        mean, self.channel_std = channel_statistics(train)
        self.channel_mean = mean if self.centred else torch.zeros_like(mean)
        if self.queue:
            like = next(self.encoder.parameters())
            self.register_buffer("keys", like.new_zeros(self.width or self.encoder.dim, self.queue))
            self.register_buffer("key_rows", torch.full((1, self.queue), -1, device=like.device))
            self.register_buffer("pointer", torch.zeros((), dtype=torch.long, device=like.device))

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Hashable:
        """Where the sub-blocks lie, in the same places for both views; () without an objective on them."""
        require_negatives(shape[0], "Across", what="batch")
        if not self.divides:
            return ()
        k = int(rng.integers(self.k_range[0], self.k_range[1] + 1))
        # The paper's rounding may leave a single block, which has neither a next one nor an odd one.
        return block_layout(shape[2], k, self.overlap, "exact")

    def extent(self, plan: Hashable) -> int:
        return len(plan) * plan.length if isinstance(plan, Blocks) else 0

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        views = [self.distortion(batch.x, self.channel_mean, self.channel_std) for _ in range(2)]
        terms = []
        if self.whole:
            z1, z2 = self._project(views)
            terms.append(self.whole * self._whole(z1, z2, batch.index))
        if isinstance(plan, Blocks):
            blocks = [cut_blocks(view, plan) for view in views]  # (B, k, C, L) each
            projected = self._project([part.flatten(0, 1) for part in blocks])
            b1, b2 = (z.view(len(batch.x), len(plan), -1) for z in projected)  # (B, k, D)
            if self.cross:
                now, then = b1[:, :-1].flatten(0, 1), b2[:, 1:].flatten(0, 1)
                terms.append(self.cross * view_contrast(now, then, self.temperature))
            if self.vic:
                terms.append(self.vic * vicreg(b1[:, 0::2].mean(dim=1), b2[:, 1::2].mean(dim=1)))
        return torch.stack(terms).sum()

    def _project(self, views: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Two views (B, C, T) -> (B, D) each, by one call of encoder and head: a pass of twice the cases costs less."""
        z: Tensor = self.head(self.encoder.embed(torch.cat(views)))
        first, second = z.chunk(2)
        return first, second

    def _whole(self, z1: Tensor, z2: Tensor, rows: Tensor) -> Tensor:
        """The contrast of whole cases, whose rows in the training set are given; then their keys enter the queue."""
        if not self.queue:
            return view_contrast(z1, z2, self.temperature)
        # A case is not told apart from its own earlier keys, nor from what the queue does not hold yet.
        barred = (self.key_rows == rows.unsqueeze(1)) | (self.key_rows < 0)  # (B, K)
        # The backward pass still needs the queue that the loss saw, and below it is overwritten.
        loss = view_contrast(z1, z2, self.temperature, self.keys.clone(), barred)
        with torch.no_grad():
            keys, pointer = enqueued(self.keys, self.pointer, unit(z2))
            self.key_rows.copy_(enqueued(self.key_rows, self.pointer, rows.unsqueeze(1))[0])
            self.keys.copy_(keys)
            self.pointer.copy_(pointer)
        return loss
