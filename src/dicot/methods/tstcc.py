"""TS-TCC (IJCAI 2021): the past of one view predicts the future of the other; contexts are contrasted in the batch."""

from typing import Annotated

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.methods.base import Batch, Method, Places, TrainingSet, noise_unit, room_for
from dicot.methods.settings import Count, Limit, NotNegative, Positive
from dicot.nets.encoders import Encoder
from dicot.nets.losses import nt_xent
from dicot.nets.views import jitter, permute, scale

HEADS = 4
DEPTH = 4
WIDTH_HIDDEN = 64  # of the feed-forward parts
DROPOUT = 0.1


def prediction_contrast(actual: Tensor, predicted: Tensor) -> Tensor:
    """Mean cross-entropy over K steps: what really followed must be told by its own prediction among the batch's.

    actual and predicted (K, B, F). Rows are the true features and columns the predictions of all cases; dot products
    without a temperature. 0 for B = 1.
    """
    log_p = (actual @ predicted.transpose(1, 2)).log_softmax(dim=-1)  # (K, B, B)
    return -log_p.diagonal(dim1=1, dim2=2).mean()


class ContextLayer(nn.Module):
    """A pre-norm transformer layer as the authors have it: no dropout on the attention, full-width scale."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attn_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attn_out = nn.Linear(width, width)
        self.ff_norm = nn.LayerNorm(width)
        self.ff_in = nn.Linear(width, WIDTH_HIDDEN)
        self.ff_out = nn.Linear(WIDTH_HIDDEN, width)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, seen: Tensor | None = None, n_read: int | None = None) -> Tensor:
        """(B, n, H) -> (B, n, H); tokens outside the boolean `seen` (1, n) are looked at by no other.

        With `n_read` only the first tokens are computed, (B, n_read, H): all that is read of the last layer.
        """
        q, k, v = self.qkv(self.attn_norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, x = q[:, :, :n_read], x[:, :n_read]
        # The scale is that of the full width, not of a head; the fused kernel never stores the n x n weights.
        mixed = F.scaled_dot_product_attention(q, k, v, seen, scale=x.shape[-1] ** -0.5)  # (B, heads, n, H / heads)
        x = x + self.drop(self.attn_out(mixed.transpose(1, 2).flatten(2)))
        y: Tensor = x + self.drop(self.ff_out(self.drop(torch.relu(self.ff_in(self.ff_norm(x))))))
        return y


class TemporalContrast(nn.Module):
    """A context of the past, H = `width` wide, predictions of K = `n_future` steps of `dim` features, and a head."""

    def __init__(self, dim: int, width: int, n_future: int, heads: int = HEADS, depth: int = DEPTH) -> None:
        super().__init__()
        self.embed = nn.Linear(dim, width)
        self.ctx_token = nn.Parameter(torch.randn(1, 1, width))
        self.layers = nn.ModuleList(ContextLayer(width, heads) for _ in range(depth))
        self.predictors = nn.ModuleList(nn.Linear(width, dim) for _ in range(n_future))
        self.proj_in = nn.Linear(width, dim // 2)
        self.proj_bn = nn.BatchNorm1d(dim // 2)
        self.proj_out = nn.Linear(dim // 2, dim // 4)

    def context(self, source: Tensor, t: int | Tensor) -> Tensor:
        """(B, F, T) -> (B, H): the last state of the context token, put in front of time steps 0 .. t; no positions.

        A tensor t is not known here: then all T are tokens, and those behind t are hidden from attention.
        """
        past = source[:, :, : t + 1] if isinstance(t, int) else source
        tokens = self.embed(past.transpose(1, 2))  # (B, n, H)
        x = torch.cat([self.ctx_token.expand(len(tokens), -1, -1), tokens], dim=1)
        seen = None if isinstance(t, int) else (torch.arange(x.shape[1], device=x.device) <= t + 1).unsqueeze(0)
        for layer in self.layers[:-1]:
            x = layer(x, seen)
        context: Tensor = self.layers[-1](x, seen, n_read=1)[:, 0]
        return context

    def project(self, context: Tensor) -> Tensor:
        """(B, H) -> (B, F / 4), what is contrasted across the batch."""
        q: Tensor = self.proj_out(torch.relu(self.proj_bn(self.proj_in(context))))
        return q

    def forward(self, source: Tensor, target: Tensor, t: int | Tensor) -> tuple[Tensor, Tensor]:
        """How badly the source's past 0 .. t predicts the target's next K steps (B, F, T); the context's projection."""
        context = self.context(source, t)
        predicted = torch.stack([predictor(context) for predictor in self.predictors])  # (K, B, F)
        future = t + 1 + torch.arange(len(self.predictors), device=target.device)
        actual = target.index_select(2, future).permute(2, 0, 1)  # (K, B, F)
        return prediction_contrast(actual, predicted), self.project(context)


