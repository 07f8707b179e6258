"""CoST, Contrastive Learning of Disentangled Seasonal-Trend Representations (ICLR 2022)."""

import copy
import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from dicot.core.errors import InputError
from dicot.methods.base import Batch, Method, Places, TrainingSet
from dicot.methods.settings import Count, NotNegative, Positive, Share, ShareBelowOne
from dicot.nets.encoders import Encoder
from dicot.nets.hierarchy import paired_contrast
from dicot.nets.views import jitter, scale, shift

SHIFT = 1e-6  # keeps root and angle differentiable where a coefficient is zero


def distort(x: Tensor, sigma: float = 0.5, probability: float = 0.5) -> Tensor:
    """Scale, then shift, then jitter x (B, C, T); each case draws for itself whether and how, on its device."""

    def strength() -> Tensor:
        """(B, 1, 1): sigma for the cases that a change is applied to, else 0."""
        return sigma * (torch.rand(len(x), 1, 1, device=x.device) < probability).to(x.dtype)

    x = scale(x, 1.0, strength())
    x = shift(x, strength())
    return jitter(x, strength())


def spectrum(s: Tensor) -> tuple[Tensor, Tensor]:
    """Features (B, D, T) -> amplitude and phase (B, T // 2 + 1, D) of the features scaled to length 1 per time step.

    The shifts are the original's: on both parts for the amplitude, on the real part alone for the phase.
    """
    c = torch.fft.rfft(F.normalize(s, dim=1), dim=2).transpose(1, 2)
    amplitude = torch.sqrt((c.real + SHIFT) ** 2 + (c.imag + SHIFT) ** 2)
    return amplitude, torch.atan2(c.imag, c.real + SHIFT)


def frequency_contrast(s1: Tensor, s2: Tensor) -> tuple[Tensor, Tensor]:
    """Losses on amplitudes and on phases of (B, D, T): at every frequency tell the series apart; 0 for B = 1."""
    pairs = zip(spectrum(s1), spectrum(s2), strict=True)
    amplitude, phase = (paired_contrast(one.transpose(0, 1), other.transpose(0, 1)) for one, other in pairs)
    return amplitude, phase


def queue_contrast(q: Tensor, k: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """MoCo: unit queries q (B, D) must pick their own keys k (B, D) among earlier ones, in the queue (D, K)."""
    logits = torch.cat([(q * k).sum(dim=1, keepdim=True), q @ queue], dim=1) / temperature  # (B, 1 + K)
    return -logits.log_softmax(dim=1)[:, 0].mean()


def enqueued(queue: Tensor, pointer: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """The queue (D, K) with the keys (B, D) written from column `pointer` on, and the pointer behind the last one.

    Columns are a ring; K need not be a multiple of B, as the original asserts. Of B > K keys the last K stay.
    """
    n_keys, size = len(keys), queue.shape[1]
    latest = keys[-size:]
    columns = pointer + n_keys - len(latest) + torch.arange(len(latest), device=queue.device)
    return queue.index_copy(1, columns % size, latest.T.to(queue.dtype)), (pointer + n_keys) % size


class TrendHead(nn.Module):
    """The mean of causal convolutions with several kernels at one time step: a matrix product for each."""

    def __init__(self, dim: int, out_dim: int, kernels: Sequence[int]) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(dim, out_dim, kernel) for kernel in kernels)
        self.reach = max(kernels)

    def forward(self, h: Tensor, t: int | Tensor) -> Tensor:
        """(B, F, T) -> (B, D), the trend at time step t; a shorter kernel starts later."""
        seen = F.pad(h, (self.reach - 1, 0)).index_select(2, t + torch.arange(self.reach, device=h.device))
        pairs = (one.parameters() for one in self.convolutions)  # a weight (D, F, kernel) and a bias (D,)
        return torch.stack([F.linear(seen[..., -w.shape[2] :].flatten(1), w.flatten(1), b) for w, b in pairs]).mean(0)


class SeasonHead(nn.Module):
    """A complex affine map per frequency: (B, F, T) -> (B, D, T), for cases of `n_times` time steps only.

    Real and imaginary parts are parameters of their own: files and dtype casts know real numbers. The weights take
    about 8 F D (T / 2 + 1) bytes in float32.
    """

    def __init__(self, dim: int, out_dim: int, n_times: int, dropout: float) -> None:
        super().__init__()
        n_bins = n_times // 2 + 1
        self.n_times, self.dropout = n_times, dropout
        self.weight_real, self.weight_imag = (nn.Parameter(torch.empty(n_bins, dim, out_dim)) for _ in range(2))
        self.bias_real, self.bias_imag = (nn.Parameter(torch.empty(n_bins, 1, out_dim)) for _ in range(2))
        # The original's Kaiming-uniform with a = sqrt(5) counts F D inputs for a weight of this shape.
        bound = 1 / math.sqrt(dim * out_dim)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, h: Tensor) -> Tensor:
        c = torch.fft.rfft(h, dim=2).permute(2, 0, 1)  # (n_bins, B, F)
        # (a + bi)(c + di) in real products, so that no complex copy of the weights is made and each is read once
        parts = torch.cat([c.real, c.imag], dim=1)
        (rr, ir), (ri, ii) = ((parts @ w).chunk(2, dim=1) for w in (self.weight_real, self.weight_imag))
        real, imag = self.bias_real + rr - ii, self.bias_imag + ri + ir
        season = torch.fft.irfft(torch.complex(real, imag).permute(1, 2, 0), n=self.n_times, dim=2)
        return F.dropout(season, self.dropout, self.training)


