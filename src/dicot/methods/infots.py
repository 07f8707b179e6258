"""InfoTS (AAAI 2023): a learned mixture of augmentations against the series itself, globally and between segments.

All random draws are made on the device of x: no draw changes a shape, so the host need not know any.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.methods.base import AveragedEncoder, Batch, Method, TrainingSet
from dicot.methods.settings import CountFromZero, Limit, NotNegative, Share, ShareBelowOne
from dicot.nets.encoders import Encoder
from dicot.nets.hierarchy import paired_contrast
from dicot.nets.views import jitter, read_between, scale

CUTOUT = 0.1  # share of the case that is cut out
JITTER = 0.3  # standard deviation of the noise
SCALING = 0.5  # standard deviation of the factors around 1
SLICE = 0.5  # share of the case that a slice keeps
WARP = 0.3  # share of the case that a window warp stretches by 1/2 or 2
SPEED_CHANGES = 100
SPEED_RATIO = 10.0  # fastest over slowest of a time warp, at most
MARGIN = 1e-4  # the uniform draws of the mixing weights stay this far from 0 and 1
BETAS, EPSILON, WEIGHT_DECAY = (0.9, 0.999), 1e-8, 0.01  # of AdamW, torch's
THETA_SPREAD = 0.01  # standard deviation of the initial theta
META_ROWS = 512  # the meta step looks at no more cases of a batch than this, which bounds its classifier
SHORTEST_LOCAL = 8  # cases of fewer time steps have no local loss
FEWEST_SEGMENTS = 4  # for one negative per segment


# The candidate augmentations, each first for given draws. Start and length are numbers, or 0-d tensors on the device.


def subsequence(x: Tensor, start: int | Tensor, length: int | Tensor) -> Tensor:
    """(B, C, T) with everything outside the interval [start, start + length) set to zero."""
    return x * _inside(x, start, length)


def cutout(x: Tensor, start: int | Tensor, length: int | Tensor) -> Tensor:
    """(B, C, T) with the interval [start, start + length) set to zero."""
    return x * ~_inside(x, start, length)


def _inside(x: Tensor, start: int | Tensor, length: int | Tensor) -> Tensor:
    step = torch.arange(x.shape[-1], device=x.device)  # (T,)
    return (step >= start) & (step < start + length)


def window_slice(x: Tensor, starts: Tensor, length: int) -> Tensor:
    """The window [start, start + length) of each case, starts (B,), stretched to the whole length T."""
    position = _half_pixel(_time_steps(x), length, x.shape[-1]).clamp(0, length - 1)
    return interpolate(x, starts.unsqueeze(1) + position)


def window_warp(x: Tensor, starts: Tensor, scales: Tensor, length: int) -> Tensor:
    """The window [start, start + length) of each case made floor(scale * length) long, then all of it resampled to T.

    starts and scales (B,). Two linear interpolations in sequence: the stretched case exists at its own whole time
    steps, and the result reads between these.
    """
    start, stretched = starts.unsqueeze(1), (length * scales.unsqueeze(1)).floor()  # (B, 1)
    total = x.shape[-1] - length + stretched
    position = torch.minimum(_half_pixel(_time_steps(x), total, x.shape[-1]).clamp(min=0), total - 1)  # (B, T)
    lower = position.floor()
    upper = torch.minimum(lower + 1, total - 1)

    def source(step: Tensor) -> Tensor:
        """Where a time step of the stretched case lies in the case itself."""
        window = start + _half_pixel(step - start, length, stretched).clamp(0, length - 1)
        behind = step - stretched + length
        return torch.where(step < start, step, torch.where(step < start + stretched, window, behind))

    return torch.lerp(interpolate(x, source(lower)), interpolate(x, source(upper)), (position - lower).unsqueeze(1))


def warped_time(speeds: Tensor, n_times: int) -> Tensor:
    """Positive speeds of K >= 2 stretches of equal duration, (B, K) -> positions (B, T) from 0 to T - 1.

    A monotone piecewise cubic (PCHIP, Fritsch and Butland's slopes) through the K + 1 knots that these
    speeds lead to; only their ratios count.
    """
    n_knots = speeds.shape[1] + 1
    speeds = speeds / speeds.sum(dim=1, keepdim=True)  # per unit of the knots' grid; the whole way is 1
    knots = torch.cat([torch.zeros_like(speeds[:, :1]), speeds.cumsum(dim=1)], dim=1)  # (B, K + 1)
    before, after = speeds[:, :-1], speeds[:, 1:]
    slopes = torch.cat(
        [
            ((3 * speeds[:, :1] - speeds[:, 1:2]) / 2).clamp(min=0),
            2 * before * after / (before + after),
            ((3 * speeds[:, -1:] - speeds[:, -2:-1]) / 2).clamp(min=0),
        ],
        dim=1,
    )
    grid = torch.linspace(0, n_knots - 1, n_times, dtype=speeds.dtype, device=speeds.device)
    left = grid.long().clamp(max=n_knots - 2)
    u = grid - left
    way = (  # the cubic Hermite form on each stretch
        (1 + 2 * u) * (1 - u) ** 2 * knots[:, left]
        + u * (1 - u) ** 2 * slopes[:, left]
        + u**2 * (3 - 2 * u) * knots[:, left + 1]
        - u**2 * (1 - u) * slopes[:, left + 1]
    )
    return (n_times - 1) * way


def interpolate(x: Tensor, position: Tensor) -> Tensor:
    """Cases (B, C, T) read at the fractional time steps `position` (B, n) -> (B, C, n); clamped at both ends."""
    return read_between(x, position.clamp(0, x.shape[-1] - 1))


def _half_pixel(step: Tensor, n_in: int | Tensor, n_out: int | Tensor) -> Tensor:
    """Where output step j of n_out lies among n_in inputs when steps are seen as intervals with a centre."""
    return (step + 0.5) * n_in / n_out - 0.5


def _time_steps(x: Tensor) -> Tensor:
    return torch.arange(x.shape[-1], dtype=x.dtype, device=x.device).expand(len(x), -1)  # (B, T)


def _subsequence(x: Tensor) -> Tensor:
    """One interval per batch, at least 2 long."""
    n_times = x.shape[-1]
    length = torch.randint(2, n_times + 1, (), device=x.device)
    room = n_times - length
    start = (torch.rand((), device=x.device) * (room + 1)).long().minimum(room)
    return subsequence(x, start, length)


def _cutout(x: Tensor) -> Tensor:
    """One interval per batch; nothing for T < 10. The authors' start range ends two steps early."""
    length = int(CUTOUT * x.shape[-1])
    return cutout(x, torch.randint(0, x.shape[-1] - length - 1, (), device=x.device), length)


def _time_warp(x: Tensor) -> Tensor:
    """Each case read along a smooth increasing time map of its own."""
    speeds = torch.empty(len(x), SPEED_CHANGES, dtype=x.dtype, device=x.device).uniform_(1, SPEED_RATIO)
    return interpolate(x, warped_time(speeds, x.shape[-1]))


def _window_slice(x: Tensor) -> Tensor:
    """The authors' start range leaves out the last possible one."""
    length = math.ceil(SLICE * x.shape[-1])
    return window_slice(x, torch.randint(0, x.shape[-1] - length, (len(x),), device=x.device), length)


def _window_warp(x: Tensor) -> Tensor:
    """The window touches neither end of the case."""
    length = math.ceil(WARP * x.shape[-1])
    starts = torch.randint(1, x.shape[-1] - length - 1, (len(x),), device=x.device)
    scales = 0.5 * 4.0 ** torch.randint(0, 2, (len(x),), device=x.device).to(x.dtype)
    return window_warp(x, starts, scales, length)


class Candidate(NamedTuple):
    shortest: int  # cases of fewer time steps have no room for it
    view: Callable[[Tensor], Tensor]


CANDIDATES: dict[str, Candidate] = {
    "subsequence": Candidate(2, _subsequence),
    "cutout": Candidate(3, _cutout),
    "jitter": Candidate(1, lambda x: jitter(x, JITTER)),
    "scaling": Candidate(1, lambda x: scale(x, 1.0, SCALING)),
    "time warp": Candidate(2, _time_warp),
    "window slice": Candidate(2, _window_slice),
    "window warp": Candidate(5, _window_warp),
}


def candidates(n_times: int) -> tuple[str, ...]:
    """The candidates that cases of `n_times` time steps have room for, in the authors' order."""
    return tuple(name for name, candidate in CANDIDATES.items() if n_times >= candidate.shortest)


def mixing_weights(theta: Tensor, *, sample: bool) -> Tensor:
    """Positive weights (A,) that sum to 1: a concrete sample softmax(logit(u) + theta), or softmax(theta) itself.

    The temperature is 1: the authors' annealed one is computed and never used.
    """
    noise = torch.empty_like(theta).uniform_(MARGIN, 1 - MARGIN).logit() if sample else 0
    return (noise + theta).softmax(dim=0)


def mixture(x: Tensor, weights: Tensor) -> Tensor:
    """The sum of all candidates of x (B, C, T), each with its own weight (A,)."""
    total = torch.zeros_like(x)
    for name, weight in zip(candidates(x.shape[-1]), weights.unbind(), strict=True):
        total = total + weight * CANDIDATES[name].view(x)
    return total


def pooled_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """Global loss on the maxima over time of (B, F, T): each case must find its other view; 0 for B = 1."""
    return paired_contrast(z1.max(dim=-1).values.unsqueeze(0), z2.max(dim=-1).values.unsqueeze(0))


def segment_contrast(z: Tensor, k: int, start: int = 0) -> Tensor:
    """Local loss on features (B, F, T): each of k segments must find its neighbour among distant segments of its case.

    The segments have T // k steps each, begin at `start` and are max-pooled; k >= 4, so that every row has a negative.
    Mean over segments and cases.
    """
    length = z.shape[-1] // k
    covered = z[..., start : start + k * length]
    segments = covered.reshape(*z.shape[:2], k, length).max(dim=-1).values  # (B, F, k)
    similarity = segments.transpose(1, 2) @ segments  # (B, k, k)
    positive, candidate = _targets(k, z.device)
    log_p = similarity.masked_fill(~candidate, float("-inf")).log_softmax(dim=-1)
    return -log_p.gather(2, positive.expand(len(z), -1).unsqueeze(2)).mean()


def _targets(k: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The positive of each row (k,), and which columns (k, k) take part: the positive and k - 3 negatives.

    The positive is the next segment, for the last one the previous. Negatives are at least two segments away; the
    first and the last segment have no neighbour on one side, and leave out their second one on the other instead.
    """
    row = torch.arange(k, device=device)
    positive = torch.where(row == k - 1, k - 2, row + 1)
    distance = (row.unsqueeze(1) - row).abs()
    at_an_end = ((row == 0) | (row == k - 1)).unsqueeze(1)
    negative = (distance >= 2) & ~(at_an_end & (distance == 2))
    return positive, negative | (row == positive.unsqueeze(1))


class SelfOptimised(nn.Module):
    """A tensor and its AdamW moments, as buffers: checkpoints hold them, the run's optimiser does not see them."""

    value: Tensor
    mean: Tensor
    square: Tensor

    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.register_buffer("value", value)
        self.register_buffer("mean", torch.zeros_like(value))
        self.register_buffer("square", torch.zeros_like(value))

    @torch.no_grad()
    def step(self, gradient: Tensor, number: int, lr: float) -> None:
        """Make update number `number` (from 1) with torch's default settings."""
        self.mean.lerp_(gradient, 1 - BETAS[0])
        self.square.copy_(BETAS[1] * self.square + (1 - BETAS[1]) * gradient.square())
        size = lr / (1 - BETAS[0] ** number)
        spread = self.square.sqrt() / math.sqrt(1 - BETAS[1] ** number) + EPSILON
        self.value.copy_(self.value * (1 - lr * WEIGHT_DECAY) - size * self.mean / spread)


class Choices(NamedTuple):
    """What the host decides for a step."""

    mix: bool  # whether view 1 is a mixture or the case itself
    start: int | None  # where the first segment begins; None: no local loss


class InfoTS(Method):
    """View 2 is the case itself, view 1 in a share of the steps a mixture of seven augmentations.

    mix: how often view 1 is a mixture. k: segments of the local loss (fewer in cases shorter than 2 k). beta: weight
    of the local loss. first_only: local loss of the batch's first case alone, as the authors' code has it (D-31).
    keep, dropout: share of time steps that the encoder sees, share of features that are dropped, in training.
    meta_steps: about how often in a run the mixture is adapted (0: never), with meta_lr and meta_beta.
    average_weights: embed with the average of all iterates.

    The adapted parts are theta, one number per augmentation, and a linear classifier that must tell a batch's cases
    apart by their position. The classifier is a table of min(N, 512) rows of which a batch of B cases uses the first
    B; of a larger batch the meta step takes the first 512 cases. Both live in buffers with their own AdamW.
    """

    needs_time_steps = True
    summary = "contrast a case with a learned mixture of its augmentations, and its segments"
    paper = "Time Series Contrastive Learning with Information-Aware Augmentations, AAAI 2023"
    complexity = (
        "encodes 2 T time steps per case in two passes (4 T in 1 of 20 steps); loss O(B^2 F + B k^2 F), "
        "memory O(B^2 + B k^2) and two copies of the weights"
    )

    theta: SelfOptimised
    weight: SelfOptimised
    bias: SelfOptimised
    n_steps: Tensor

    def __init__(
        self,
        encoder: Encoder,
        *,
        mix: Share = 0.2,
        k: Annotated[int, Limit("a whole number, 4 or more", lambda value: value >= FEWEST_SEGMENTS)] = 8,
        beta: NotNegative = 1.0,
        first_only: bool = False,
        keep: Annotated[float, Limit("a finite number above 0, 1 at most", lambda value: 0 < value <= 1)] = 0.5,
        dropout: ShareBelowOne = 0.1,
        meta_steps: CountFromZero = 20,
        meta_lr: NotNegative = 0.01,
        meta_beta: NotNegative = 1.0,
        average_weights: bool = True,
    ) -> None:
        super().__init__(encoder)
        self.mix, self.k, self.beta, self.first_only = mix, k, beta, first_only
        self.keep, self.dropout = keep, dropout
        self.meta_steps, self.meta_lr, self.meta_beta = meta_steps, meta_lr, meta_beta
        self.average_weights = average_weights
        # The host keeps the count as well: reading the buffer at every step would wait for the device.
        self.register_buffer("n_steps", torch.zeros((), dtype=torch.long))
        self._n_steps = 0
        self.register_load_state_dict_post_hook(_recall_steps)  # type: ignore[no-untyped-call]

    def prepare(self, train: TrainingSet) -> None:
        if len(train) < 2 and train.n_times < SHORTEST_LOCAL:
            raise InputError(
                f"One case of {train.n_times} time steps leaves nothing to contrast: InfoTS needs 2 cases, or "
                f"{SHORTEST_LOCAL} time steps. Give more cases or longer windows."
            )
        like = next(self.encoder.parameters())
        rows, bound = min(len(train), META_ROWS), self.encoder.dim**-0.5  # initialised as torch does a linear layer
        self.theta = SelfOptimised(THETA_SPREAD * torch.randn(len(candidates(train.n_times))).to(like))
        self.weight = SelfOptimised(torch.empty(rows, self.encoder.dim).uniform_(-bound, bound).to(like))
        self.bias = SelfOptimised(torch.empty(rows).uniform_(-bound, bound).to(like))
        self.average = AveragedEncoder(self.encoder) if self.average_weights else None  # D-29
        self._n_steps = 0
        self.n_steps.zero_()

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Choices:
        n_times = shape[2]
        mix = bool(rng.random() < self.mix)
        if n_times < SHORTEST_LOCAL:
            return Choices(mix, None)
        return Choices(mix, int(rng.integers(n_times % self._segments(n_times) + 1)))

    def loss(self, batch: Batch, plan: Choices) -> Tensor:
        view = mixture(batch.x, mixing_weights(self.theta.value, sample=self.training)) if plan.mix else batch.x
        z1, z2 = self._encode(view), self._encode(batch.x)  # (B, F, T)
        loss = pooled_contrast(z1, z2)
        if plan.start is not None:
            local = z1[:1] if self.first_only else z1  # D-31
            loss = loss + self.beta * segment_contrast(local, self._segments(z1.shape[-1]), plan.start)
        return loss

    def after_step(self, batch: Batch, progress: float) -> None:
        super().after_step(batch, progress)
        self._n_steps += 1
        self.n_steps.fill_(self._n_steps)
        number = meta_number(self._n_steps, progress, self.meta_steps)
        if number:
            self._meta_step(batch.x[:META_ROWS], number)

    def _segments(self, n_times: int) -> int:
        return max(FEWEST_SEGMENTS, min(self.k, n_times // 2))

    def _encode(self, x: Tensor) -> Tensor:
        """In training through a random mask over time (D-11) and dropout."""
        seen = torch.rand(len(x), x.shape[-1], device=x.device) < self.keep if self.training else None  # (B, T)
        return F.dropout(self.encoder(x, seen), self.dropout, self.training)

    def _meta_step(self, x: Tensor, number: int) -> None:
        """Move theta so that a mixture keeps what tells its case from the others of the batch; no labels (D-30)."""
        adapted = (self.theta, self.weight, self.bias)
        theta, weight, bias = leaves = [part.value.detach().requires_grad_() for part in adapted]
        was_training = self.encoder.training
        self.encoder.eval()
        with torch.no_grad():
            pooled_case = self.encoder(x).max(dim=-1).values  # (B, F)
        pooled_view = self.encoder(mixture(x, mixing_weights(theta, sample=True))).max(dim=-1).values
        self.encoder.train(was_training)
        position = torch.arange(len(x), device=x.device)
        losses = [
            F.cross_entropy(F.linear(pooled.to(weight.dtype), weight[: len(x)], bias[: len(x)]), position)
            for pooled in (pooled_view, pooled_case)
        ]
        gradients = torch.autograd.grad(self.meta_beta * torch.stack(losses).sum(), leaves)
        for part, gradient in zip(adapted, gradients, strict=True):
            part.step(gradient, number, self.meta_lr)


def meta_number(step: int, progress: float, wanted: int) -> int:
    """Which meta step follows step `step` (from 1) = progress * I: one in every max(1, I // wanted), else 0."""
    if not wanted:
        return 0
    every = max(1, round(step / progress) // wanted)
    return 0 if step % every else step // every


def _recall_steps(method: Any, _: object) -> None:
    """After a checkpoint was loaded, the host's count is the one in the buffer."""
    method._n_steps = int(method.n_steps)
