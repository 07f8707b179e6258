"""TS2Vec (AAAI 2022): the same time step seen through two crops, against other steps and other cases."""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from torch import Tensor

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
from dicot.nets.losses.contrast import hierarchical_contrast
from dicot.nets.losses.padded import padded_hierarchical_contrast


class TS2Vec(Method):
    """The authors' views and loss around the shared encoder.

    alpha: share of the instance loss, the rest is the temporal one.
    temporal_unit: pooling depth at which the temporal loss begins; the overlap has at least 2 ** (temporal_unit + 1)
    steps. mask: share of time steps hidden in training. dropout: on the features in training.
    max_train_length: of longer cases a random window of this length is seen at each step.
    average_weights: evaluate the average of the encoders of all steps instead of the last one (D-12).

    Around an encoder that takes a length (InceptionTime) one CUDA graph serves crops of all lengths; around another,
    steps run op by op on a GPU too, because every length is another program.
    """

    needs_time_steps: ClassVar[bool] = True
    summary: ClassVar[str] = "find the same time step in another crop among other steps and among other cases"
    paper: ClassVar[str] = "TS2Vec: Towards Universal Representation of Time Series, AAAI 2022"
    complexity: ClassVar[str] = (
        "two passes over crops of 0.63 T steps on average; loss O((l B^2 + B l^2) F) for an overlap of l steps, "
        "its memory O(l B^2 + B l^2) bounded by chunks; in a CUDA graph T steps and l = T"
    )

    def __init__(
        self,
        encoder: Encoder,
        *,
        alpha: float = 0.5,
        temporal_unit: int = 0,
        mask: float = 0.5,
        dropout: float = 0.1,
        max_train_length: int = 3000,
        average_weights: bool = True,
    ) -> None:
        super().__init__(encoder)
        check_crop_lengths(temporal_unit, max_train_length)
        self.alpha = check_share("alpha", alpha)
        self.mask = check_share("mask", mask, below=True)
        self.dropout = check_share("dropout", dropout, below=True)
        self.temporal_unit, self.max_train_length = temporal_unit, max_train_length
        self.average_weights = average_weights
        self.average = AveragedEncoder(encoder) if average_weights else None

    def prepare(self, train: TrainingSet) -> None:
        check_cases(train, self.temporal_unit)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Crops | Places:
        return plan_crops(self.encoder, shape[2], rng.integers, self.temporal_unit, self.max_train_length)

    def extent(self, plan: Hashable) -> int:
        return plan.extent if isinstance(plan, Crops) else 0  # a plan of places does not change shapes

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        crops = crops_of(plan, batch.x.shape[2], self.max_train_length)
        z1, z2 = encode_crops(self.encoder, batch.x, crops, mask=self.mask, dropout=self.dropout)
        if crops.on_device:
            return padded_hierarchical_contrast(
                z1, z2, crops.overlap, alpha=self.alpha, temporal_unit=self.temporal_unit
            )
        return hierarchical_contrast(z1, z2, alpha=self.alpha, temporal_unit=self.temporal_unit)

    def after_step(self, batch: Batch, progress: float) -> None:
        if self.average is not None:
            self.average.update(self.encoder)

    def trained_encoder(self) -> Encoder:
        return self.encoder if self.average is None else self.average.encoder
