"""TNC, Temporal Neighbourhood Coding (ICLR 2021): tell windows close in time from windows far away.

Positions are integer tensors of time steps, one row per case. A centre t stands for the window [t - w//2, t + w//2),
so windows have 2 (w // 2) time steps. What is drawn comes in as tensors of random numbers: the rest is arithmetic.
"""

import math
import warnings
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.core.errors import InputError, need_extra
from dicot.methods.base import Batch, Method, TrainingSet
from dicot.methods.settings import Count, Limit, Share
from dicot.nets.encoders import Encoder

REACH = 5  # non-neighbours are at least this many times epsilon * width away, where the case is long enough
WIDEST = 3  # half-widths tried by the ADF test: 1, 2 and 3 windows
LEVEL = 0.01  # of the test; also what a p-value of NaN counts as
MANY_TESTS = 20_000  # more than this take minutes, and the user is told
DROPOUT = 0.5


def shortest_case(width: int) -> int:
    """Fewer time steps than this, and some window of the rules below would leave the case."""
    return width + width // 2 + 1


def reference_range(n_times: int, width: int) -> tuple[int, int]:
    """First and last centre of a reference window; short cases use all of their length (D-19)."""
    if n_times > 4 * width:
        return 2 * width, n_times - 2 * width - 1
    return width // 2, n_times - width // 2 - 1


