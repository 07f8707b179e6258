"""CoST, Contrastive Learning of Disentangled Seasonal-Trend Representations (ICLR 2022)."""

import copy
from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from dicot.encoders import Encoder
from dicot.errors import InputError
from dicot.losses.frequency import frequency_contrast
from dicot.losses.momentum_contrast import enqueued, queue_contrast, unit
from dicot.methods.base import Batch, Method, Places, TrainingSet
from dicot.methods.trend_season import SeasonHead, TrendHead
from dicot.views.distortion import distort


class CoST(Method):
    """Trend by momentum contrast at one time step, season by instance contrast of amplitudes and phases.

    alpha: weight of the season part. queue_size, momentum, temperature: of the trend part.
    kernels: of the trend's causal convolutions; they may be longer than the cases. dropout: behind the season head.
    sigma, probability: strength of scaling, shift and jitter, and the chance of each.
    max_length: longer cases are cut, anew at each step, to one window of this many time steps; the season head holds
    about 8 F^2 / 2 (T / 2 + 1) bytes of weights, and the optimiser twice as much beside.
    What is evaluated is the encoder itself; the heads serve training only.
    """

    needs_time_steps: ClassVar[bool] = True
    summary: ClassVar[str] = "trend against a queue of earlier keys, season by amplitude and phase of its frequencies"
    paper: ClassVar[str] = "CoST: Contrastive Learning of Disentangled Seasonal-Trend Representations, ICLR 2022"
    complexity: ClassVar[str] = (
        "three encoder passes; loss O(B^2 T F), memory O(B^2 T) and O(T F^2) for the season's weights"
    )

    queue: Tensor  # (D, K) unit columns
    pointer: Tensor  # () the column that the next key takes
    season: SeasonHead

    def __init__(
        self,
        encoder: Encoder,
        *,
        alpha: float = 0.0005,  # D-28
        queue_size: int = 256,
        momentum: float = 0.999,
        temperature: float = 0.07,
        kernels: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128),
        sigma: float = 0.5,
        probability: float = 0.5,
        dropout: float = 0.1,
        max_length: int = 3000,
    ) -> None:
        super().__init__(encoder)
        _check(alpha >= 0, "alpha must be 0 or above", alpha)
        _check(queue_size >= 1, "queue_size must be 1 or above", queue_size)
        _check(0 <= momentum <= 1, "momentum is a share, 0 <= momentum <= 1", momentum)
        _check(temperature > 0, "temperature must be above 0", temperature)
        _check(len(kernels) > 0 and min(kernels) >= 1, "kernels must be one or more lengths of 1 or above", kernels)
        _check(sigma >= 0, "sigma must be 0 or above", sigma)
        _check(0 <= probability <= 1, "probability must be from 0 to 1", probability)
        _check(0 <= dropout < 1, "dropout is a share, 0 <= dropout < 1", dropout)
        _check(max_length >= 1, "max_length must be 1 or above", max_length)
        _check(encoder.dim >= 2, "CoST needs an encoder with dim >= 2, half for trend and half for season", encoder.dim)
        self.alpha, self.queue_size, self.momentum, self.temperature = alpha, queue_size, momentum, temperature
        self.kernels, self.sigma, self.probability, self.dropout = tuple(kernels), sigma, probability, dropout
        self.max_length = max_length
        half = encoder.dim // 2
        self.trend = TrendHead(encoder.dim, half, self.kernels)
        self.projection = nn.Sequential(nn.Linear(half, half), nn.ReLU(), nn.Linear(half, half))

    def prepare(self, train: TrainingSet) -> None:
        """Build what depends on T (the season head) and the state of a run: the key network's copies and the queue."""
        like = next(self.encoder.parameters())
        half = self.encoder.dim // 2
        season = SeasonHead(self.encoder.dim, half, min(train.n_times, self.max_length), self.dropout)
        self.season = season.to(like.device, like.dtype)
        # The season of the key network is read by no loss: the original's copy of that head is left out.
        self.key_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.key_trend = copy.deepcopy(self.trend).requires_grad_(False)
        self.key_projection = copy.deepcopy(self.projection).requires_grad_(False)
        directions = unit(torch.randn(self.queue_size, half)).T.contiguous()
        self.register_buffer("queue", directions.to(like.device, like.dtype))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.long, device=like.device))

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Places:
        """Where the window of the cases begins, and the time step in it that the trend is read at."""
        length = min(shape[2], self.max_length)
        return Places((int(rng.integers(shape[2] - length + 1)), int(rng.integers(length))))

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        assert isinstance(plan, Places)
        start, t = plan.at
        x = batch.x
        if x.shape[2] > self.max_length:
            x = x.index_select(2, start + torch.arange(self.max_length, device=x.device))
        view_q, view_k = (distort(x, self.sigma, self.probability) for _ in range(2))  # D-27
        h = self.encoder(view_q)  # D-26: nothing stands between input and encoder
        q = unit(self.projection(self.trend.at(h, t)))
        k = self._keys(view_k, t)
        # The backward pass still needs the queue that the loss saw, and below it is overwritten.
        time = queue_contrast(q, k, self.queue.clone(), self.temperature)
        amplitude, phase = frequency_contrast(self.season(h), self.season(self.encoder(view_k)))
        self._enqueue(k)
        return time + self.alpha * (amplitude + phase) / 2

    @torch.no_grad()
    def _keys(self, view: Tensor, t: int | Tensor) -> Tensor:
        """Let the key network follow the trained one, then encode with it: (B, C, T) -> (B, D) unit vectors.

        Parameters only: the key network's BatchNorm has statistics of its own, from its own passes in train mode.
        """
        # theta_k <- m theta_k + (1 - m) theta_q
        follow = get_ema_multi_avg_fn(self.momentum)  # type: ignore[no-untyped-call]
        follow(list(self._key_parameters()), list(self._query_parameters()), None)
        return unit(self.key_projection(self.key_trend.at(self.key_encoder(view), t)))

    @torch.no_grad()
    def _enqueue(self, keys: Tensor) -> None:
        queue, pointer = enqueued(self.queue, self.pointer, keys)
        self.queue.copy_(queue)
        self.pointer.copy_(pointer)

    def _query_parameters(self) -> Iterator[nn.Parameter]:
        for part in (self.encoder, self.trend, self.projection):
            yield from part.parameters()

    def _key_parameters(self) -> Iterator[nn.Parameter]:
        for part in (self.key_encoder, self.key_trend, self.key_projection):
            yield from part.parameters()


def _check(holds: bool, expected: str, got: object) -> None:
    if not holds:
        raise InputError(f"{expected}; got {got}.")
