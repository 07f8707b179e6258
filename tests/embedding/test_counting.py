"""The kernels that count on a GPU, against the operators that do the same."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dicot.model.embedding.bank import Bank
from dicot.model.embedding.contests import Contests

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SHAPES = [(1, 1), (1, 5), (1, 9), (2, 36), (6, 128), (12, 50), (70, 40), (1, 1501)]


def walks(n: int, n_channels: int, n_times: int) -> torch.Tensor:
    x = np.random.default_rng(0).normal(size=(n, n_channels, n_times)).cumsum(axis=2)
    x[n // 2 :] = x[n // 2 :].round(1)  # ties, which rounding would decide
    x[1, :, n_times // 2 :] = x[1, :, n_times // 2, None]
    return torch.from_numpy(x.astype(np.float32))


@pytest.mark.parametrize(("n_channels", "n_times"), SHAPES)
def test_shares_are_those_of_the_operators(n_channels, n_times):
    x = walks(7, n_channels, n_times).cuda()
    bank = Bank.fit(x.cpu().numpy(), seed=1).to(x)
    assert bank.chosen is not None
    fast, slow, host = bank.transform(x), replace(bank, chosen=None).transform(x), Bank.fit(x.cpu().numpy(), seed=1)
    for other in (slow.cpu(), host.transform(x.cpu())):
        torch.testing.assert_close(fast.cpu(), other, rtol=1e-6, atol=0)  # not one time step is counted otherwise


@pytest.mark.parametrize(("n_channels", "n_times"), SHAPES)
def test_contests_are_those_of_the_operators(n_channels, n_times):
    x = walks(7, n_channels, n_times).cuda()
    contests = Contests.draw(n_channels, n_times, seed=1).to(x)
    assert contests.chosen is not None
    fast, slow = contests.transform(x), replace(contests, chosen=None).transform(x)
    host = Contests.draw(n_channels, n_times, seed=1).transform(x.cpu())
    for other in (slow.cpu(), host):
        torch.testing.assert_close(fast.cpu(), other, rtol=1e-4, atol=1e-5)  # every time step is won by the same one


def test_far_from_its_ends_a_constant_wins_nothing():
    x = torch.full((2, 3, 4000), 0.1).cuda()
    contests = Contests.draw(3, 20, seed=1).to(x)
    assert contests.transform(x).square().mean() < 1e-3


@pytest.mark.parametrize(("n_channels", "n_times"), SHAPES)
def test_a_case_does_not_depend_on_its_company(n_channels, n_times):
    x = walks(9, n_channels, n_times).cuda()
    x[3] = 0.1  # a constant, where convolutions are zero but for rounding
    for part in (Bank.fit(x.cpu().numpy()).to(x), Contests.draw(n_channels, n_times).to(x)):
        whole = part.transform(x)
        for rows in ([3], [4, 3], list(range(8, -1, -1))):
            assert torch.equal(part.transform(x[rows]), whole[rows])


def test_other_lengths_and_types_than_at_fit():
    x = walks(5, 3, 200).cuda()
    bank = Bank.fit(x.cpu().numpy())
    for n_times in (20, 500):
        cases = walks(5, 3, n_times).cuda()
        fast, slow = bank.to(x).transform(cases), replace(bank.to(x), chosen=None).transform(cases)
        torch.testing.assert_close(fast, slow, rtol=1e-6, atol=0)
    assert bank.to(x.double()).chosen is None and bank.to(x.cpu()).chosen is None
