"""Slow reference implementations beside the encoders, written from the sheet with sums over time steps."""

import numpy as np
import pytest
import torch

from dicot.nets.encoders import FCN, ResNet


def convolve(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """(C, T) -> (O, T): an index outside the series reads the nearest end of it."""
    kernel, n_times = weight.shape[2], x.shape[1]
    left = (kernel - 1) // 2
    out = np.zeros((weight.shape[0], n_times))
    for t in range(n_times):
        reads = [min(max(t + j - left, 0), n_times - 1) for j in range(kernel)]
        out[:, t] = np.einsum("ock,ck->o", weight, x[:, reads]) + bias
    return out


def apply(conv: torch.nn.Conv1d, x: np.ndarray) -> np.ndarray:
    return convolve(x, conv.weight.detach().numpy(), conv.bias.detach().numpy())


def normalise(norm: torch.nn.BatchNorm1d, x: np.ndarray) -> np.ndarray:
    mean, var = norm.running_mean.numpy()[:, None], norm.running_var.numpy()[:, None]
    weight, bias = norm.weight.detach().numpy()[:, None], norm.bias.detach().numpy()[:, None]
    return (x - mean) / np.sqrt(var + norm.eps) * weight + bias


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def slow_fcn(encoder: FCN, x: np.ndarray) -> np.ndarray:
    for conv, norm in zip(encoder.convs, encoder.norms, strict=True):
        x = relu(normalise(norm, apply(conv, x)))
    return x


def slow_resnet(encoder: ResNet, x: np.ndarray) -> np.ndarray:
    for block in encoder.blocks:
        y = x
        for number, (conv, norm) in enumerate(zip(block.convs, block.norms, strict=True)):
            y = normalise(norm, apply(conv, y))
            if (number < 2) if encoder.original else (number == 2):
                y = relu(y)
        shortcut = x if isinstance(block.shortcut, torch.nn.Identity) else apply(block.shortcut, x)
        x = relu(y + normalise(block.shortcut_norm, shortcut))
    return x


CASES = [
    (FCN, {}, slow_fcn),
    (ResNet, {}, slow_resnet),
    (ResNet, {"original": True}, slow_resnet),
]


@pytest.mark.parametrize(("kind", "extra", "slow"), CASES, ids=["fcn", "resnet", "resnet-original"])
@pytest.mark.parametrize("n_times", [5, 23])
def test_matches_the_slow_form(kind, extra, slow, n_times):
    torch.manual_seed(1)
    encoder = kind(n_channels=2, dim=8, **extra).double()
    x = torch.randn(3, 2, n_times, dtype=torch.float64)
    with torch.no_grad():
        encoder.train()(x)  # statistics that are not their initial values
        got = encoder.eval()(x).numpy()
    expected = np.stack([slow(encoder, case.numpy()) for case in x])
    np.testing.assert_allclose(got, expected, atol=1e-10)


@pytest.mark.parametrize("kind", [FCN, ResNet])
def test_series_shorter_than_five_are_padded_with_zeros_on_both_sides(kind):
    torch.manual_seed(2)
    encoder = kind(n_channels=1, dim=4).eval()
    x = torch.randn(2, 1, 2)
    padded = torch.nn.functional.pad(x, (1, 2))
    assert torch.equal(encoder(x), encoder(padded)[..., 1:3])
