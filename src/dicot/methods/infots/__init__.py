"""InfoTS (AAAI 2023): a learned mixture of augmentations against the series itself, globally and between segments."""

import math
from collections.abc import Hashable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.methods.averaging import AveragedEncoder
from dicot.methods.base import Batch, Method, TrainingSet
from dicot.methods.infots.mixture import candidates, mixing_weights, mixture
from dicot.nets.encoders import Encoder
from dicot.nets.losses.contrast import paired_contrast
from dicot.nets.losses.precision import wide

# InfoTS's two losses: max-pooled series against each other, and neighbouring segments of one series.


def pooled_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """Global loss on features (B, F, T): each case must find its other view among 2B - 1; 0 for B = 1.

    Max over time, dot products, no temperature. Time O(B^2 F), memory O(B^2).
    """
    return paired_contrast(z1.max(dim=-1).values.unsqueeze(0), z2.max(dim=-1).values.unsqueeze(0))


def segment_length(n_times: int, k: int) -> int:
    return n_times // k


def segment_contrast(z: Tensor, k: int, start: int = 0) -> Tensor:
    """Local loss on features (B, F, T): each of k segments must find its neighbour among distant segments of its case.

    The segments have T // k steps each, begin at `start` and are max-pooled; k >= 4, so that every row has a negative.
    Mean over segments and cases. Time O(B k^2 F), memory O(B k^2).
    """
    length = segment_length(z.shape[-1], k)
    covered = z[..., start : start + k * length]
    segments = covered.reshape(*z.shape[:2], k, length).max(dim=-1).values  # (B, F, k)
    with torch.autocast(z.device.type, enabled=False):
        segments = wide(segments)
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


# AdamW for the few tensors that a method trains beside the encoder, with all of its state in buffers.


BETAS = (0.9, 0.999)
EPSILON = 1e-8
WEIGHT_DECAY = 0.01


