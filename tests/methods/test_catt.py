import warnings

import numpy as np
import pytest
import torch

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.methods import Batch, CaTT
from dicot.methods.catt import adjacent_step
from dicot.nets.encoders import InceptionTime
from dicot.train import Recipe, pretrain


def encoder() -> InceptionTime:
    torch.manual_seed(0)
    return InceptionTime(2, dim=16)


def test_loss_by_hand():
    method = CaTT(encoder(), temperature=0.3).eval()
    x = torch.randn(3, 2, 20)
    steps = [method.encoder(x[b : b + 1])[0, :, t] for b in range(3) for t in range(20)]  # row b * T + t
    got = method.loss(Batch(x, torch.arange(3)), ())
    torch.testing.assert_close(got, adjacent_step(torch.stack(steps)[None], 0.3), rtol=1e-4, atol=1e-5)


def test_chunks_change_neither_the_loss_nor_a_gradient():
    x = torch.randn(3, 2, 24)
    results = []
    for chunked in (True, False):
        method = CaTT(encoder(), chunked=chunked)
        loss = method.loss(Batch(x, torch.arange(3)), ())
        loss.backward()
        results.append((loss.detach(), [p.grad for p in method.parameters()]))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
    assert results[0][0].item() == pytest.approx(results[1][0].item(), rel=1e-6)


@pytest.mark.parametrize(("family", "expected"), [("large", 0.1), ("ucr", 0.5), ("uea", 0.5), (None, 0.5)])
def test_temperature_by_family(family, expected):
    assert CaTT.paper_params(family) == {"temperature": expected}


def test_single_time_steps_warn_or_are_refused():
    flat = Windows(np.random.default_rng(0).normal(size=(6, 2, 1)).astype(np.float32))
    with pytest.warns(UserWarning, match="1 time step: the neighbours"):
        history = pretrain(CaTT(encoder()), flat, Recipe(2, 4), seed=0, device="cpu")
    assert np.isfinite(history.loss).all()
    with pytest.raises(InputError, match="1 time step.*mask_boundaries=False"):
        CaTT(encoder(), mask_boundaries=True).prepare(flat)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CaTT(encoder()).prepare(Windows(np.zeros((2, 2, 2), np.float32)))
