"""TS-TCC (IJCAI 2021): the past of one view predicts the future of the other; contexts are contrasted in the batch."""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.encoders import Encoder
from dicot.errors import InputError
from dicot.losses.nt_xent import nt_xent
from dicot.methods.base import Batch, Method, Places, TrainingSet
from dicot.methods.negatives import require_negatives
from dicot.methods.noise import noise_unit
from dicot.methods.temporal_contrast import HEADS, TemporalContrast
from dicot.views.augmentation import jitter, permute, scale


class TSTCC(Method):
    """A weak view (scaled) and a strong one (segments shuffled, then noise), drawn anew at each step.

    future: time steps to predict, K; of cases shorter than 2 K, half the time steps.
    width: of the context, H; None takes the encoder's number of features.
    scale_mean, scale_std: of the weak view's factors, one per case and channel; per_step: one per case and time step
    instead, as in the authors' code. max_segments: the strong view has fewer segments than this.
    noise: in units of each channel's standard deviation in the training set; absolute_noise: in units of the data.
    """

    needs_time_steps: ClassVar[bool] = True
    summary: ClassVar[str] = "predict the future of a distorted copy from the past of another; contrast the contexts"
    paper: ClassVar[str] = "Time-Series Representation Learning via Temporal and Contextual Contrasting, IJCAI 2021"
    complexity: ClassVar[str] = (
        "2 encoder passes and a transformer over T / 2 tokens on average, time O(B T^2 F), twice; memory O(B T F + B^2)"
    )

    contrast: TemporalContrast
    noise_unit: Tensor  # (C, 1)

    def __init__(
        self,
        encoder: Encoder,
        *,
        future: int = 6,
        width: int | None = None,
        scale_mean: float = 2.0,
        scale_std: float = 1.1,
        per_step: bool = False,
        max_segments: int = 8,
        noise: float = 0.8,
        absolute_noise: bool = False,
        temperature: float = 0.2,
        temporal_weight: float = 1.0,
        contextual_weight: float = 0.7,
    ) -> None:
        super().__init__(encoder)
        context = encoder.dim if width is None else width
        for holds, problem in (
            (future >= 1, f"future must be 1 or more time steps; got {future}"),
            (encoder.dim >= 4, f"TSTCC's head needs an encoder of 4 or more features; got dim={encoder.dim}"),
            (context >= 1 and context % HEADS == 0, f"width is shared by {HEADS} heads; got {context}. Set a multiple"),
            (scale_std >= 0, f"scale_std must be 0 or more; got {scale_std}"),
            (max_segments >= 2, f"max_segments is an open limit, so 2 or more; got {max_segments}"),
            (noise >= 0, f"noise must be 0 or more; got {noise}"),
            (temperature > 0, f"temperature must be above 0; got {temperature}"),
            (temporal_weight >= 0, f"temporal_weight must be 0 or more; got {temporal_weight}"),
            (contextual_weight >= 0, f"contextual_weight must be 0 or more; got {contextual_weight}"),
        ):
            if not holds:
                raise InputError(f"{problem}.")
        self.future, self.width = future, width
        self.scale_mean, self.scale_std, self.per_step = scale_mean, scale_std, per_step  # D-21
        self.max_segments, self.noise, self.absolute_noise = max_segments, noise, absolute_noise
        self.temperature = temperature
        self.temporal_weight, self.contextual_weight = temporal_weight, contextual_weight
        self.register_buffer("noise_unit", torch.ones(encoder.n_channels, 1))

    def prepare(self, train: TrainingSet) -> None:
        require_negatives(len(train), "TSTCC", what="training set")
        if train.n_times < 2:
            raise InputError("TSTCC predicts later time steps, so a case needs 2; got 1. Use longer windows.")
        self.noise_unit = noise_unit(train, self.absolute_noise)
        n_future = future_steps(train.n_times, self.future)
        width = self.encoder.dim if self.width is None else self.width
        self.contrast = TemporalContrast(self.encoder.dim, width, n_future)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Places:
        """The last time step of the past, drawn for each of the two directions."""
        require_negatives(shape[0], "TSTCC", what="batch")
        first, second = rng.integers(shape[2] - len(self.contrast.predictors), size=2).tolist()
        return Places((first, second))

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        assert isinstance(plan, Places)
        # On a GPU always as tensors: dropout then draws the same whether the step is recorded or not.
        first, second = torch.as_tensor(plan.at, device=batch.x.device) if batch.x.is_cuda else plan.at
        weak = scale(batch.x, self.scale_mean, self.scale_std, per_step=self.per_step)
        strong = jitter(permute(batch.x, self.max_segments), self.noise * self.noise_unit)  # D-25, D-66
        h1, h2 = (F.normalize(self.encoder(view), dim=1) for view in (weak, strong))  # (B, F, T)
        forth, q1 = self.contrast(h1, h2, first)
        back, q2 = self.contrast(h2, h1, second)
        total: Tensor = self.temporal_weight * (forth + back)
        return total + self.contextual_weight * nt_xent(q1, q2, self.temperature)


def future_steps(n_times: int, future: int) -> int:
    """How many time steps are predicted: half a case at most, so that a past is left."""
    return future if n_times >= 2 * future else max(1, n_times // 2)
