import pytest
import torch

from dicot.methods import Batch, CaTT
from dicot.methods.catt import adjacent_step
from dicot.nets.encoders import InceptionTime


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
