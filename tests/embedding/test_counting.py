"""What the bank and the contests count in C and on a GPU, against PyTorch's operators."""

import numpy as np
import pytest
import torch

from dicot.core.device import host_threads
from dicot.model import kernels
from dicot.model.kernels import Bank, Contests

compiled = pytest.mark.skipif(kernels.C.library is None, reason="there is no C code here")
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SHAPES = [(1, 1), (3, 5), (1, 9), (2, 36), (6, 128), (9, 33), (12, 50), (70, 40), (1, 1501)]


def walks(n: int, n_channels: int, n_times: int) -> torch.Tensor:
    x = np.random.default_rng(0).normal(size=(n, n_channels, n_times)).cumsum(axis=2)
    x[n // 2 :] = x[n // 2 :].round(1)  # ties, which rounding would decide
    x[1, :, n_times // 2 :] = x[1, :, n_times // 2, None]
    return torch.from_numpy(x.astype(np.float32))


def by_operators(part: Bank | Contests, x: torch.Tensor) -> torch.Tensor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_is_compiled", lambda x: False)
        return part(x)


@compiled
@pytest.mark.parametrize(("n_channels", "n_times"), SHAPES)
def test_c_counts_as_the_operators_do(n_channels, n_times):
    """Not one time step is counted otherwise, in cases of the fitted length and of others."""
    x = walks(4, n_channels, n_times)
    assert kernels._is_compiled(x)
    bank, contests = Bank.fit(x.numpy(), 84 * 10, seed=1), Contests.draw(n_channels, n_times, seed=1)
    for cases in (x, walks(3, n_channels, 20), walks(3, n_channels, 333)):
        torch.testing.assert_close(bank(cases), by_operators(bank, cases), rtol=1e-6, atol=0)
        torch.testing.assert_close(contests(cases), by_operators(contests, cases), rtol=0, atol=1e-5)


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=compiled), pytest.param("cuda", marks=on_gpu)])
def test_neither_company_nor_threads_change_a_bit(device):
    x = walks(9, 4, 61).to(device)
    x[3] = 0.1  # a constant, where convolutions are zero but for rounding
    for part in (Bank.fit(x.cpu().numpy()).to(x), Contests.draw(4, 61).to(x)):
        whole = part(x)
        for rows in ([3], [8, 3], list(range(8, -1, -1))):
            assert torch.equal(part(x[rows]), whole[rows])
        with host_threads(1):
            assert torch.equal(part(x), whole)


@compiled
def test_nan_is_not_hidden():
    x = walks(3, 2, 40)
    x[2, 1, 7] = torch.nan
    features = Contests.draw(2, 40)(x)
    assert features[2].isnan().all() and features[:2].isfinite().all()


@on_gpu
@pytest.mark.parametrize(("n_channels", "n_times"), SHAPES)
def test_a_gpu_counts_as_the_operators_and_the_cpu_do(n_channels, n_times):
    x = walks(7, n_channels, n_times).cuda()
    for host in (Bank.fit(x.cpu().numpy(), seed=1), Contests.draw(n_channels, n_times, seed=1)):
        part = host.to(x)
        assert kernels._is_compiled(x)
        for other in (by_operators(part, x).cpu(), host(x.cpu())):
            torch.testing.assert_close(part(x).cpu(), other, rtol=1e-4, atol=1e-5)
