"""Inference with folded weights against the definition in eval mode."""

import pytest
import torch
from torch.nn import functional as F

from dicot.core.errors import InputError
from dicot.nets.encoders import InceptionTime
from dicot.nets.encoders.inception.convolution import joined
from dicot.nets.encoders.inception.filter_bank import Dense, Direct, Spectral
from dicot.nets.encoders.inception.inference import largest_of_three
from dicot.nets.encoders.inception.scratch import Scratch
from dicot.nets.encoders.padding import same_margins

LENGTHS = [1, 2, 7, 12, 13, 40, 64, 65, 161, 500]


def trained(n_channels: int, dim: int = 16) -> InceptionTime:
    """BatchNorm with statistics, scales and shifts as after a training, so that folding them in has something to do."""
    torch.manual_seed(0)
    encoder = InceptionTime(n_channels, dim).double()
    for module in encoder.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.3)
    with torch.no_grad():
        encoder.train()(3 * torch.randn(16, n_channels, 50, dtype=torch.float64))
    return encoder.eval()


@pytest.mark.parametrize("n_channels", [2, 130])  # fewer and more than the input projection gives
@pytest.mark.parametrize("n_times", LENGTHS)
def test_equals_the_definition(n_times, n_channels):
    encoder = trained(n_channels)
    x = torch.randn(3, n_channels, n_times, dtype=torch.float64)
    with torch.no_grad():
        expected = encoder(x)
    torch.testing.assert_close(encoder.frozen(n_times)(x), expected, atol=1e-10, rtol=0)
    single = encoder.float().frozen(n_times)(x.float())
    torch.testing.assert_close(single, expected.float(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [Spectral, Dense, Direct])
@pytest.mark.parametrize("n_times", LENGTHS)
def test_filter_bank_equals_padded_convolutions(kind, n_times):
    if kind is Dense and n_times > 40:
        pytest.skip("the dense map is for short cases")
    torch.manual_seed(n_times)
    kernels = [torch.randn(3, 4, n_taps, dtype=torch.float64) for n_taps in (10, 20, 7, 40)]
    bias, v = torch.randn(12, dtype=torch.float64), torch.randn(n_times, 5, 4, dtype=torch.float64)
    x = v.permute(1, 2, 0)
    outputs = [F.conv1d(F.pad(x, same_margins(w.shape[2]), mode="replicate"), w) for w in kernels]
    expected = torch.cat(outputs, dim=1).permute(2, 0, 1) + bias
    bank = kind(joined(kernels), bias, n_times, v)
    y, factors = bank(v, Scratch(v))
    assert factors is None
    y = y if bank.bias is None else y + bank.bias
    torch.testing.assert_close(y, expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize("n_channels", [2, 130])
@pytest.mark.parametrize("n_times", [1, 12, 40, 161])
def test_in_half_precision_two_digits_remain(n_times, n_channels):
    encoder = trained(n_channels)
    x = torch.randn(3, n_channels, n_times, dtype=torch.float64)
    with torch.no_grad():
        expected = encoder(x).float()
    coarse = encoder.float().frozen(n_times, torch.bfloat16)(x.float())
    assert coarse.dtype == torch.bfloat16
    torch.testing.assert_close(coarse.float(), expected, atol=0.03 * float(expected.abs().max()), rtol=0)


@pytest.mark.parametrize("n_times", [1, 2, 3, 20])
def test_largest_of_three(n_times):
    u = torch.randn(n_times, 2, 3)
    expected = F.max_pool1d(u.permute(1, 2, 0), 3, stride=1, padding=1).permute(2, 0, 1)
    assert torch.equal(largest_of_three(u, torch.empty_like(u)), expected)


def test_features_are_the_callers_and_input_and_weights_stay():
    encoder = trained(2).float()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    x = torch.randn(4, 2, 80)
    given = x.clone()
    frozen = encoder.frozen(80)
    first = frozen(x)
    copy = first.clone()
    assert not torch.equal(frozen(-x), copy)
    assert torch.equal(first, copy) and torch.equal(x, given)
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_frozen_means_the_weights_of_that_moment(dtype):
    encoder = trained(2).to(dtype)
    x = torch.randn(4, 2, 30, dtype=dtype)
    frozen = encoder.frozen(30)
    expected = frozen(x).clone()
    for parameter in encoder.parameters():
        parameter.data.add_(1)
    assert torch.equal(frozen(x), expected)


def test_batches_of_any_size_one_after_the_other():
    encoder = trained(2).float()
    frozen = encoder.frozen(70)
    x = torch.randn(9, 2, 70)
    whole = frozen(x).clone()
    for size in (1, 4, 9, 2):  # the memory that is used again grows and is used in part
        torch.testing.assert_close(frozen(x[:size]), whole[:size], atol=1e-6, rtol=0)


def test_refuses_other_lengths_and_channels_in_words():
    frozen = trained(2).float().frozen(30)
    with pytest.raises(InputError, match="30 time steps; got 31"):
        frozen(torch.randn(2, 2, 31))
    with pytest.raises(InputError, match="2 channels"):
        frozen(torch.randn(2, 1, 30))
