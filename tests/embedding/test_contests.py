"""Contests between kernels against slow loops, known signals and aeon's Hydra."""

import numpy as np
import pytest
import torch

from dicot.model.kernels import N_GROUPS, Contests


def noise(n: int, n_channels: int, n_times: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, n_channels, n_times)).cumsum(axis=2)


def doubles(contests: Contests) -> Contests:
    return contests.to(torch.empty(0, dtype=torch.float64))


def slow_features(contests: Contests, case: np.ndarray) -> list[float]:
    """Dilation by dilation, group by group, time step by time step; case (C, T)."""
    features = []
    for number, dilation in enumerate(contests.dilations):
        for series, values in enumerate((case, np.diff(case, axis=1))):
            n_times = values.shape[1]
            won, lost = [], []
            for taps, channels in zip(contests.taps[number, series], contests.channels[number, series], strict=True):
                mixed = channels.numpy() @ values
                gains, lasts = np.zeros(8), np.zeros(8)
                for t in range(n_times):
                    places = [t + (tap - 4) * dilation for tap in range(9)]
                    seen = np.array([mixed[at] if 0 <= at < n_times else 0.0 for at in places])
                    fits = taps.numpy() @ seen
                    gains[fits.argmax()] += fits.max()
                    lasts[fits.argmin()] += 1
                won += list(np.sqrt(np.maximum(gains, 0) / n_times))
                lost += list(np.sqrt(lasts / n_times))
            features += won + lost
    return features


@pytest.mark.parametrize(("n_channels", "n_times"), [(1, 9), (1, 40), (4, 20), (12, 20)])
def test_features_equal_a_slow_loop(n_channels, n_times):
    x = noise(3, n_channels, n_times)
    contests = doubles(Contests.draw(n_channels, n_times, seed=3, n_groups=4))
    features = contests(torch.from_numpy(x)).numpy()
    assert features.shape == (3, contests.n_features) == (3, len(contests.dilations) * 2 * 2 * 4 * 8)
    np.testing.assert_allclose(features, [slow_features(contests, case) for case in x], atol=1e-9)


@pytest.mark.parametrize(("n_channels", "n_times"), [(1, 100), (3, 50), (20, 30)])
def test_the_same_as_aeons_hydra_with_its_kernels(n_channels, n_times):
    pytest.importorskip("aeon", reason="aeon is not installed")
    from aeon.transformations.collection.convolution_based import HydraTransformer

    x = noise(6, n_channels, n_times).astype(np.float32)
    threads = torch.get_num_threads()
    theirs = HydraTransformer(n_groups=8, random_state=1, output_type="numpy").fit(x)
    counts = theirs.transform(x)  # soft counts of wins, counts of last places
    torch.set_num_threads(threads)  # aeon sets them for the whole process
    drawn = torch.stack(theirs._hydra.idx)  # (D, 2, G, mixed)
    channels = (drawn.unsqueeze(-1) == torch.arange(n_channels)).sum(dim=3) if n_channels > 1 else drawn[..., :1] + 1
    ours = Contests(theirs._hydra.W.view(len(drawn), 2, 4, 8, 9), channels)
    steps = torch.tensor([n_times, n_times - 1]).view(1, 2, 1).expand(len(drawn), 2, 64).flatten()
    features = ours(torch.from_numpy(x)) ** 2 * steps
    np.testing.assert_allclose(features.numpy(), np.maximum(counts, 0), rtol=1e-3, atol=1e-3)


def test_kernels_have_mean_zero_and_absolute_sum_one():
    """The mean exactly, and in TF32 too, which keeps ten binary digits after the first."""
    taps = Contests.draw(1, 200).taps
    assert taps.shape == (5, 2, N_GROUPS, 8, 9) and len(taps.flatten(0, 3).unique(dim=0)) == 5 * 2 * N_GROUPS * 8
    assert not taps.double().sum(dim=-1).any()
    torch.testing.assert_close(taps.abs().sum(dim=-1), torch.ones(5, 2, N_GROUPS, 8), atol=0.01, rtol=0)
    mantissas = torch.frexp(taps).mantissa * 2**11
    assert torch.equal(mantissas, mantissas.round())


def test_nobody_wins_where_nothing_happens():
    """A constant stretch gives 0: only the time steps that see its ends count, four at either end."""
    contests = Contests.draw(1, 9)
    assert not contests(torch.zeros(2, 1, 50)).any()
    for level in (0.1, 1000.1):
        lost = contests(torch.full((2, 1, 1000), level)).view(2, 2, 2, N_GROUPS, 8)[:, :, 1]
        shares = (lost**2).sum(dim=-1)
        ties = shares[:, 0] * 1000 - 8  # where two kernels give the very same both come last
        torch.testing.assert_close(ties, ties.round(), atol=1e-4, rtol=0)
        assert (ties.round() >= 0).all() and ties.sum() < 5
        assert not shares[:, 1].any(), "the first difference is 0 everywhere"


def test_same_seed_same_bytes_and_another_seed_others():
    one, again, other = (Contests.draw(3, 50, seed=seed) for seed in (1, 1, 2))
    for mine, theirs in zip(one.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)
    assert not torch.equal(one.taps, other.taps) and not torch.equal(one.channels, other.channels)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
@pytest.mark.parametrize("n_channels", [1, 3, 20])
def test_a_gpu_gives_what_a_cpu_gives_and_a_graph_replays_it(n_channels):
    x = torch.from_numpy(noise(16, n_channels, 120)).float()
    x[3, :, 20:90] = 0.7
    contests = Contests.draw(n_channels, 120)
    expected = contests(x)
    there, cases = contests.to(x.cuda()), x.cuda()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.inference_mode():
        found = there(cases)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.inference_mode():
        replayed = there(cases)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(replayed, found)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
