"""The bank, the contests and the last product in C against PyTorch's operators."""

import numpy as np
import pytest
import torch

from dicot.core.gpu.device import host_threads
from dicot.model.embedding import native
from dicot.model.embedding.bank import Bank
from dicot.model.embedding.compression import Compression
from dicot.model.embedding.contests import Contests
from dicot.model.estimator import TimeSeriesEmbedder

compiled = pytest.mark.skipif(native.library() is None, reason="there is no C compiler here")
SHAPES = [(3, 1, 9), (4, 1, 150), (3, 6, 128), (2, 9, 33), (2, 2, 700), (2, 3, 5), (3, 12, 50), (2, 70, 40)]


def noise(n: int, n_channels: int, n_times: int) -> torch.Tensor:
    x = np.random.default_rng(0).normal(size=(n, n_channels, n_times)).cumsum(axis=2)
    x[-1] = x[-1].round(1)  # ties, which rounding would decide
    return torch.from_numpy(x.astype(np.float32))


def agree(bank: Bank, contests: Contests, x: torch.Tensor) -> None:
    """Not one time step is counted otherwise."""
    found = bank.transform(x), contests.transform(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "serves", lambda x: False)
        shares, outcomes = bank.transform(x), contests.transform(x)
    torch.testing.assert_close(found[0], shares, rtol=1e-6, atol=0)
    torch.testing.assert_close(found[1], outcomes, atol=1e-5, rtol=0)


@compiled
@pytest.mark.parametrize("shape", SHAPES)
def test_both_equal_the_operators(shape):
    x = noise(*shape)
    assert native.serves(x)
    agree(Bank.fit(x.numpy(), 84 * 10, seed=1), Contests.draw(*shape[1:], seed=1), x)


@compiled
def test_cases_shorter_and_longer_than_those_of_the_fit():
    bank, contests = Bank.fit(noise(5, 2, 100).numpy()), Contests.draw(2, 100)
    for n_times in (20, 333):
        agree(bank, contests, noise(3, 2, n_times))


@compiled
def test_neither_company_nor_threads_change_a_bit():
    x = noise(9, 4, 61)
    x[3] = 0.1
    for part in (Bank.fit(x.numpy()), Contests.draw(4, 61)):
        whole = part.transform(x)
        for rows in ([3], [8, 3], list(range(8, -1, -1))):
            assert torch.equal(part.transform(x[rows]), whole[rows])
        with host_threads(1):
            assert torch.equal(part.transform(x), whole)


@compiled
def test_where_a_case_is_constant_nobody_wins_and_nan_is_not_hidden():
    x = noise(3, 2, 40)
    x[1] = 0.3
    x[2, 1, 7] = torch.nan
    features = Contests.draw(2, 40).transform(x).view(3, -1, 2, 2, 128)
    assert (features[1, 0, 1] == 0).all() and features[2].isnan().all() and features[0].isfinite().all()


@compiled
def test_other_types_and_groups_of_many_channels_are_left_to_the_operators():
    assert not native.serves(noise(2, 1, 20).double())
    drawn = Contests.draw(20, 30)
    x, many = noise(2, 20, 30), Contests(drawn.taps, torch.ones_like(drawn.channels))  # as no group that was drawn
    assert drawn.most_mixed <= 9 < many.most_mixed
    exact = many.to(x.double()).transform(x.double())
    torch.testing.assert_close(many.transform(x).double(), exact, rtol=1e-4, atol=1e-5)


@compiled
@pytest.mark.parametrize(("n_in", "n_out"), [(9, 2), (700, 3), (1300, 41), (2000, 1030)])
def test_one_row_is_the_row_of_a_product(n_in, n_out):
    torch.manual_seed(0)
    compression = Compression(torch.randn(n_in), torch.randn(n_in, n_out))
    z = torch.randn(5, n_in)
    whole = compression.transform(z)
    for i in range(5):
        assert torch.equal(compression.transform(z[i : i + 1]), whole[i : i + 1])
    split = compression._split or native.SPLITS[0]
    mine = native.one_row(z[:1] - compression.mean, compression.weight, split)
    torch.testing.assert_close(mine, whole[:1], atol=1e-3, rtol=1e-4)


@compiled
def test_how_long_sums_are_split_is_found_out_or_not_used():
    torch.manual_seed(0)
    rows, weight = torch.randn(4, 1500), torch.randn(1500, 7)
    split = native.find_split(rows, weight)
    if split is not None:
        assert torch.equal(native.one_row(rows[3:], weight, split), (rows @ weight)[3:])
    assert native.find_split(rows.double(), weight.double()) is None
    assert native.find_split(rows, weight[:, :1].contiguous()) is None


def test_without_c_vectors_are_the_same_but_for_rounding(waves, monkeypatch):
    model = TimeSeriesEmbedder(preset="best", steps=1, random_state=0, device="cpu").fit(waves.x)
    with_c = model.transform(waves.x)
    for name in ("embedding.native", "encoders.inception.single"):
        monkeypatch.setattr(f"dicot.{name}.library", lambda: None)
    model = TimeSeriesEmbedder(preset="best", steps=1, random_state=0, device="cpu").fit(waves.x)
    without = model.transform(waves.x)
    np.testing.assert_allclose(model.transform(waves.x[3:4]), without[3:4], atol=1e-5)  # by products of other sizes
    apart = np.linalg.norm(without - with_c, axis=1) / np.linalg.norm(with_c, axis=1)
    assert apart.max() < 1e-3  # principal components of few cases are only so well defined
