"""TS2Vec (AAAI 2022): the same time step seen through two crops, against other steps and other cases."""

import numpy as np
from torch import Tensor

from dicot.methods.base import AveragedEncoder, Batch, Method, Places, TrainingSet
from dicot.methods.cropping import Crops, check_cases, encode_crops, plan_crops
from dicot.methods.settings import Count, CountFromZero, Share, ShareBelowOne
from dicot.nets.encoders import Encoder
from dicot.nets.hierarchy import hierarchical_contrast


class TS2Vec(Method):
    """The authors' views and loss around the shared encoder.

    alpha: share of the instance loss, the rest is the temporal one.
    temporal_unit: pooling depth at which the temporal loss begins; the overlap has at least 2 ** (temporal_unit + 1)
    steps. mask: share of time steps hidden in training. dropout: on the features in training.
    max_train_length: of longer cases a random window of this length is seen at each step.
    average_weights: evaluate the average of the encoders of all steps instead of the last one (D-12).

    Around an encoder that takes a length (InceptionTime) a CUDA graph serves crops of many lengths; around another,
    steps run op by op on a GPU too, because every length is another program.
    """

    needs_time_steps = True
    summary = "find the same time step in another crop among other steps and among other cases"
    paper = "TS2Vec: Towards Universal Representation of Time Series, AAAI 2022"
    complexity = (
        "two passes over crops of 0.63 T steps on average; loss O((l B^2 + B l^2) F) for an overlap of l steps, "
        "its memory O(l B^2 + B l^2) bounded by chunks; a CUDA graph rounds both up, to T or in large steps to T / 4"
    )

    def __init__(
        self,
        encoder: Encoder,
        *,
        alpha: Share = 0.5,
        temporal_unit: CountFromZero = 0,
        mask: ShareBelowOne = 0.5,
        dropout: ShareBelowOne = 0.1,
        max_train_length: Count = 3000,
        average_weights: bool = True,
    ) -> None:
        super().__init__(encoder)
        self.alpha, self.mask, self.dropout = alpha, mask, dropout
        self.temporal_unit, self.max_train_length = temporal_unit, max_train_length
        self.average_weights = average_weights
        self.average = AveragedEncoder(encoder) if average_weights else None

    def prepare(self, train: TrainingSet) -> None:
        check_cases(train.n_times, self.temporal_unit, self.max_train_length)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Crops | Places:
        return plan_crops(self.encoder, shape, rng.integers, self.temporal_unit, self.max_train_length)

    def loss(self, batch: Batch, plan: Crops | Places) -> Tensor:
        z1, z2, length = encode_crops(self.encoder, batch.x, plan, self.max_train_length, self.mask, self.dropout)
        return hierarchical_contrast(z1, z2, alpha=self.alpha, temporal_unit=self.temporal_unit, length=length)
