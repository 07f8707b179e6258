"""TNC, Temporal Neighbourhood Coding (ICLR 2021): tell windows close in time from windows far away."""

import warnings
from collections.abc import Hashable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dicot.encoders import Encoder
from dicot.errors import InputError
from dicot.losses.positive_unlabelled import positive_unlabelled
from dicot.methods.base import Batch, Method, TrainingSet
from dicot.views.neighbourhoods import (
    check_width,
    close_centres,
    cut_windows,
    default_width,
    distant_centres,
    reference_centres,
    reference_range,
)
from dicot.views.stationarity import WIDEST, adf_table

DROPOUT = 0.5
MANY_TESTS = 20_000  # more ADF tests than this take minutes, and the user is told


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

    summary: ClassVar[str] = "tell windows close in time from windows far away, with a positive-unlabelled loss"
    paper: ClassVar[str] = "Temporal Neighborhood Coding, ICLR 2021"
    complexity: ClassVar[str] = (
        "three passes over (2m + 1) w time steps per case, about 4 T by default; loss O(B m F^2)"
    )

    epsilon_table: Tensor | None
    epsilon_centres: Tensor | None

    def __init__(
        self,
        encoder: Encoder,
        *,
        window: int | None = None,
        m: int = 20,
        w_pu: float = 0.05,  # D-20
        epsilon: int = 1,  # D-18
        adf: bool = False,
        adf_centres: int = 8,
    ) -> None:
        super().__init__(encoder)
        if window is not None and (window < 2 or window % 2):
            raise InputError(f"window must be an even number of time steps, 2 or more; got {window}.")
        if m < 1:
            raise InputError(f"m, the number of windows of each kind, must be 1 or more; got {m}.")
        if not 0 <= w_pu <= 1:
            raise InputError(f"w_pu is a weight, 0 <= w_pu <= 1; got {w_pu}.")
        if epsilon < 1 or epsilon != int(epsilon):
            raise InputError(f"epsilon must be a whole number of windows, 1 or more; got {epsilon}.")
        if adf and epsilon != 1:
            raise InputError(f"adf=True chooses epsilon itself; got epsilon={epsilon} as well. Drop one of the two.")
        if adf_centres < 1:
            raise InputError(f"adf_centres must be 1 or more; got {adf_centres}.")
        self.window, self.m, self.w_pu, self.epsilon = window, m, w_pu, int(epsilon)
        self.adf, self.adf_centres = adf, adf_centres
        self.discriminator = Discriminator(encoder.dim)
        self.register_buffer("epsilon_table", None)  # (N, G) with adf=True, at the centres (G,)
        self.register_buffer("epsilon_centres", None)

    def prepare(self, train: TrainingSet) -> None:
        width = self._width(train.n_times)
        check_width(train.n_times, width)
        if self.adf:
            low, high = reference_range(train.n_times, width)
            centres = np.unique(np.linspace(low, high, self.adf_centres).round().astype(np.int64))
            _warn_of_cost(WIDEST * len(train) * train.n_channels * len(centres))
            self.epsilon_table = torch.from_numpy(adf_table(train.x, centres, width))
            self.epsilon_centres = torch.from_numpy(centres)

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> int:
        return self._width(shape[2])

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        assert isinstance(plan, int)
        x, width = batch.x, plan
        n_cases, _, n_times = x.shape
        # float32 whatever x is: positions must not be rounded, and both precisions then see the same windows.
        uniform = torch.rand(n_cases, self.m + 1, dtype=torch.float32, device=x.device)
        normal = torch.randn(n_cases, self.m, dtype=torch.float32, device=x.device)
        t = reference_centres(uniform[:, 0], n_times, width)
        epsilon = self._epsilon(batch, t)
        close = close_centres(normal, t, epsilon, n_times, width)
        distant = distant_centres(uniform[:, 1:], t, epsilon, n_times, width)

        # Three encoder calls; the reference is embedded once and its embedding used m times.
        z, z_close, z_distant = (self._embed(x, centres, width) for centres in (t[:, None], close, distant))
        d_close, d_distant = self.discriminator(z, z_close), self.discriminator(z, z_distant)  # (B, m) each
        return positive_unlabelled(d_close, d_distant, self.w_pu)

    def _width(self, n_times: int) -> int:
        return default_width(n_times) if self.window is None else self.window

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
        with torch.autocast(other.device.type, enabled=False):
            pair = torch.cat([reference.expand_as(other), other], dim=-1).to(self.hidden.weight.dtype)
            logit: Tensor = self.out(self.dropout(self.hidden(pair).relu()))
            return logit.squeeze(-1)


def _warn_of_cost(n_tests: int) -> None:
    if n_tests > MANY_TESTS:
        warnings.warn(
            f"adf=True may run up to {n_tests:,} tests of 3 to 20 ms before training. "
            "Lower adf_centres, or use adf=False with a fixed epsilon.",
            stacklevel=3,
        )
