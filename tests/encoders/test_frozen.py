"""Inference with folded weights against the definition in eval mode."""

import pytest
import torch
from torch import nn

from dicot.core.errors import InputError
from dicot.nets.encoders import ENCODERS, Encoder, build_encoder

LENGTHS = [1, 2, 12, 13, 64, 65, 200]


def trained(name: str = "inception_time", n_channels: int = 2, dtype: torch.dtype = torch.float32) -> Encoder:
    """BatchNorm with statistics, scales and shifts as after a training, so that folding them in has something to do."""
    torch.manual_seed(0)
    encoder = build_encoder(name, {"n_channels": n_channels, "dim": 16}).to(dtype)
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.3)
    with torch.no_grad():
        encoder.train()(3 * torch.randn(16, n_channels, 50, dtype=dtype))
    return encoder.eval()


def both(encoder: Encoder, x: torch.Tensor, dtype: torch.dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """What the frozen network gives, and what the definition has."""
    with torch.inference_mode():
        return encoder.frozen(x.shape[2], dtype)(x), encoder(x)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-5)])
@pytest.mark.parametrize("n_channels", [2, 130])  # fewer and more than InceptionTime's input projection gives
def test_features_equal_the_definition(name, dtype, tolerance, n_channels):
    encoder = trained(name, n_channels, dtype)
    for n_times in LENGTHS:
        found, expected = both(encoder, torch.randn(3, n_channels, n_times, dtype=dtype))
        torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("n_times", [1, 12, 65])
def test_in_half_precision_two_digits_remain(n_times):
    found, expected = both(trained(), torch.randn(3, 2, n_times), torch.bfloat16)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, atol=0.03 * float(expected.abs().max()), rtol=0)
    dead = (expected == 0).double().mean()
    assert abs((found == 0).double().mean() - dead) < 0.03, "ReLU's zeros are zeros"


def test_features_are_the_callers_and_weights_those_of_that_moment():
    encoder, x = trained(), torch.randn(9, 2, 70)
    frozen, given = encoder.frozen(70), x.clone()
    first = frozen(x)
    copy = first.clone()
    assert not torch.equal(frozen(-x), copy)
    assert torch.equal(first, copy) and torch.equal(x, given)
    for parameter in encoder.parameters():
        parameter.data.add_(1)
    assert torch.equal(frozen(x), copy)
    for size in (1, 4, 9, 2):  # the memory that is used again grows and is used in part
        torch.testing.assert_close(frozen(x[:size]), copy[:size], atol=1e-6, rtol=0)


def test_refuses_other_lengths_and_channels():
    frozen = trained().frozen(30)
    for n_channels, n_times, named in ((2, 31, "30 time steps; got 31"), (1, 30, "2 channels")):
        with pytest.raises(InputError, match=named):
            frozen(torch.randn(2, n_channels, n_times))
