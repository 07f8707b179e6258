"""CaTT, Contrast All The Time: the time steps of a batch in one list, neighbours in the list are positives."""

import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from dicot.core.errors import InputError
from dicot.methods.base import Batch, Method, TrainingSet
from dicot.methods.settings import Limit, one_of
from dicot.nets.encoders import Encoder

# The (BT)^2 similarities are held in square tiles of at most so many: one forwards, two backwards, 16 MiB in float32.
MAX_ENTRIES = 2**22
ZERO_NORM = 1e-12
NOTHING = -1e30  # the logarithm of an empty sum: finite, so that its gradient is 0 and not undefined
SHARPEST = 1 / 40  # temperature down to which exp(1 / tau), sums of it and their inverses are ordinary float32 numbers


class _Sums(torch.autograd.Function):
    """s_n = sum of E[n, m] = exp(<u_n, u_m> / tau) over all m but n - 1, n and n + 1.

    Time O(N^2 F), memory O(N F + max_entries): the backward pass computes the tiles again from u. E is symmetric: a
    tile above the diagonal counts for its rows and for its columns.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, temperature: float, max_entries: int) -> Tensor:
        sums = u.new_zeros(len(u))
        scaled = u / temperature
        for rows, columns in _tiles(len(u), max_entries):
            _add_sums(scaled[rows] @ u[columns].T, rows, columns, sums)
        ctx.save_for_backward(u)
        ctx.settings = temperature, max_entries
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (u,), (temperature, max_entries) = ctx.saved_tensors, ctx.settings
        grad_u, scaled = torch.zeros_like(u), u / temperature
        for rows, columns in _tiles(len(u), max_entries):
            weight = _weigh(scaled[rows] @ u[columns].T, rows, columns, grad)
            grad_u[rows].addmm_(weight, u[columns])
            if rows != columns:
                grad_u[columns].addmm_(weight.T, u[rows])
        return grad_u.div_(temperature), None, None


def _rest(u: Tensor, temperature: float, max_entries: int | None) -> Tensor:
    """r_n = log of the sum of exp(<u_n, u_m> / tau) over all m but n - 1, n and n + 1; NOTHING where there is none."""
    if max_entries is None:  # all N^2 similarities are held, for the backward pass too
        logits = (u / temperature) @ u.T
        for offset in (-1, 0, 1):
            logits.diagonal(offset).fill_(NOTHING)
        return logits.logsumexp(dim=1)
    sums: Tensor = _Sums.apply(u, temperature, max_entries)  # type: ignore[no-untyped-call]
    nobody = sums == 0
    return sums.masked_fill(nobody, 1).log().masked_fill(nobody, NOTHING)


def _tiles(n: int, max_entries: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of square tiles on and above the diagonal, of at most max_entries each (or one)."""
    side = max(1, math.isqrt(max_entries))
    parts = [slice(start, min(start + side, n)) for start in range(0, n, side)]
    return itertools.combinations_with_replacement(parts, 2)


def _far_exponentials(tile: Tensor, rows: slice, columns: slice) -> Tensor:
    """E of a tile of similarities, in its memory; 0 for a step with itself and its two neighbours."""
    tile.exp_()
    for offset in (-1, 0, 1):
        tile.diagonal(rows.start - columns.start + offset).zero_()  # empty where the tile lies further away
    return tile


def _add_sums(tile: Tensor, rows: slice, columns: slice, sums: Tensor) -> None:
    """Add the sums of E over a tile's rows, and over its columns unless these are the same time steps."""
    tile = _far_exponentials(tile, rows, columns)
    sums[rows] += tile.sum(dim=1)
    if rows != columns:
        sums[columns] += tile.sum(dim=0)


def _weigh(tile: Tensor, rows: slice, columns: slice, grad: Tensor) -> Tensor:
    """E times the gradient of the sums that it is in, those of both its time steps."""
    return (grad[rows, None] + grad[columns]).mul_(_far_exponentials(tile, rows, columns))


def _negatives(rest: Tensor, pair: Tensor, boundary: Tensor) -> tuple[Tensor, Tensor]:
    """Log sums (N,) over what is neither a row itself nor (1) its positive successor, (2) one of its positives.

    These are c_n - a_n and c_n - a_{n-1} - a_n, put together by adding up: no difference of large sums is taken.
    """
    nothing = pair.new_full((1,), NOTHING)
    crossing = pair.masked_fill(~boundary, NOTHING)  # neighbours that are no positives are negatives
    after = torch.logaddexp(rest, torch.cat([crossing, nothing]))
    before, crossing_before = torch.cat([nothing, pair]), torch.cat([nothing, crossing])
    return torch.logaddexp(after, before), torch.logaddexp(after, crossing_before)


