"""Runs of masked values from a two-state Markov chain (SimMTM)."""

import torch
from torch import Tensor


def markov_keep(draws: Tensor, ratio: float, run_length: float) -> Tensor:
    """Uniform draws (..., L) -> which values are kept (..., L): the first draw decides the start, each later a move.

    A masked run ends with probability 1 / run_length, a kept one with the probability that makes `ratio` the share of
    masked values; that is clipped to 1, where the share cannot be reached with runs of this length.

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
    # written to one more place that is never read: no cummax, which takes one block of threads for a whole row on CUDA.
    number = pinned.cumsum(-1) - 1
    spare = draws.shape[-1]
    base = torch.zeros(*draws.shape[:-1], spare + 1, dtype=torch.bool, device=draws.device)
    base.scatter_(-1, number.masked_fill(~pinned, spare), pin ^ odd)
    return base.gather(-1, number) ^ odd


def mask_runs(x: Tensor, ratio: float, run_length: float) -> Tensor:
    """x with a share `ratio` of its values set to 0, in runs of mean length `run_length` along the last axis.

    One chain runs over the flattened array, so that a run may cross from one channel or case into the next.
    """
    draws = torch.rand(x.numel(), device=x.device)
    return x.masked_fill(~markov_keep(draws, ratio, run_length).view_as(x), 0)
