import numpy as np
import pytest
import torch

from dicot.methods.cost import SeasonHead, TrendHead


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def slow_trend(head: TrendHead, h: np.ndarray) -> np.ndarray:
    outputs = []
    for conv in head.convolutions:
        weight, bias = conv.weight.detach().numpy(), conv.bias.detach().numpy()
        kernel = weight.shape[2]
        out = np.repeat(np.repeat(bias[None, :, None], len(h), 0), h.shape[2], 2)
        for t in range(h.shape[2]):
            for j in range(kernel):
                past = t - (kernel - 1) + j
                if past >= 0:
                    out[:, :, t] += h[:, :, past] @ weight[:, :, j].T
        outputs.append(out)
    return np.mean(outputs, axis=0)


@pytest.mark.parametrize(("kernels", "n_times"), [((1,), 5), ((1, 2, 4), 9), ((3, 16), 6)])
def test_trend_matches_the_slow_form_at_every_time_step(kernels, n_times):
    head = TrendHead(6, 3, kernels).double()
    h = torch.randn(2, 6, n_times, dtype=torch.float64)
    expected = slow_trend(head, h.numpy())
    for t in range(n_times):
        np.testing.assert_allclose(head(h, t).detach().numpy(), expected[..., t], atol=1e-12)


def test_trend_does_not_see_the_future():
    head, h = TrendHead(4, 2, (1, 2, 8)), torch.randn(1, 4, 12)
    changed = h.clone()
    changed[..., 7:] += 1
    torch.testing.assert_close(head(changed, 6), head(h, 6))
    assert not torch.allclose(head(changed, 7), head(h, 7))


@pytest.mark.parametrize("n_times", [1, 2, 7, 8])
def test_season_matches_the_slow_form(n_times):
    head = SeasonHead(4, 2, n_times, dropout=0.5).double().eval()
    h = torch.randn(3, 4, n_times, dtype=torch.float64)
    weight = torch.complex(head.weight_real, head.weight_imag).detach().numpy()
    bias = torch.complex(head.bias_real, head.bias_imag).detach().numpy()[:, 0]
    c = np.fft.rfft(h.numpy(), axis=2)
    out = np.empty((3, 2, n_times // 2 + 1), complex)
    for f in range(n_times // 2 + 1):
        out[:, :, f] = c[:, :, f] @ weight[f] + bias[f]
    np.testing.assert_allclose(head(h).detach().numpy(), np.fft.irfft(out, n=n_times, axis=2), atol=1e-12)