def adjacent_step(
    z: Tensor,
    temperature: float,
    form: str = "two_sided",
    *,
    mask_boundaries: bool = False,
    max_entries: int | None = MAX_ENTRIES,
) -> Tensor:
    """CaTT's loss on features per time step z (B, T, F), all windows strung together to one list of N = B T steps.

    With u = z / |z|, E[m, n] = exp(<u_m, u_n> / tau) for m != n, a_n = E[n + 1, n] and c_n = sum_m E[m, n]:
    two_sided: mean over i of -log (a_i + a_{i+1}) / ((c_i - a_i) + (c_{i+1} - a_i - a_{i+1})), i = 0 .. N - 3.
    next: mean over n of -log a_n / (c_n - a_n), n = 0 .. N - 2.
    The positives are not in the denominator, so the loss can be negative. `mask_boundaries` makes the B - 1
    neighbours in different windows negatives (a_n = 0) and leaves out anchors without a positive. 0 for N < 3.
    `max_entries` is how many similarities are held at once; with None all N^2 are, as in the authors' code.
    """
    n_cases, n_times, _ = z.shape
    if n_cases * n_times < 3 or (mask_boundaries and n_times == 1):
        return (z * 0).sum()
    z = z.flatten(0, 1)
    # A zero row stays zero and gets no gradient; that of the guarded norm would be 1 / 1e-12.
    dead = (z == 0).all(dim=-1, keepdim=True)
    u = F.normalize(z.masked_fill(dead, 0), dim=-1, eps=ZERO_NORM)
    rest = _rest(u, temperature, max_entries)
    pair = (u[:-1] * u[1:]).sum(dim=-1) / temperature  # (N - 1,) log a_n
    boundary = torch.zeros(n_cases, n_times, dtype=torch.bool, device=z.device)
    if mask_boundaries:
        boundary[:, -1] = True
    boundary = boundary.flatten()[:-1]
    not_next, not_both = _negatives(rest, pair, boundary)
    if form == "next":  # the last step of a window loses its only positive
        terms = (not_next[:-1] - pair).masked_fill(boundary, 0)
        return terms.sum() / (len(terms) - (n_cases - 1 if mask_boundaries else 0))
    # Anchor i + 1 with both neighbours; the negatives of row i are added to its own, as the authors do.
    positive = pair.masked_fill(boundary, NOTHING)
    terms = torch.logaddexp(not_next[:-2], not_both[1:-1]) - torch.logaddexp(positive[:-1], positive[1:])
    return terms.sum() / len(terms)


class CaTT(Method):
    """No views and no parts beside the encoder.

    form: "two_sided", both neighbours in time are positives, or "next", only the following step.
    mask_boundaries: the last step of a window and the first of the next one in the batch are not a positive pair
    (the authors keep these B - 1 pairs).
    chunked: False holds the similarities of all pairs of time steps at once, as the authors do (D-33): memory
    O((B T)^2), the same loss.
    """

    needs_time_steps = True
    summary = "pick the neighbouring time steps among all time steps of the batch"
    paper = "Contrast All The Time, arXiv 2410.15416"
    complexity = "one encoder pass; loss O((B T)^2 F) time and O(B T F) memory, pairs in tiles of 16 MiB"

    def __init__(
        self,
        encoder: Encoder,
        *,
        temperature: Annotated[float, Limit("a finite number, 0.025 or more", lambda tau: tau >= SHARPEST)] = 0.5,
        form: Annotated[str, one_of("two_sided", "next")] = "two_sided",
        mask_boundaries: bool = False,
        chunked: bool = True,
    ) -> None:
        super().__init__(encoder)
        self.temperature, self.form, self.mask_boundaries, self.chunked = temperature, form, mask_boundaries, chunked

    @classmethod
    def paper_params(cls, family: str | None) -> dict[str, Any]:
        # D-34. The ECG set is the exception among the large ones, 0.5, which the family does not tell: set it there.
        return {"temperature": 0.1 if family == "large" else 0.5}

    def prepare(self, train: TrainingSet) -> None:
        if train.n_times > 1:
            return
        if self.mask_boundaries:
            raise InputError(
                "The cases have 1 time step, so with mask_boundaries=True no step has a neighbour. "
                "Use longer windows, or mask_boundaries=False."
            )
        warnings.warn(
            "The cases have 1 time step: the neighbours CaTT learns from are then other cases, in random order. "
            "Use longer windows.",
            stacklevel=2,
        )

    def loss(self, batch: Batch, plan: object) -> Tensor:
        z = self.encoder(batch.x).transpose(1, 2)
        held = MAX_ENTRIES if self.chunked else None
        return adjacent_step(z, self.temperature, self.form, mask_boundaries=self.mask_boundaries, max_entries=held)
