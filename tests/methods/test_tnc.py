import importlib.util
import math

import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import TNC, Batch
from dicot.methods.tnc import positive_unlabelled, reference_range
from dicot.nets.encoders import InceptionTime
from dicot.train import Checkpoint, Recipe, pretrain
from dicot.train.batches import plan_generator

needs_adf = pytest.mark.skipif(not importlib.util.find_spec("statsmodels"), reason="the extra 'adf' is not installed")


def encoder(n_channels: int = 2) -> InceptionTime:
    torch.manual_seed(0)
    return InceptionTime(n_channels, dim=8)


def loss_of(method: TNC, x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(1)
    return method.loss(Batch(x, torch.arange(len(x))), method.plan(tuple(x.shape), plan_generator(0, 0)))


def test_loss_by_hand():
    """Window by window with the sheet's rules on the same draws; eval mode, so that no window sees another."""
    method = TNC(encoder(), window=4, m=3, w_pu=0.2, epsilon=2).eval().double()
    x, n_times, w, epsilon = torch.randn(5, 2, 60, dtype=torch.float64), 60, 4, 2
    got = loss_of(method, x)

    torch.manual_seed(1)
    uniform, normal = torch.rand(5, 4), torch.randn(5, 3)
    low, high = reference_range(n_times, w)
    d_close, d_distant = torch.empty(5, 3, dtype=torch.float64), torch.empty(5, 3, dtype=torch.float64)
    for b in range(5):
        t = low + int(uniform[b, 0] * (high - low + 1))
        z = method.encoder.embed(x[b : b + 1, :, t - 2 : t + 2])
        for j in range(3):
            near = max(3, min(int(t + float(normal[b, j] * epsilon * w)), n_times - 2))
            first, last = (2, max(t - 40, 2)) if t > 30 else (min(t + 40, n_times - 5), n_times - 3)
            far = first + int(uniform[b, j + 1] * (last - first + 1))
            for centre, out in ((near, d_close), (far, d_distant)):
                out[b, j] = method.discriminator(z, method.encoder.embed(x[b : b + 1, :, centre - 2 : centre + 2]))
    torch.testing.assert_close(got, positive_unlabelled(d_close, d_distant, 0.2), rtol=1e-10, atol=1e-12)


def mixed_cases(n_times: int = 120) -> Windows:
    """Noise, a random walk, a constant and noise again."""
    noise = np.random.default_rng(0).normal(size=(4, 1, n_times))
    noise[1] = noise[1].cumsum(axis=1)
    noise[2] = 1.0
    return Windows(noise.astype(np.float32))


@needs_adf
def test_adf_gives_each_reference_the_epsilon_of_the_nearest_centre():
    method = TNC(encoder(1), adf=True, adf_centres=3, window=12)
    method.prepare(mixed_cases())
    assert method.epsilon_centres.tolist() == [24, 60, 95]
    assert method.epsilon_table.shape == (4, 3)
    assert method.epsilon_table[2].tolist() == [1, 1, 1] and (method.epsilon_table[0] > 1).any()
    method.epsilon_table = torch.arange(12).reshape(4, 3)
    batch = Batch(torch.zeros(3, 1, 120), torch.tensor([3, 0, 2]))
    assert method._epsilon(batch, torch.tensor([41, 90, 44])).tolist() == [9, 2, 7]


@needs_adf
def test_adf_is_kept_in_the_checkpoint_and_rebuilt_the_same(tmp_path):
    train, path = mixed_cases(), tmp_path / "run.safetensors"
    settings = {"adf": True, "adf_centres": 2, "m": 2, "window": 12}
    whole = TNC(encoder(1), **settings)
    losses = pretrain(whole, train, Recipe(2, 2), seed=0, device="cpu", checkpoint=Checkpoint(path, 0)).loss
    again = TNC(encoder(1), **settings)
    assert pretrain(again, train, Recipe(2, 2), seed=0, device="cpu", checkpoint=Checkpoint(path, 0)).loss == losses
    assert "epsilon_table" in again.state_dict() and torch.equal(again.epsilon_table, whole.epsilon_table)
    again.prepare(train)
    assert torch.equal(again.epsilon_table, whole.epsilon_table)


@pytest.mark.parametrize("w_pu", [0.0, 0.05, 1.0])
def test_closed_forms(w_pu):
    zero = torch.zeros(2, 3, dtype=torch.float64)
    assert positive_unlabelled(zero, zero, w_pu).item() == pytest.approx(math.log(2), rel=1e-14)
    # Perfectly sure and right: what is left is the weight of the distant windows that might be neighbours.
    assert positive_unlabelled(zero + 800, zero - 800, w_pu).item() == pytest.approx(800 * w_pu / 2)
