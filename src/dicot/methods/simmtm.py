"""SimMTM (NeurIPS 2023): rebuild a series from its masked copies and the other series, weighted by similarity."""

import warnings
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.methods.base import Batch, Method, projector
from dicot.methods.settings import Count, Limit, Positive, one_of
from dicot.nets.encoders import Encoder
from dicot.nets.losses import log_p_of_others

WIDTH_HIDDEN, WIDTH_PROJECTION = 256, 128
TARGETS = {"originals": False, "stack": True}  # whether the masked rows are rebuilt too, with masked targets


def markov_keep(draws: Tensor, ratio: float, run_length: float) -> Tensor:
    """Uniform draws (..., L) -> which values are kept (..., L), in runs from a two-state Markov chain.

    The first draw decides the start, each later one a move. A masked run ends with probability 1 / run_length, a kept
    one with the probability that makes `ratio` the share of masked values; that is clipped to 1, where the share cannot
    be reached with runs of this length.

    The chain is computed without a loop over L. Below both probabilities a draw swaps the states; between the two it
    leads to the one state that is the harder to leave, whatever came before; above both it changes nothing. So a state
    is that of the last pinned position, swapped as often as there were swaps since. Time and memory O(L).
    """
    leave_masked = 1 / run_length
    leave_kept = min(1.0, leave_masked * ratio / (1 - ratio))
    low, high = min(leave_masked, leave_kept), max(leave_masked, leave_kept)
    first = torch.zeros_like(draws, dtype=torch.bool)
    first[..., :1] = True
    swap = (draws < low) & ~first
    pinned = ((draws >= low) & (draws < high)) | first
    pin = torch.where(first, draws > ratio, leave_masked > leave_kept)  # the state there, True = kept
    odd = swap.cumsum(-1) % 2 == 1
    # Position n of `base` holds the state before any swap that follows pin n. The positions that are no pin are
    # written to one more position that is never read: no cummax, which on CUDA takes one block of threads per row.
    number = pinned.cumsum(-1) - 1
    spare = draws.shape[-1]
    base = torch.zeros(*draws.shape[:-1], spare + 1, dtype=torch.bool, device=draws.device)
    base.scatter_(-1, number.masked_fill(~pinned, spare), pin ^ odd)
    return base.gather(-1, number) ^ odd


def mask_runs(x: Tensor, ratio: float, run_length: float) -> Tensor:
    """x with a share `ratio` of its values set to 0, in runs of mean length `run_length` along all of x."""
    draws = torch.rand(x.numel(), device=x.device)
    return x.masked_fill(~markov_keep(draws, ratio, run_length).view_as(x), 0)


# A stack has N = (P + 1) B rows: B originals, then copy 1 of all, copy 2 of all and so on; row r shows series r mod B.


def copies_contrast(log_p: Tensor, n_series: int) -> Tensor:
    """Each row of a stack must find the P other rows of its series: summed over those, averaged over the N rows."""
    n_rows = len(log_p)
    n_views = n_rows // n_series
    by_view = log_p.reshape(n_views, n_series, n_views, n_series)
    own = by_view.diagonal(dim1=1, dim2=3).permute(2, 0, 1)  # (B, P + 1, P + 1)
    itself = torch.eye(n_views, dtype=torch.bool, device=log_p.device)
    return -own.masked_fill(itself, 0).sum() / n_rows


def aggregate(weights: Tensor, features: Tensor) -> Tensor:
    """Weights (R, N) and something per row (N, ...) -> (R, ...): each row's weighted sum over the stack."""
    return (weights @ features.flatten(1)).reshape(-1, *features.shape[1:])


def uncertainty_weighted(losses: list[Tensor], weights: Tensor) -> Tensor:
    """sum_i loss_i / (2 w_i^2) + log(1 + w_i^2): the second term keeps the weights w (n,) from growing without end."""
    squares = weights.square()
    return (torch.stack(losses) * 0.5 / squares + torch.log1p(squares)).sum()


class SimMTM(Method):
    """copies: masked copies of each series. ratio: share of masked values. run_length: mean length of a masked run.

    temperature: of the softmax over the other rows, in the contrast and in the weights alike.
    target: "originals", the unmasked series are rebuilt (the paper), or "stack", every row as it went in, the masked
    ones masked (the authors' classification code).
    """

    needs_time_steps = True
    summary = "rebuild a series from masked copies and the other series, weighted by learned similarity"
    paper = "SimMTM, A Simple Pre-Training Framework for Masked Time-Series Modeling, NeurIPS 2023"
    complexity = "one encoder pass over N = (copies + 1) B cases; loss O(N B T C) time, O(N T C + N^2) memory"

    def __init__(
        self,
        encoder: Encoder,
        *,
        copies: Count = 3,
        ratio: Annotated[float, Limit("a number above 0 and below 1", lambda share: 0 < share < 1)] = 0.5,
        run_length: Annotated[float, Limit("a finite number, 1 or more", lambda length: length >= 1)] = 3,
        temperature: Positive = 0.2,
        target: Annotated[str, one_of(*TARGETS)] = "originals",
    ) -> None:
        super().__init__(encoder)
        if ratio > (highest := run_length / (run_length + 1)):
            warnings.warn(
                f"Masked runs of mean length {run_length} mask a share of {highest:.2f} at most; got ratio {ratio}. "
                "Lower ratio or raise run_length.",
                stacklevel=2,
            )
        self.copies, self.ratio, self.run_length, self.temperature = copies, ratio, run_length, temperature
        self.target = target
        self.projector = projector(encoder.dim, WIDTH_HIDDEN, WIDTH_PROJECTION)  # D-32
        self.decoder = nn.Conv1d(encoder.dim, encoder.n_channels, kernel_size=1)  # a Linear per time step
        self.loss_weights = nn.Parameter(torch.ones(2))

    def loss(self, batch: Batch, plan: object) -> Tensor:
        n_series = len(batch.x)
        copies = mask_runs(batch.x.repeat(self.copies, 1, 1), self.ratio, self.run_length)
        stack = torch.cat([batch.x, copies])  # (N, C, T)
        features: Tensor = self.encoder(stack)  # (N, F, T)
        log_p = log_p_of_others(self.projector(features.mean(dim=-1)), self.temperature)  # (N, N)
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
