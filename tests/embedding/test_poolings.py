"""Poolings over time and over layers."""

import numpy as np
import pytest
import torch

from dicot.core.errors import InputError
from dicot.model.embedding import POOLINGS, Pooling, embed, pooled_dim
from dicot.nets.encoders import ENCODERS, Encoder, build_encoder

FIRST_AND_LAST = Pooling(None, lambda h: torch.cat([h[..., 0], h[..., -1]], dim=1), "the first and last time step")


@pytest.fixture(params=[*POOLINGS, "first+last"])
def pooling(request, monkeypatch):
    if request.param not in POOLINGS:
        monkeypatch.setitem(POOLINGS, request.param, FIRST_AND_LAST)
    return request.param


def made(name: str, n_channels: int = 2, dtype: torch.dtype = torch.float32) -> Encoder:
    torch.manual_seed(0)
    encoder = build_encoder(name, {"n_channels": n_channels, "dim": 16}).to(dtype)
    with torch.no_grad():
        encoder.train()(torch.randn(16, n_channels, 60, dtype=dtype))
    return encoder.eval()


@pytest.mark.parametrize("name", ENCODERS)
def test_a_case_does_not_depend_on_its_company(name, pooling, waves):
    encoder = made(name)
    whole = embed(encoder, waves.x, pooling=pooling, device="cpu")
    assert whole.shape == (24, pooled_dim(encoder, pooling))
    order = np.random.default_rng(1).permutation(24)
    for x, rows in ((waves.x[order], order), (waves.x[5:6], [5])):
        np.testing.assert_allclose(embed(encoder, x, pooling=pooling, device="cpu"), whole[rows], atol=1e-6, rtol=0)
    for batch_size in (1, 7):
        again = embed(encoder, waves.x, pooling=pooling, device="cpu", batch_size=batch_size)
        np.testing.assert_allclose(again, whole, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ENCODERS)
def test_leaves_the_encoder_as_it_was(name, pooling, waves):
    encoder = made(name)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    state = torch.get_rng_state()
    embed(encoder.train(), waves.x, pooling=pooling, device="cpu")
    pooled_dim(encoder, pooling)
    assert encoder.training and torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


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


@pytest.mark.parametrize("rule", ["layers", "mean"])
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