def close_centres(normal: Tensor, t: Tensor, epsilon: Tensor, n_times: int, width: int) -> Tensor:
    """(B, m) standard normal numbers, reference centres t and neighbourhood widths epsilon (B,) -> (B, m) centres.

    epsilon is in units of the window width; a centre is rounded towards zero and then clipped into the case.
    """
    centres = (t[:, None] + normal * epsilon[:, None] * width).long()
    return centres.clamp(width // 2 + 1, n_times - width // 2)


def distant_range(t: Tensor, epsilon: Tensor, n_times: int, width: int) -> tuple[Tensor, Tensor]:
    """First and last centre (B,) of a window far from t, on the longer side of the case."""
    delta = REACH * epsilon * width
    late = 2 * t > n_times
    low = torch.where(late, width // 2, (t + delta).clamp(max=n_times - width - 1))
    high = torch.where(late, (t - delta).clamp(min=width // 2), n_times - width // 2 - 1)
    return low, high


def distant_centres(uniform: Tensor, t: Tensor, epsilon: Tensor, n_times: int, width: int) -> Tensor:
    """(B, m) numbers in [0, 1) -> (B, m) centres."""
    low, high = distant_range(t, epsilon, n_times, width)
    return drawn_between(uniform, low[:, None], high[:, None])


def cut_windows(x: Tensor, centres: Tensor, width: int) -> Tensor:
    """(B, C, T) and centres (B, m) -> (B, m, C, w)."""
    half = width // 2
    row = torch.arange(len(x), device=x.device)[:, None]
    return x.unfold(-1, 2 * half, 1)[row, :, centres - half]


def drawn_between(uniform: Tensor, low: Any, high: Any) -> Tensor:
    """Numbers in [0, 1) -> integers from low to high, both included, each as likely."""
    drawn: Tensor = low + (uniform * (high - low + 1)).long()
    return drawn.clamp(max=high)  # a product may be rounded up to the count itself


def adf_epsilon(x: np.ndarray, t: int, width: int) -> int:
    """The first half-width (in windows) around t at which the case x (C, T) is no longer stationary; 3 if it stays so.

    By the augmented Dickey-Fuller (ADF) test of the extra `adf`. Not stationary: the p-value, averaged over the
    channels, reaches 0.01. A test that fails (a constant channel, too few time steps) counts as not stationary, so that
    constant cases have epsilon 1. The tests run on the host, one by one: about 3 ms each for 20 time steps, 4 ms for
    100 and 21 ms for 500.
    """
    for epsilon in range(1, WIDEST + 1):
        reach = epsilon * width
        if _drifts(x[:, max(0, t - reach) : t + reach]):
            return epsilon
    return WIDEST


def adf_table(x: Any, centres: np.ndarray, width: int) -> np.ndarray:
    """Cases (N, C, T) and centres (G,) -> epsilon (N, G), by at most 3 N G C tests."""
    cases = (x[row : row + 1][0] for row in range(len(x)))  # one at a time, wherever they are read from
    return np.array([[adf_epsilon(case, int(t), width) for t in centres] for case in cases], dtype=np.int64)


def _drifts(segment: np.ndarray) -> bool:
    """Whether the mean p-value over the channels of (C, L) reaches the level."""
    try:
        from statsmodels.tsa.stattools import adfuller
    except ImportError as error:
        raise need_extra("statsmodels", "adf", "adf=True (neighbourhoods by the Dickey-Fuller test)") from error
    total = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rank deficiency is a NaN below, and newer versions announce a new return type
        for channel in segment:
            try:
                p = float(adfuller(channel)[1])
            except Exception:  # the authors take any failure as a p-value of 0.6
                return True
            total += LEVEL if math.isnan(p) else p
            # p-values are never negative and a failure further on means True as well: the rest need not be tested.
            if total / len(segment) >= LEVEL:
                return True
    return False


def positive_unlabelled(d_close: Tensor, d_distant: Tensor, w_pu: float) -> Tensor:
    """L = 1/2 [bce(d_close, 1) + w_pu bce(d_distant, 1) + (1 - w_pu) bce(d_distant, 0)] on logits of any shape."""
    close = -F.logsigmoid(d_close).mean()
    distant_as_close = -F.logsigmoid(d_distant).mean()
    distant = -F.logsigmoid(-d_distant).mean()
    return (close + w_pu * distant_as_close + (1 - w_pu) * distant) / 2


class TNC(Method):
    """One reference window per case and step, m neighbours around it and m windows far away.

    window: their length, even; a tenth of the case if not given. m: windows of each kind; memory grows with it.
    w_pu: weight with which a distant window counts as a neighbour all the same.
    epsilon: width of the neighbourhood in windows; "far" is 5 epsilon windows. 1 replaces the authors' ADF test,
    which costs more than the training itself (D-18).
    adf: choose epsilon from {1, 2, 3} by that test, for each case at `adf_centres` time steps spread over it, once
    before training (and again when a run is resumed); a reference takes the epsilon of the nearest of them. On the
    host and up to 3 N C adf_centres tests of 3 to 20 ms: small data sets only.
    """

    summary = "tell windows close in time from windows far away, with a positive-unlabelled loss"
    paper = "Temporal Neighborhood Coding, ICLR 2021"
    complexity = "three passes over (2m + 1) w time steps per case, about 4 T by default; loss O(B m F^2)"

    epsilon_table: Tensor | None
    epsilon_centres: Tensor | None

    def __init__(
        self,
        encoder: Encoder,
        *,
        window: Annotated[int, Limit("an even number, 2 or more", lambda n: n >= 2 and n % 2 == 0)] | None = None,
        m: Count = 20,
        w_pu: Share = 0.05,  # D-20
        epsilon: Count = 1,  # D-18
        adf: bool = False,
        adf_centres: Count = 8,
    ) -> None:
        super().__init__(encoder)
        if adf and epsilon != 1:
            raise InputError(f"adf=True chooses epsilon itself; got epsilon={epsilon} as well. Drop one of the two.")
        self.window, self.m, self.w_pu, self.epsilon = window, m, w_pu, epsilon
        self.adf, self.adf_centres = adf, adf_centres
        self.discriminator = Discriminator(encoder.embed_dim)
        self.register_buffer("epsilon_table", None)  # (N, G) with adf=True, at the centres (G,)
        self.register_buffer("epsilon_centres", None)

    def prepare(self, train: TrainingSet) -> None:
        n_times, width = train.n_times, self._width(train.n_times)
        if n_times < shortest_case(width):
            raise InputError(
                f"Neighbourhoods of windows of {width} time steps need cases of at least {shortest_case(width)}; "
                f"got {n_times} time steps. Use longer cases or a shorter window."
            )
        if self.adf:
            ends = reference_range(n_times, width)
            centres = np.unique(np.linspace(*ends, self.adf_centres).round().astype(np.int64))
            n_tests = WIDEST * len(train) * train.n_channels * len(centres)
            if n_tests > MANY_TESTS:
                warnings.warn(
                    f"adf=True may run up to {n_tests:,} tests of 3 to 20 ms before training. "
                    "Lower adf_centres, or use adf=False with a fixed epsilon.",
                    stacklevel=2,
                )
            self.epsilon_table = torch.from_numpy(adf_table(train, centres, width))
            self.epsilon_centres = torch.from_numpy(centres)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> int:
        return self._width(shape[2])

    def loss(self, batch: Batch, plan: int) -> Tensor:
        x, width = batch.x, plan
        n_cases, _, n_times = x.shape
        # float32 whatever x is: positions must not be rounded, and both precisions then see the same windows.
        uniform = torch.rand(n_cases, self.m + 1, dtype=torch.float32, device=x.device)
        normal = torch.randn(n_cases, self.m, dtype=torch.float32, device=x.device)
        t = drawn_between(uniform[:, 0], *reference_range(n_times, width))
        epsilon = self._epsilon(batch, t)
        close = close_centres(normal, t, epsilon, n_times, width)
        distant = distant_centres(uniform[:, 1:], t, epsilon, n_times, width)

        # Three encoder calls; the reference is embedded once and its embedding used m times.
        z, z_close, z_distant = (self._embed(x, centres, width) for centres in (t[:, None], close, distant))
        d_close, d_distant = self.discriminator(z, z_close), self.discriminator(z, z_distant)  # (B, m) each
        return positive_unlabelled(d_close, d_distant, self.w_pu)

    def _width(self, n_times: int) -> int:
        """A tenth of the case, even and at least 2, if nothing else is set (D-19)."""
        return max(2, 2 * (n_times // 20)) if self.window is None else self.window

    def _epsilon(self, batch: Batch, t: Tensor) -> Tensor:
        """(B,) neighbourhood widths of the cases around t, in windows."""
        if not self.adf:
            return torch.full_like(t, self.epsilon)
        assert self.epsilon_table is not None and self.epsilon_centres is not None, "prepare() comes first"
        nearest = (t[:, None] - self.epsilon_centres).abs().argmin(dim=1)
        return self.epsilon_table[batch.index, nearest]

    def _embed(self, x: Tensor, centres: Tensor, width: int) -> Tensor:
        """The windows around centres (B, m), one encoder call -> (B, m, F)."""
        windows = cut_windows(x, centres, width)
        return self.encoder.embed(windows.flatten(0, 1)).reshape(*centres.shape, -1)


class Discriminator(nn.Module):
    """A logit for "these two windows are neighbours" from their embeddings."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * dim, 4 * dim)
        self.dropout = nn.Dropout(DROPOUT)
        self.out = nn.Linear(4 * dim, 1)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.xavier_uniform_(self.out.weight)

    def forward(self, reference: Tensor, other: Tensor) -> Tensor:
        """(B, 1, F) and (B, m, F) -> (B, m); also (n, F) twice -> (n,)."""
        pair = torch.cat([reference.expand_as(other), other], dim=-1).to(self.hidden.weight.dtype)
        logit: Tensor = self.out(self.dropout(self.hidden(pair).relu()))
        return logit.squeeze(-1)
