"""Poolings over time and over layers."""

import numpy as np
import pytest
import torch

from dicot.core.errors import InputError
from dicot.model.embedding import POOLINGS, Pooling, embed, pooled_dim
from dicot.nets.encoders import ENCODERS, Encoder, build_encoder

SHARES = "shares+mean+max"


def made(name: str, n_channels: int = 2, dtype: torch.dtype = torch.float32) -> Encoder:
    torch.manual_seed(0)
    encoder = build_encoder(name, {"n_channels": n_channels, "dim": 16}).to(dtype)
    with torch.no_grad():
        encoder.train()(torch.randn(16, n_channels, 60, dtype=dtype))
    return encoder.eval()


@pytest.mark.parametrize("name", ENCODERS)
def test_layers_are_the_means_of_the_features(name, waves):
    encoder = made(name)
    with torch.no_grad():
        features = encoder.features(torch.from_numpy(waves.x))
    expected = np.concatenate([h.mean(-1).numpy() for h in features.values()], axis=1)
    np.testing.assert_allclose(embed(encoder, waves.x, pooling="layers", device="cpu"), expected, atol=1e-6, rtol=0)


def test_layers_can_be_chosen_by_name(monkeypatch, waves):
    encoder = made("fcn")
    monkeypatch.setitem(POOLINGS, "two", Pooling(("layer2", "layer0"), lambda layers: layers["layer0"].amax(-1)))
    monkeypatch.setitem(POOLINGS, "lost", Pooling(("layer7",), lambda layers: layers["layer7"].amax(-1)))
    assert embed(encoder, waves.x, pooling="two", device="cpu").shape == (24, pooled_dim(encoder, "two")) == (24, 128)
    for ask in (lambda: embed(encoder, waves.x, pooling="lost", device="cpu"), lambda: pooled_dim(encoder, "lost")):
        with pytest.raises(InputError, match="layer7"):
            ask()


def slow_shares(encoder: Encoder, x: np.ndarray) -> np.ndarray:
    """The definition, from the features of the plain path."""
    with torch.no_grad():
        features = {name: h.numpy() for name, h in encoder.features(torch.from_numpy(x)).items()}
    last = features[list(features)[-1]]
    shares = [(features[name] > 0).mean(axis=2) for name in encoder.centred_layers()]
    return np.concatenate([*shares, last.mean(axis=2), last.max(axis=2)], axis=1)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n_channels", "n_times"), [(1, 1), (3, 150), (130, 40)])
def test_shares_equal_the_definition(name, dtype, n_channels, n_times):
    encoder = made(name, n_channels, dtype)
    x = torch.randn(20, n_channels, n_times, dtype=dtype).numpy()
    found, expected = embed(encoder, x, pooling=SHARES, device="cpu"), slow_shares(encoder, x)
    assert found.shape == expected.shape == (20, pooled_dim(encoder, SHARES))
    # A value within rounding of zero may be counted or not, which moves a share by one time step.
    counted = np.abs(found - expected) > 2e-5
    assert counted.mean() < 1e-3 and (np.abs(found - expected)[counted] < 1.01 / n_times).all()


@pytest.mark.parametrize("rule", [SHARES, "mean"])
def test_changed_weights_and_hooks_are_noticed(rule):
    encoder = made("inception_time")
    x = np.random.default_rng(0).normal(size=(4, 2, 30)).astype(np.float32)
    before = embed(encoder, x, pooling=rule, device="cpu")
    fired = []
    encoder.block0.module1.bn.register_forward_hook(lambda *_: fired.append(1))
    np.testing.assert_allclose(embed(encoder, x, pooling=rule, device="cpu"), before, atol=1e-5)
    assert fired
    with torch.no_grad():
        encoder.block0.module0.bn.bias.add_(0.5)
    assert not np.allclose(embed(encoder, x, pooling=rule, device="cpu"), before, atol=0.01)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_a_gpu_gives_what_a_cpu_gives():
    encoder = made("inception_time")
    x = np.random.default_rng(0).normal(size=(500, 2, 150)).astype(np.float32)
    expected = embed(encoder, x, pooling=SHARES, device="cpu")
    for batch_size in (32, 50):  # enough batches for a CUDA graph
        found = embed(encoder, x, pooling=SHARES, device="cuda", batch_size=batch_size)
        off = np.abs(found - expected) > 2e-5
        assert off.mean() < 1e-4 and np.abs(found - expected).max() < 1.01 / 150
