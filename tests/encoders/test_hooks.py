"""Hooks fire: where somebody listens to an inner module, the plain path is taken."""

import numpy as np
import pytest
import torch
from torch import nn

from dicot.model.embedding import embed
from dicot.nets.encoders import InceptionTime
from dicot.nets.encoders.base import Modules

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
    assert Modules(encoder).have_hooks()
    x = torch.randn(4, 2, 20)
    encoder.train()(x).sum().backward()
    assert len(fired) == 1
    handle.remove()
    encoder(x).sum().backward()
    assert len(fired) == 1 and not Modules(encoder).have_hooks()


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
