"""Cases that end before their tensor does, beside cases that are cut there."""

import pytest
import torch

from dicot.nets.encoders import InceptionTime
from dicot.nets.encoders.base import Encoder


def make(n_channels: int = 2) -> InceptionTime:
    torch.manual_seed(0)
    encoder = InceptionTime(n_channels, dim=16)
    for norm in (module for module in encoder.modules() if isinstance(module, torch.nn.BatchNorm1d)):
        torch.nn.init.uniform_(norm.weight, 0.5, 2)
        torch.nn.init.normal_(norm.bias)
    return encoder.double().train()


def all_of(encoder: Encoder, y: torch.Tensor, dy: torch.Tensor) -> list[torch.Tensor]:
    (y * dy).sum().backward()
    gradients = [p.grad for p in encoder.parameters() if p.grad is not None]
    return [y.detach(), *gradients, *encoder.buffers()]


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(
    ("n_times", "lengths"), [(3, (1, 2, 3)), (8, (1, 5, 8)), (40, (2, 27, 39)), (170, (3, 165, 170))]
)
def test_features_gradients_and_statistics(n_times, lengths, masked):
    """What lies behind the end does not matter; 170 time steps are convolved in two segments."""
    for length in lengths:
        x, keep = torch.randn(4, 2, n_times, dtype=torch.float64), torch.rand(4, n_times) > 0.3
        dy = torch.randn(4, 16, length, dtype=torch.float64)
        cut, padded = make(), make()
        expected = all_of(cut, cut(x[..., :length], keep[:, :length] if masked else None), dy)
        x[..., length:] = torch.nan
        y = padded(x, keep if masked else None, torch.tensor(length))
        assert y.shape == (4, 16, n_times)
        assert torch.equal(y[..., length:], y[..., length - 1 : length].expand_as(y[..., length:]))
        for mine, other in zip(all_of(padded, y[..., :length], dy), expected, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-9)


def test_the_gradient_of_the_repeated_time_step_adds_up():
    """Whoever reads behind the end reads the last time step."""
    x, dy = torch.randn(3, 2, 9, dtype=torch.float64), torch.randn(3, 16, 9, dtype=torch.float64)
    folded = torch.cat([dy[..., :4], dy[..., 4:].sum(dim=-1, keepdim=True)], dim=-1)
    cut, padded = make(), make()
    expected = all_of(cut, cut(x[..., :5]), folded)[1:]
    for mine, other in zip(all_of(padded, padded(x, None, torch.tensor(5)), dy)[1:], expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-9)
