"""SimMTM (NeurIPS 2023): rebuild a series from its masked copies and the other series, weighted by similarity."""

import warnings
from collections.abc import Hashable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.encoders import Encoder
from dicot.errors import InputError, lookup
from dicot.losses.series_similarity import aggregate, copies_contrast, cosine_similarity, log_weights
from dicot.losses.uncertainty_weighting import uncertainty_weighted
from dicot.methods.base import Batch, Method
from dicot.views.masking import mask_runs

WIDTH_HIDDEN, WIDTH_PROJECTION = 256, 128
TARGETS = {"originals": False, "stack": True}  # whether the masked rows are rebuilt too, with masked targets


class SimMTM(Method):
    """copies: masked copies of each series. ratio: share of masked values. run_length: mean length of a masked run.

    temperature: of the softmax over the other rows, in the contrast and in the weights alike.
    target: "originals", the unmasked series are rebuilt (the paper), or "stack", every row as it went in, the masked
    ones masked (the authors' classification code).
    """

    needs_time_steps: ClassVar[bool] = True
    summary: ClassVar[str] = "rebuild a series from masked copies and the other series, weighted by learned similarity"
    paper: ClassVar[str] = "SimMTM, A Simple Pre-Training Framework for Masked Time-Series Modeling, NeurIPS 2023"
    complexity: ClassVar[str] = (
        "one encoder pass over N = (copies + 1) B cases; loss O(N B T C) time, O(N T C + N^2) memory"
    )

    def __init__(
        self,
        encoder: Encoder,
        *,
        copies: int = 3,
        ratio: float = 0.5,
        run_length: float = 3,
        temperature: float = 0.2,
        target: str = "originals",
    ) -> None:
        super().__init__(encoder)
        if not isinstance(copies, int) or copies < 1:
            raise InputError(f"copies is a whole number of masked copies per series, at least 1; got {copies}.")
        if not 0 < ratio < 1:
            raise InputError(f"ratio is the share of masked values, 0 < ratio < 1; got {ratio}.")
        if not run_length >= 1:
            raise InputError(
                f"run_length is the mean length of a masked run in time steps, at least 1; got {run_length}."
            )
        if not temperature > 0:
            raise InputError(f"temperature must be above 0; got {temperature}.")
        if ratio > (highest := run_length / (run_length + 1)):
            warnings.warn(
                f"Masked runs of mean length {run_length} mask a share of {highest:.2f} at most; got ratio {ratio}. "
                "Lower ratio or raise run_length.",
                stacklevel=2,
            )
        lookup(TARGETS, target, "target")
        self.target = target
        self.copies, self.ratio, self.run_length, self.temperature = copies, ratio, run_length, temperature
        self.projector = nn.Sequential(
            nn.Linear(encoder.dim, WIDTH_HIDDEN),
            nn.BatchNorm1d(WIDTH_HIDDEN),
            nn.ReLU(),
            nn.Linear(WIDTH_HIDDEN, WIDTH_PROJECTION),
        )  # D-32
        self.decoder = nn.Conv1d(encoder.dim, encoder.n_channels, kernel_size=1)  # a Linear per time step
        self.loss_weights = nn.Parameter(torch.ones(2))

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        n_series = len(batch.x)
        copies = mask_runs(batch.x.repeat(self.copies, 1, 1), self.ratio, self.run_length)
        stack = torch.cat([batch.x, copies])  # (N, C, T)
        features: Tensor = self.encoder(stack)  # (N, F, T)
        similarity = cosine_similarity(self.projector(features.mean(dim=-1)))
        log_p = log_weights(similarity, self.temperature)  # (N, N)
        contrast = copies_contrast(log_p, n_series)

        target = stack if TARGETS[self.target] else batch.x  # D-67
        # The weights of a row sum to 1 and the decoder is affine, so decoding before aggregating gives the same as
        # after it, with C instead of F values per time step to add up and to keep for the gradient.
        decoded = F.linear(features.transpose(1, 2), self.decoder.weight[..., 0], self.decoder.bias).transpose(1, 2)
        rebuilt = aggregate(log_p[: len(target)].exp(), decoded)
        return uncertainty_weighted([contrast, F.mse_loss(rebuilt, target)], self.loss_weights)

    def param_groups(self) -> list[dict[str, Any]]:
        """Without weight decay on the loss weights: towards 0 it would make 1 / w^2 explode."""
        rest = [p for p in self.parameters() if p.requires_grad and p is not self.loss_weights]
        return [{"params": rest}, {"params": [self.loss_weights], "weight_decay": 0.0}]
