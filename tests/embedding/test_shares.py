"""Poolings that read every layer while the encoder takes its fast path."""

import numpy as np
import pytest
import torch
from torch import nn

from dicot.model.embedding import embed, pooled_dim
from dicot.nets.encoders import ENCODERS, InceptionTime, as_encoder, build_encoder
from dicot.nets.encoders.base import Encoder

POOLING = "shares+mean+max"


def made(name: str, n_channels: int, dtype: torch.dtype = torch.float32, **more) -> Encoder:
    torch.manual_seed(0)
    encoder = build_encoder(name, {"n_channels": n_channels, "dim": 16, **more}).to(dtype)
    with torch.no_grad():
        encoder.train()(torch.randn(16, n_channels, 60, dtype=dtype))
    return encoder.eval()


def slow(encoder: Encoder, x: np.ndarray) -> np.ndarray:
    """The definition, from the features of the plain path."""
    with torch.no_grad():
        features = {name: h.numpy() for name, h in encoder.features(torch.from_numpy(x)).items()}
    last = features[list(features)[-1]]
    shares = [(features[name] > 0).mean(axis=2) for name in encoder.centred_layers()]
    return np.concatenate([*shares, last.mean(axis=2), last.max(axis=2)], axis=1)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n_channels", "n_times"), [(1, 1), (1, 24), (3, 150), (130, 40)])
def test_equals_the_definition(name, dtype, n_channels, n_times):
    encoder = made(name, n_channels, dtype)
    x = torch.randn(20, n_channels, n_times, dtype=dtype).numpy()
    found, expected = embed(encoder, x, pooling=POOLING, device="cpu"), slow(encoder, x)
    assert found.shape == expected.shape == (20, pooled_dim(encoder, POOLING))
    # A value within rounding of zero may be counted or not, which moves a share by one time step.
    counted = np.abs(found - expected) > 2e-5
    assert counted.mean() < 1e-3 and (np.abs(found - expected)[counted] < 1.01 / n_times).all()


def test_a_case_does_not_depend_on_its_company():
    encoder = made("inception_time", 2)
    x = np.random.default_rng(0).normal(size=(23, 2, 101)).astype(np.float32)
    whole = embed(encoder, x, pooling=POOLING, device="cpu")
    order = np.random.default_rng(1).permutation(23)
    for rows in (order, [5], [7, 3, 7]):
        np.testing.assert_allclose(embed(encoder, x[rows], pooling=POOLING, device="cpu"), whole[rows], atol=1e-6)
    for batch_size in (1, 2, 8):
        again = embed(encoder, x, pooling=POOLING, device="cpu", batch_size=batch_size)
        np.testing.assert_allclose(again, whole, atol=1e-6)


def test_the_papers_encoder_gives_2048_numbers():
    encoder = InceptionTime(1)
    assert pooled_dim(encoder, POOLING) == 6 * 256 + 2 * 256 == 2048
    assert pooled_dim(encoder, "shares+mean+max+std") == 2304


def test_hooks_are_called_and_change_nothing():
    encoder = made("inception_time", 2)
    x = np.random.default_rng(0).normal(size=(4, 2, 30)).astype(np.float32)
    quiet = embed(encoder, x, pooling=POOLING, device="cpu")
    fired = []
    encoder.block0.module1.bn.register_forward_hook(lambda *_: fired.append(1))
    np.testing.assert_allclose(embed(encoder, x, pooling=POOLING, device="cpu"), quiet, atol=1e-5)
    assert fired


def test_changed_weights_are_noticed():
    encoder = made("inception_time", 2)
    x = np.random.default_rng(0).normal(size=(4, 2, 30)).astype(np.float32)
    before = embed(encoder, x, pooling=POOLING, device="cpu")
    with torch.no_grad():
        encoder.block0.module0.bn.bias.add_(0.5)
    assert not np.allclose(embed(encoder, x, pooling=POOLING, device="cpu"), before, atol=0.01)


def test_a_foreign_module_is_pooled_too():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv1d(2, 6, 3, padding=1), nn.BatchNorm1d(6), nn.ReLU(), nn.Conv1d(6, 5, 3, padding=1))
    encoder = as_encoder(module, 2, 30).eval()
    x = np.random.default_rng(0).normal(size=(4, 2, 30)).astype(np.float32)
    found = embed(encoder, x, pooling=POOLING, device="cpu")
    assert found.shape == (4, 6 + 2 * 5)
    np.testing.assert_allclose(found, slow(encoder, x), atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_a_gpu_gives_what_a_cpu_gives():
    encoder = made("inception_time", 2)
    x = np.random.default_rng(0).normal(size=(500, 2, 150)).astype(np.float32)
    expected = embed(encoder, x, pooling=POOLING, device="cpu")
    for batch_size in (32, 50):  # enough batches for a CUDA graph
        found = embed(encoder, x, pooling=POOLING, device="cuda", batch_size=batch_size)
        off = np.abs(found - expected) > 2e-5
        assert off.mean() < 1e-4 and np.abs(found - expected).max() < 1.01 / 150
