"""The bank of dilated kernels against slow loops, known signals and aeon's MiniRocket."""

import os
from itertools import combinations

import numpy as np
import pytest
import torch

from dicot.model.kernels import Bank, kernels


def noise(n: int, n_channels: int, n_times: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, n_channels, n_times)).cumsum(axis=2)


def slow_convolution(bank: Bank, case: np.ndarray, number: int, kernel: int) -> np.ndarray:
    """One kernel at one dilation, time step by time step, channel by channel."""
    taps = list(combinations(range(9), 3))[kernel]
    dilation, n_times = bank.dilations[number], case.shape[1]
    y = np.zeros(n_times)
    for channel in np.flatnonzero(bank.channels[number, kernel].numpy()):
        for t in range(n_times):
            for tap in range(9):
                at = t + (tap - 4) * dilation
                if 0 <= at < n_times:
                    y[t] += (2 if tap in taps else -1) * case[channel, at]
    return y


@pytest.mark.parametrize(("n_channels", "n_times"), [(1, 9), (1, 60), (4, 40), (12, 30)])
def test_convolutions_and_shares_equal_a_slow_loop(n_channels, n_times):
    x = noise(5, n_channels, n_times)
    bank = Bank.fit(x, 84 * 7, seed=3)
    bank = bank.to(torch.empty(0, dtype=torch.float64))
    features = bank(torch.from_numpy(x)).numpy()
    assert features.shape == (5, 84 * 7) == (5, bank.n_features)
    column = 0
    convolved = list(bank.convolutions(torch.from_numpy(x)))
    for number, count in enumerate(bank.counts):
        y = convolved[number].numpy()
        margin, first = 4 * bank.dilations[number], sum(bank.counts[:number])
        for kernel in (0, 1, 40, 83):
            for case in range(5):
                expected = slow_convolution(bank, x[case], number, kernel)
                np.testing.assert_allclose(y[case, kernel], expected, atol=1e-9)
                whole = (number + kernel) % 2 == 0
                seen = expected if whole else expected[margin : n_times - margin]
                for j in range(count):
                    share = (seen > bank.biases[kernel, first + j].item()).mean()
                    assert features[case, column + 84 * j + kernel] == pytest.approx(share, abs=1e-9)
        column += 84 * count


def test_kernels_have_six_taps_of_minus_one_and_three_of_two():
    taps = kernels()
    assert taps.shape == (84, 9) and len(taps.unique(dim=0)) == 84
    assert (taps.sum(dim=1) == 0).all() and ((taps == 2).sum(dim=1) == 3).all()


def test_known_signals():
    """Kernels sum to zero: a constant far from the ends is 0 everywhere, whatever its level."""
    bank = Bank.fit(noise(10, 1, 100), seed=0)
    flat = torch.ones(1, 1, 2000)
    shares = bank(flat)[0].view(-1, 84)
    row = 0
    for number, (dilation, count) in enumerate(zip(bank.dilations, bank.counts, strict=True)):
        for j in range(count):
            below = (bank.biases[:, sum(bank.counts[:number]) + j] < 0).float()
            inner = torch.arange(84) % 2 != number % 2
            assert torch.equal(shares[row][inner], below[inner])
            assert ((shares[row] - below).abs() <= 8 * dilation / 2000).all()
            row += 1


def test_same_seed_same_bytes_and_another_seed_others():
    x = noise(20, 3, 50)
    one, again, other = (Bank.fit(x, 840, seed=seed) for seed in (1, 1, 2))
    for mine, theirs in zip(one.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)
    assert not torch.equal(one.biases, other.biases)


@pytest.mark.slow
@pytest.mark.skipif("DICOT_DATA" not in os.environ, reason="needs the UCR sets in the folder DICOT_DATA")
def test_as_good_as_minirocket():
    """With as many features and the same classifier; sets of the development half."""
    aeon = pytest.importorskip("aeon.transformations.collection.convolution_based")
    from dicot.data.datasets import load
    from dicot.judge.protocols import Features
    from dicot.judge.protocols.embeddings import fit_ridge

    ours, theirs = [], []
    for name in ("CBF", "GunPointAgeSpan", "ItalyPowerDemand", "Plane", "SonyAIBORobotSurface1", "ToeSegmentation2"):
        split = load(name)
        train, test = split.train, split.test
        assert test is not None
        rocket = aeon.MiniRocket(n_kernels=2016, random_state=1).fit(train.x)
        bank = Bank.fit(train.x, seed=1)
        for scores, transform in (
            (ours, lambda x, bank=bank: bank(torch.from_numpy(np.asarray(x, np.float32))).numpy()),
            (theirs, lambda x, rocket=rocket: np.asarray(rocket.transform(x), np.float32)),
        ):
            head = fit_ridge(Features(transform(train.x), train.y))
            scores.append(100 * float((head.predict(transform(test.x)) == test.y).mean()))
    assert abs(np.mean(ours) - np.mean(theirs)) < 1.0, (ours, theirs)
