"""Soft (SoftCLT on TS2Vec, ICLR 2024): graded positives by the likeness of cases and the nearness in time."""

import math
from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from torch import Tensor

from dicot.encoders import Encoder
from dicot.errors import InputError
from dicot.losses.soft import soft_hierarchical_contrast
from dicot.methods.averaging import AveragedEncoder
from dicot.methods.base import Batch, Method, TrainingSet
from dicot.methods.cropping import check_cases, check_crop_lengths, check_share, encode_crops
from dicot.methods.similarity import CaseSimilarity, sharpen
from dicot.views.crops import Crops, draw_crops


class Soft(Method):
    """TS2Vec's views with SoftCLT's loss.

    tau_inst: how fast the weight of another case falls with its cosine distance; 0 takes TS2Vec's instance loss.
    tau_temp: how fast the weight of another time step falls with the lag; 0 takes TS2Vec's temporal loss.
    alpha: largest weight of another case. lambda_: share of the instance loss.
    temporal_unit, mask, dropout, max_train_length, average_weights: see TS2Vec.
    """

    needs_time_steps: ClassVar[bool] = True
    summary: ClassVar[str] = "TS2Vec with graded positives: alike cases and near time steps count in part"
    paper: ClassVar[str] = "Soft Contrastive Learning for Time Series, ICLR 2024"
    complexity: ClassVar[str] = (
        "as TS2Vec, and before training one pass over all pairs of cases, time O(N^2 C T) (above 50,000 cases "
        "4096 N C T), memory O(N)"
    )

    def __init__(
        self,
        encoder: Encoder,
        *,
        tau_inst: float = 10.0,
        tau_temp: float = 1.0,
        alpha: float = 0.5,
        lambda_: float = 0.5,
        temporal_unit: int = 0,
        mask: float = 0.5,
        dropout: float = 0.1,
        max_train_length: int = 3000,
        average_weights: bool = True,
    ) -> None:
        super().__init__(encoder)
        check_crop_lengths(temporal_unit, max_train_length)
        for name, tau in (("tau_inst", tau_inst), ("tau_temp", tau_temp)):
            if not 0 <= tau < math.inf:
                raise InputError(f"{name} must be 0 (hard loss) or above, and finite; got {tau}.")
        self.tau_inst, self.tau_temp = tau_inst, tau_temp
        self.alpha = check_share("alpha", alpha)
        self.lambda_ = check_share("lambda_", lambda_)
        self.mask = check_share("mask", mask, below=True)
        self.dropout = check_share("dropout", dropout, below=True)
        self.temporal_unit, self.max_train_length = temporal_unit, max_train_length
        self.average_weights = average_weights
        self.average = AveragedEncoder(encoder) if average_weights else None
        self.similarity = CaseSimilarity() if tau_inst > 0 else None

    def prepare(self, train: TrainingSet) -> None:
        check_cases(train, self.temporal_unit)
        if self.similarity is not None:
            self.similarity.fit(train.x)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Crops:
        return draw_crops(shape[2], rng.integers, temporal_unit=self.temporal_unit, longest=self.max_train_length)

    def extent(self, plan: Hashable) -> int:
        assert isinstance(plan, Crops)
        return plan.extent

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        assert isinstance(plan, Crops)
        z1, z2 = encode_crops(self.encoder, batch.x, plan, mask=self.mask, dropout=self.dropout)
        weights = None
        if self.similarity is not None:
            weights = sharpen(self.similarity(batch.x, batch.index), self.tau_inst, self.alpha)  # D-13
        return soft_hierarchical_contrast(
            z1, z2, weights, tau_temp=self.tau_temp, lambda_=self.lambda_, temporal_unit=self.temporal_unit
        )

    def after_step(self, batch: Batch, progress: float) -> None:
        if self.average is not None:
            self.average.update(self.encoder)

    def trained_encoder(self) -> Encoder:
        return self.encoder if self.average is None else self.average.encoder
