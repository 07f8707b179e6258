import numpy as np
import pytest
import torch

from dicot.methods.infots import cutout, subsequence
from dicot.methods.simmtm import markov_keep, mask_runs

SETTINGS = [(0.5, 3), (0.15, 3), (0.75, 3), (0.9, 3), (0.5, 1), (0.3, 8), (0.6, 2.5)]


def slow_keep(draws: np.ndarray, ratio: float, run_length: float) -> list[bool]:
    """The chain as the method's description has it, one value after the other."""
    leave = {False: 1 / run_length, True: 1 / run_length * ratio / (1 - ratio)}
    kept = bool(draws[0] > ratio)
    out = [kept]
    for draw in draws[1:]:
        kept ^= bool(draw < leave[kept])
        out.append(kept)
    return out


def runs(kept: np.ndarray, state: bool) -> np.ndarray:
    """Lengths of the complete runs of `state`."""
    edges = np.flatnonzero(np.diff(kept)) + 1
    lengths, first = np.diff(edges), kept[edges[:-1]]
    return lengths[first == state]


@pytest.mark.parametrize(("ratio", "run_length"), SETTINGS)
@pytest.mark.parametrize("length", [1, 2, 3, 400])
def test_the_chain_is_that_of_the_loop(ratio, run_length, length):
    draws = np.random.default_rng(length).random((5, length))
    want = [slow_keep(row, ratio, run_length) for row in draws]
    got = markov_keep(torch.from_numpy(draws), ratio, run_length)
    assert got.dtype == torch.bool
    assert got.tolist() == want
    assert [markov_keep(row, ratio, run_length).tolist() for row in torch.from_numpy(draws)] == want, "one row alone"


@pytest.mark.parametrize(("ratio", "run_length"), [(0.5, 3), (0.2, 5), (0.75, 3), (0.4, 1)])
def test_share_and_mean_run(ratio, run_length):
    torch.manual_seed(0)
    kept = (mask_runs(torch.ones(20, 5, 2000), ratio, run_length) != 0).flatten().numpy()
    assert 1 - kept.mean() == pytest.approx(ratio, abs=0.01)
    assert runs(kept, False).mean() == pytest.approx(run_length, rel=0.03)
    assert runs(kept, True).mean() == pytest.approx(run_length * (1 - ratio) / ratio, rel=0.03)


def test_values_are_kept_or_zero_and_differ_between_copies():
    torch.manual_seed(0)
    x = torch.randn(4, 3, 50, dtype=torch.float64)
    masked = mask_runs(x.repeat(2, 1, 1), 0.5, 3)
    assert masked.dtype == x.dtype and masked.shape == (8, 3, 50)
    assert ((masked == 0) | (masked == x.repeat(2, 1, 1))).all()
    assert not torch.equal(masked[:4], masked[4:])


@pytest.mark.parametrize(("start", "length"), [(0, 6), (2, 3), (5, 1), (0, 0)])
@pytest.mark.parametrize("kind", [int, torch.tensor])
def test_the_two_are_complements(start, length, kind):
    x = torch.randn(2, 3, 6)
    inside, outside = subsequence(x, kind(start), kind(length)), cutout(x, kind(start), kind(length))
    for t in range(6):
        within = start <= t < start + length
        assert torch.equal(inside[..., t], x[..., t] * within)
        assert torch.equal(outside[..., t], x[..., t] * (not within))