def adamw(
    value: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, number: int, lr: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Update number `number` (from 1) with torch's default settings: the new value and the new moments."""
    mean = torch.lerp(mean, gradient, 1 - BETAS[0])
    square = BETAS[1] * square + (1 - BETAS[1]) * gradient.square()
    size = lr / (1 - BETAS[0] ** number)
    spread = square.sqrt() / math.sqrt(1 - BETAS[1] ** number) + EPSILON
    return value * (1 - lr * WEIGHT_DECAY) - size * mean / spread, mean, square


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

    def leaf(self) -> Tensor:
        """The value as the start of a graph."""
        return self.value.detach().requires_grad_()

    @torch.no_grad()
    def step(self, gradient: Tensor, number: int, lr: float) -> None:
        updated = adamw(self.value, gradient, self.mean, self.square, number, lr)
        for mine, new in zip((self.value, self.mean, self.square), updated, strict=True):
            mine.copy_(new)


THETA_SPREAD = 0.01  # standard deviation of the initial theta
META_ROWS = 512  # the meta step looks at no more cases of a batch than this, which bounds its classifier
SHORTEST_LOCAL = 8  # cases of fewer time steps have no local loss
FEWEST_SEGMENTS = 4  # for one negative per segment


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

    needs_time_steps: ClassVar[bool] = True
    summary: ClassVar[str] = "contrast a case with a learned mixture of its augmentations, and its segments"
    paper: ClassVar[str] = "Time Series Contrastive Learning with Information-Aware Augmentations, AAAI 2023"
    complexity: ClassVar[str] = (
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
        mix: float = 0.2,
        k: int = 8,
        beta: float = 1.0,
        first_only: bool = False,
        keep: float = 0.5,
        dropout: float = 0.1,
        meta_steps: int = 20,
        meta_lr: float = 0.01,
        meta_beta: float = 1.0,
        average_weights: bool = True,
    ) -> None:
        super().__init__(encoder)
        if not 0 <= mix <= 1:
            raise InputError(f"mix is a share of the steps, 0 <= mix <= 1; got {mix}.")
        if k < FEWEST_SEGMENTS:
            raise InputError(f"k must be at least {FEWEST_SEGMENTS}, for one negative per segment; got {k}.")
        if not 0 < keep <= 1:
            raise InputError(f"keep is a share of the time steps, 0 < keep <= 1; got {keep}.")
        if not 0 <= dropout < 1:
            raise InputError(f"dropout is a share of the features, 0 <= dropout < 1; got {dropout}.")
        if not (beta >= 0 and meta_beta >= 0 and meta_lr >= 0):
            raise InputError(f"beta, meta_beta and meta_lr must not be negative; got {beta}, {meta_beta}, {meta_lr}.")
        if meta_steps < 0:
            raise InputError(f"meta_steps is a number of steps, 0 for none; got {meta_steps}.")
        self.mix, self.k, self.beta, self.first_only = mix, k, beta, first_only
        self.keep, self.dropout = keep, dropout
        self.meta_steps, self.meta_lr, self.meta_beta = meta_steps, meta_lr, meta_beta
        self.average_weights = average_weights
        self.average: AveragedEncoder | None = None
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
        k = self._segments(n_times)
        return Choices(mix, int(rng.integers(n_times - k * segment_length(n_times, k) + 1)))

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        assert isinstance(plan, Choices)
        view = mixture(batch.x, mixing_weights(self.theta.value, sample=self.training)) if plan.mix else batch.x
        z1, z2 = self._encode(view), self._encode(batch.x)  # (B, F, T)
        loss = pooled_contrast(z1, z2)
        if plan.start is not None:
            local = z1[:1] if self.first_only else z1  # D-31
            loss = loss + self.beta * segment_contrast(local, self._segments(z1.shape[-1]), plan.start)
        return loss

    def after_step(self, batch: Batch, progress: float) -> None:
        if self.average is not None:
            self.average.update(self.encoder)
        self._n_steps += 1
        self.n_steps.fill_(self._n_steps)
        number = meta_number(self._n_steps, progress, self.meta_steps)
        if number:
            self._meta_step(batch.x[:META_ROWS], number)

    def trained_encoder(self) -> Encoder:
        return self.encoder if self.average is None else self.average.encoder

    def _segments(self, n_times: int) -> int:
        return max(FEWEST_SEGMENTS, min(self.k, n_times // 2))

    def _encode(self, x: Tensor) -> Tensor:
        """In training through a random mask over time (D-11) and dropout."""
        seen = torch.rand(len(x), x.shape[-1], device=x.device) < self.keep if self.training else None  # (B, T)
        return F.dropout(self.encoder(x, seen), self.dropout, self.training)

    def _meta_step(self, x: Tensor, number: int) -> None:
        """Move theta so that a mixture keeps what tells its case from the others of the batch (D-30).

        The encoder is in eval mode and is not changed; the mixture is always drawn; no labels are used.
        """
        adapted = (self.theta, self.weight, self.bias)
        theta, weight, bias = leaves = [part.leaf() for part in adapted]
        was_training = self.encoder.training
        self.encoder.eval()
        with torch.no_grad():
            pooled_case = self.encoder(x).max(dim=-1).values  # (B, F)
        pooled_view = self.encoder(mixture(x, mixing_weights(theta, sample=True))).max(dim=-1).values
        self.encoder.train(was_training)
        position = torch.arange(len(x), device=x.device)
        with torch.autocast(x.device.type, enabled=False):
            losses = [
                F.cross_entropy(F.linear(pooled.to(weight.dtype), weight[: len(x)], bias[: len(x)]), position)
                for pooled in (pooled_view, pooled_case)
            ]
            gradients = torch.autograd.grad(self.meta_beta * torch.stack(losses).sum(), leaves)
        for part, gradient in zip(adapted, gradients, strict=True):
            part.step(gradient, number, self.meta_lr)


def meta_number(step: int, progress: float, wanted: int) -> int:
    """Which meta step follows optimiser step `step` (both from 1), 0 for none: one in every max(1, I // wanted).

    `progress` is step / I, which gives the number I of steps in the run.
    """
    if not wanted:
        return 0
    every = max(1, round(step / progress) // wanted)
    return 0 if step % every else step // every


def _recall_steps(method: Any, _: object) -> None:
    """After a checkpoint was loaded, the host's count is the one in the buffer."""
    method._n_steps = int(method.n_steps)
