import numpy as np
import pytest
import torch

from dicot.nets.views import jitter, permute, scale, segment_order


def slow_order(cuts: list[int], rank: list[int], n_times: int) -> np.ndarray:
    """Split the time axis, sort the pieces by rank, join them again."""
    pieces = np.split(np.arange(n_times), sorted(cuts))
    # A cut at 0 makes an empty first piece, which has number 0 all the same.
    return np.concatenate([pieces[j] for j in sorted(range(len(pieces)), key=lambda j: rank[j])])


@pytest.mark.parametrize("seed", range(20))
def test_segments_are_put_in_the_order_of_their_rank(seed):
    rng = np.random.default_rng(seed)
    n_times, most = int(rng.integers(3, 30)), 6
    points = [rng.choice(n_times, size=int(rng.integers(0, min(most, n_times))), replace=False) for _ in range(4)]
    rank = np.stack([rng.permutation(most + 1) for _ in range(4)])
    cuts = torch.zeros(4, n_times, dtype=torch.bool)
    for row, chosen in enumerate(points):
        cuts[row, torch.from_numpy(chosen)] = True
    got = segment_order(cuts, torch.from_numpy(rank))
    for row, chosen in enumerate(points):
        assert got[row].tolist() == slow_order(chosen.tolist(), rank[row].tolist(), n_times).tolist()


def test_permuting_moves_whole_segments_of_all_channels():
    torch.manual_seed(0)
    time = torch.arange(40.0)
    x = torch.stack([time, time + 100]).expand(200, -1, -1)
    out = permute(x, 8)
    assert torch.equal(out[:, 1], out[:, 0] + 100)
    assert torch.equal(out[:, 0].sort().values, x[:, 0])
    breaks = (out[:, 0].diff(dim=1) != 1).sum(dim=1)
    assert breaks.max() == 6, "7 segments at most"
    assert len(set(breaks.tolist())) == 7, "each case draws its own number of segments"


def test_number_place_and_order_of_the_cuts_have_the_right_distribution():
    """With max_segments = 3 there is a cut for half the cases; it moves something unless it is at 0 or not swapped."""
    torch.manual_seed(0)
    n, n_times = 40_000, 12
    out = permute(torch.arange(float(n_times)).expand(n, 1, -1), 3)[:, 0]
    first = out[out[:, 0] != 0, 0]  # where two segments were swapped, the case begins with the cut
    assert len(first) / n == pytest.approx(0.5 * 0.9 * 0.5, abs=0.01)
    share = torch.bincount(first.long(), minlength=n_times) / len(first)
    assert share[1:10].tolist() == pytest.approx([1 / 9] * 9, abs=0.015)
    assert share[10:].sum() == 0, "no cut after T - 3"


def test_one_factor_per_case_and_channel_or_per_time_step():
    torch.manual_seed(0)
    x = torch.ones(400, 3, 50, dtype=torch.float64)
    by_channel, by_step = scale(x, 2.0, 1.1), scale(x, 2.0, 1.1, per_step=True)
    assert torch.equal(by_channel, by_channel[:, :, :1].expand_as(x))
    assert torch.equal(by_step, by_step[:, :1].expand_as(x))
    assert len(by_channel.unique()) == 400 * 3 and len(by_step.unique()) == 400 * 50
    assert by_step.mean().item() == pytest.approx(2.0, abs=0.03)
    assert by_step.std().item() == pytest.approx(1.1, abs=0.03)
    assert by_channel.dtype == torch.float64


def test_jitter_follows_each_channel():
    torch.manual_seed(0)
    x = torch.randn(50, 2, 200)
    noise = jitter(x, torch.tensor([[0.5], [3.0]])) - x
    assert noise.std(dim=(0, 2)).tolist() == pytest.approx([0.5, 3.0], rel=0.05)
    assert torch.equal(jitter(x, 0.0), x)
