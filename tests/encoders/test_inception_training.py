"""The pass of training against autograd through the definition, and its convolutions against plain sums."""

import copy

import pytest
import torch
from torch.nn import functional as F

from dicot.nets.encoders import InceptionTime
from dicot.nets.encoders.base import same_margins
from dicot.nets.encoders.inception import convolution, definition

LENGTHS = [1, 2, 7, 12, 40, 160, 161, 333]


def padded_convolution(v: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """(T, B, C) -> (T, B, O) by PyTorch's own padding and convolution."""
    x = F.pad(v.permute(1, 2, 0), same_margins(weight.shape[2]), mode="replicate")
    return F.conv1d(x, weight).permute(2, 0, 1)


@pytest.mark.parametrize("n_taps", [1, 3, 10, 40])
@pytest.mark.parametrize("n_times", LENGTHS)
@pytest.mark.parametrize("algorithm", ["spectral", "dense"])
def test_convolution_and_its_gradients(algorithm, n_times, n_taps):
    if algorithm == "dense" and n_times > 40:
        pytest.skip("the dense map is for short cases")
    torch.manual_seed(n_times)
    v = torch.randn(n_times, 3, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, 4, n_taps, dtype=torch.float64, requires_grad=True)
    dy = torch.randn(n_times, 3, 5, dtype=torch.float64)
    expected = padded_convolution(v, weight)
    expected.backward(dy)
    left = same_margins(n_taps)[0]
    with torch.no_grad():
        y, saved = getattr(convolution, f"_{algorithm}_forward")(v, weight.permute(2, 1, 0), left)
        dv, dtaps = getattr(convolution, f"_{algorithm}_backward")(dy, saved, n_taps, left)
    torch.testing.assert_close(y, expected, atol=1e-11, rtol=0)
    torch.testing.assert_close(dv, v.grad, atol=1e-11, rtol=0)
    torch.testing.assert_close(dtaps.permute(2, 1, 0), weight.grad, atol=1e-10, rtol=0)


def with_both_forms(*args, usual=convolution.transforms) -> convolution.Transforms:
    """The matrices as they are on a GPU: (Re, Im) of the spectrum and (Im, -Re)."""
    fixed = usual(*args)
    real, imag = fixed.analysis[:, 0::2], fixed.analysis[:, 1::2]
    turned = torch.stack([imag, -real], dim=2).flatten(1)
    return fixed._replace(analysis=torch.cat([fixed.analysis, turned], dim=1))


def by_definition(encoder: InceptionTime, x: torch.Tensor) -> torch.Tensor:
    return encoder.block1(encoder.block0(encoder.input(x)))


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("n_times", LENGTHS)
def test_pass_equals_the_definition(n_times, joined, monkeypatch):
    """Features, gradients and running statistics; ties in the pooling included, since half of what it reads is 0."""
    if joined:  # as on a GPU
        monkeypatch.setattr(definition, "grouped", lambda kernels, device: [kernels])
        monkeypatch.setattr(convolution, "transforms", with_both_forms)
    torch.manual_seed(n_times)
    expected = InceptionTime(2, dim=16).double().train()
    ours = copy.deepcopy(expected)
    x, dy = torch.randn(4, 2, n_times, dtype=torch.float64), torch.randn(4, 16, n_times, dtype=torch.float64)
    h = by_definition(expected, x)
    h.backward(dy)
    features = ours(x)
    features.backward(dy)
    torch.testing.assert_close(features, h, atol=1e-10, rtol=0)
    for (name, mine), (_, other) in zip(ours.named_parameters(), expected.named_parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-8, rtol=1e-8, msg=name)
    for mine, other in zip(ours.buffers(), expected.buffers(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-12, rtol=1e-12)