class TSTCC(Method):
    """A weak view (scaled) and a strong one (segments shuffled, then noise), drawn anew at each step.

    future: time steps to predict, K; of cases shorter than 2 K, half the time steps.
    width: of the context, H; None takes the encoder's number of features.
    scale_mean, scale_std: of the weak view's factors, one per case and channel; per_step: one per case and time step
    instead, as in the authors' code. max_segments: the strong view has fewer segments than this.
    noise: in units of each channel's standard deviation in the training set; absolute_noise: in units of the data.
    """

    needs_negatives = True
    needs_time_steps = True
    summary = "predict the future of a distorted copy from the past of another; contrast the contexts"
    paper = "Time-Series Representation Learning via Temporal and Contextual Contrasting, IJCAI 2021"
    complexity = (
        "2 encoder passes and a transformer over T / 2 tokens on average, time O(B T^2 F), twice; memory O(B T F + B^2)"
    )

    contrast: TemporalContrast
    noise_unit: Tensor  # (C, 1)

    def __init__(
        self,
        encoder: Encoder,
        *,
        future: Count = 6,
        width: Annotated[int, Limit("a multiple of 4", lambda n: n >= 1 and n % HEADS == 0)] | None = None,
        scale_mean: float = 2.0,
        scale_std: NotNegative = 1.1,
        per_step: bool = False,
        max_segments: Annotated[int, Limit("a whole number, 2 or more", lambda n: n >= 2)] = 8,  # an open limit
        noise: NotNegative = 0.8,
        absolute_noise: bool = False,
        temperature: Positive = 0.2,
        temporal_weight: NotNegative = 1.0,
        contextual_weight: NotNegative = 0.7,
    ) -> None:
        super().__init__(encoder)
        if encoder.dim < HEADS or (width is None and encoder.dim % HEADS):
            raise InputError(f"TSTCC has {HEADS} heads; got dim={encoder.dim}. Use a multiple, or set width.")
        self.future, self.width = future, width
        self.scale_mean, self.scale_std, self.per_step = scale_mean, scale_std, per_step  # D-21
        self.max_segments, self.noise, self.absolute_noise = max_segments, noise, absolute_noise
        self.temperature = temperature
        self.temporal_weight, self.contextual_weight = temporal_weight, contextual_weight
        self.register_buffer("noise_unit", torch.ones(encoder.n_channels, 1))

    def prepare(self, train: TrainingSet) -> None:
        super().prepare(train)
        if train.n_times < 2:
            raise InputError("TSTCC predicts later time steps, so a case needs 2; got 1. Use longer windows.")
        self.noise_unit = noise_unit(train, self.absolute_noise)
        n_future = min(self.future, max(1, train.n_times // 2))  # so that a past is left
        self.contrast = TemporalContrast(self.encoder.dim, self.width or self.encoder.dim, n_future)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Places:
        """The last time step of the past, drawn for each of the two directions."""
        super().plan(shape, rng)
        first, second = rng.integers(shape[2] - len(self.contrast.predictors), size=2).tolist()
        return Places((first, second), room_for((first + 1, second + 1), shape[0], shape[2]))

    def loss(self, batch: Batch, plan: Places) -> Tensor:
        # On a GPU always as tensors: dropout then draws the same whether the step is a CUDA graph or not.
        first, second = torch.as_tensor(plan.at, device=batch.x.device) if batch.x.is_cuda else plan.at
        weak = scale(batch.x, self.scale_mean, self.scale_std, per_step=self.per_step)
        strong = jitter(permute(batch.x, self.max_segments), self.noise * self.noise_unit)  # D-25, D-66
        h1, h2 = (F.normalize(self.encoder(view), dim=1) for view in (weak, strong))  # (B, F, T)
        room1, room2 = plan.room or (None, None)
        forth, q1 = self.contrast(h1[..., :room1], h2, first)
        back, q2 = self.contrast(h2[..., :room2], h1, second)
        total: Tensor = self.temporal_weight * (forth + back)
        return total + self.contextual_weight * nt_xent(q1, q2, self.temperature)