class CoST(Method):
    """Trend by momentum contrast at one time step, season by instance contrast of amplitudes and phases.

    alpha: weight of the season part. queue_size, momentum, temperature: of the trend part.
    kernels: of the trend's causal convolutions; they may be longer than the cases. dropout: behind the season head.
    sigma, probability: strength of scaling, shift and jitter, and the chance of each.
    max_length: longer cases are cut, anew at each step, to one window of this many time steps; the season head holds
    about 8 F^2 / 2 (T / 2 + 1) bytes of weights, and the optimiser twice as much beside.
    What is evaluated is the encoder itself; the heads serve training only.
    """

    needs_time_steps = True
    summary = "trend against a queue of earlier keys, season by amplitude and phase of its frequencies"
    paper = "CoST: Contrastive Learning of Disentangled Seasonal-Trend Representations, ICLR 2022"
    complexity = "three encoder passes; loss O(B^2 T F), memory O(B^2 T) and O(T F^2) for the season's weights"

    queue: Tensor  # (D, K) unit columns
    pointer: Tensor  # () the column that the next key takes
    season: SeasonHead

    def __init__(
        self,
        encoder: Encoder,
        *,
        alpha: NotNegative = 0.0005,  # D-28
        queue_size: Count = 256,
        momentum: Share = 0.999,
        temperature: Positive = 0.07,
        kernels: Sequence[Count] = (1, 2, 4, 8, 16, 32, 64, 128),
        sigma: NotNegative = 0.5,
        probability: Share = 0.5,
        dropout: ShareBelowOne = 0.1,
        max_length: Count = 3000,
    ) -> None:
        super().__init__(encoder)
        if encoder.dim < 2 or not kernels:
            raise InputError("CoST needs an encoder with dim >= 2, half for trend and half for season, and kernels.")
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
        directions = F.normalize(torch.randn(self.queue_size, half), dim=1).T.contiguous()
        self.register_buffer("queue", directions.to(like.device, like.dtype))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.long, device=like.device))

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Places:
        """Where the window of the cases begins, and the time step in it that the trend is read at."""
        length = min(shape[2], self.max_length)
        return Places((int(rng.integers(shape[2] - length + 1)), int(rng.integers(length))))

    def loss(self, batch: Batch, plan: Places) -> Tensor:
        start, t = plan.at
        x = batch.x
        if x.shape[2] > self.max_length:
            x = x.index_select(2, start + torch.arange(self.max_length, device=x.device))
        view_q, view_k = (distort(x, self.sigma, self.probability) for _ in range(2))  # D-27
        h = self.encoder(view_q)  # D-26: nothing stands between input and encoder
        q = F.normalize(self.projection(self.trend(h, t)), dim=1)
        k = self._keys(view_k, t)
        # The backward pass still needs the queue that the loss saw, and below it is overwritten.
        time = queue_contrast(q, k, self.queue.clone(), self.temperature)
        seasons = self.season(torch.cat([h, self.encoder(view_k)]))  # one call: its weights are the larger part
        amplitude, phase = frequency_contrast(*seasons.chunk(2))
        with torch.no_grad():
            queue, pointer = enqueued(self.queue, self.pointer, k)
            self.queue.copy_(queue)
            self.pointer.copy_(pointer)
        return time + self.alpha * (amplitude + phase) / 2

    @torch.no_grad()
    def _keys(self, view: Tensor, t: int | Tensor) -> Tensor:
        """Let the key network follow the trained one, then encode with it: (B, C, T) -> (B, D) unit vectors."""
        # theta_k <- m theta_k + (1 - m) theta_q; BatchNorm of the key network has statistics of its own passes
        follow = get_ema_multi_avg_fn(self.momentum)  # type: ignore[no-untyped-call]
        keys = [p for part in (self.key_encoder, self.key_trend, self.key_projection) for p in part.parameters()]
        follow(keys, [p for part in (self.encoder, self.trend, self.projection) for p in part.parameters()], None)
        return F.normalize(self.key_projection(self.key_trend(self.key_encoder(view), t)), dim=1)
