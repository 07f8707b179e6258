"""Hooks fire: where somebody listens to an inner module, the plain path is taken."""

import numpy as np
import pytest
import torch
from torch import nn

from dicot.methods import build_method
from dicot.model.embedding import embed
from dicot.nets.encoders import InceptionTime
from dicot.nets.encoders.inspection import has_hooks
from dicot.train import Recipe, pretrain

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")


@pytest.fixture
def encoder() -> InceptionTime:
    torch.manual_seed(0)
    return InceptionTime(2, dim=16)


KINDS = {
    "forward": nn.Module.register_forward_hook,
    "before": nn.Module.register_forward_pre_hook,
    "backward": nn.Module.register_full_backward_hook,
    "before backward": nn.Module.register_full_backward_pre_hook,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_hook_fires_in_training(encoder, kind):
    fired = []
    handle = KINDS[kind](encoder.block0.module1.bn, lambda *args: fired.append(1))
    assert has_hooks(encoder)
    x = torch.randn(4, 2, 20)
    encoder.train()(x).sum().backward()
    assert len(fired) == 1
    handle.remove()
    encoder(x).sum().backward()
    assert len(fired) == 1 and not has_hooks(encoder)


def test_a_hook_for_all_modules_fires(encoder):
    seen = []
    handle = nn.modules.module.register_module_forward_hook(lambda module, inputs, output: seen.append(type(module)))
    try:
        encoder.train()(torch.randn(4, 2, 20))
    finally:
        handle.remove()
    assert nn.BatchNorm1d in seen


def test_a_module_put_in_later_is_listened_to_as_well(encoder):
    encoder.train()(torch.randn(4, 2, 20))
    fired = []
    encoder.block1.module0.bn = nn.BatchNorm1d(16)
    encoder.block1.module0.bn.register_forward_hook(lambda *args: fired.append(1))
    encoder(torch.randn(4, 2, 20))
    assert fired == [1]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=gpu)])
def test_pretraining_calls_them_at_every_step(encoder, waves, device):
    fired = []
    encoder.block0.register_forward_hook(lambda module, inputs, output: fired.append(1))
    pretrain(build_method("dicot", encoder, {"k": 2}), waves, Recipe(30, 8), seed=0, device=device)
    assert len(fired) == 30


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=gpu)])
@pytest.mark.parametrize("where", ["", "block0.module2", "block1.residual.bn"])
def test_embedding_calls_them(encoder, waves, where, device):
    expected = embed(encoder, waves.x, device=device)
    fired = []
    handle = encoder.get_submodule(where).register_forward_hook(lambda *args: fired.append(len(args[1][0])))
    np.testing.assert_allclose(embed(encoder, waves.x, device=device, batch_size=3), expected, atol=1e-5, rtol=0)
    assert sum(fired) == 24, "also where later batches would be the replay of a CUDA graph"
    fired.clear()
    handle.remove()
    assert np.array_equal(embed(encoder, waves.x, device=device), expected) and not fired


def test_the_switch(encoder, waves):
    """Seen through the modules' forward, which the fast path never calls."""
    calls = []
    forward = encoder.block0.forward
    encoder.block0.forward = lambda v: calls.append(1) or forward(v)  # type: ignore[method-assign]
    for plain in (False, True, False):
        encoder.plain = plain
        calls.clear()
        encoder.train()(torch.randn(4, 2, 20))
        embed(encoder, waves.x, device="cpu")
        assert len(calls) == (2 if plain else 0)
