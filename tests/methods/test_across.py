"""Across: its objective by hand, and the small training sets it must take."""

import math

import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import Batch
from dicot.methods.across import Across
from dicot.nets.encoders import FCN
from dicot.train import Recipe, pretrain


def windows(n_cases: int = 12, n_channels: int = 2, n_times: int = 40, shift: float = 0.0) -> Windows:
    rng = np.random.default_rng(0)
    return Windows((rng.normal(size=(n_cases, n_channels, n_times)) + shift).astype(np.float32))


def build(width: int = 6, **settings) -> Across:
    """Prepared, and in float64, where a slow reference can be met."""
    torch.manual_seed(0)
    method = Across(FCN(2, dim=16), width=width, **settings)
    method.prepare(windows())
    return method.double()


def cases(n: int = 5) -> Batch:
    return Batch(torch.randn(n, 2, 40, dtype=torch.float64), torch.arange(n))


# A plain reference: one vector after the other.


def cosine(a, b) -> float:
    return float(a @ b / (a.norm() * b.norm()))


def find(own, candidates, right: int, temperature: float) -> float:
    """The cross-entropy of picking the right one."""
    chances = [math.exp(cosine(own, other) / temperature) for other in candidates]
    return -math.log(chances[right] / sum(chances))


def both_ways(first, second, temperature: float) -> float:
    n = len(first)
    there = [find(first[i], second, i, temperature) for i in range(n)]
    back = [find(second[i], first, i, temperature) for i in range(n)]
    return sum(there + back) / (2 * n)


def two_views(method: Across, x, seed: int = 1):
    torch.manual_seed(seed)
    return [method.distortion(x, method.channel_mean, method.channel_std) for _ in range(2)]


def project(method: Across, views):
    """In training mode BatchNorm uses the statistics of the call: one call for both views."""
    z = method.head(method.encoder.embed(torch.cat(views))).detach()
    return z[: len(views[0])], z[len(views[0]) :]


def loss_of(method: Across, batch: Batch, seed: int = 1) -> float:
    torch.manual_seed(seed)
    return method.loss(batch, ()).item()


@pytest.mark.parametrize("width", [6, 0])
def test_whole_by_hand(width):
    method, batch = build(width, temperature=0.3), cases()
    got = loss_of(method, batch)
    z1, z2 = project(method, two_views(method, batch.x))
    assert got == pytest.approx(both_ways(z1, z2, 0.3), rel=1e-9)


@pytest.mark.parametrize("n_times", [1, 2, 24])
def test_short_cases_and_a_constant_one(n_times):
    x = np.random.default_rng(1).normal(size=(20, 1, n_times)).astype(np.float32)
    x[0] = 2.0
    history = pretrain(Across(FCN(1, dim=8)), Windows(x), Recipe(4, 8), seed=3, device="cpu")
    assert np.isfinite(history.loss).all()


def test_views_follow_the_statistics_of_the_training_set():
    x = windows(50, 3, 40, shift=100.0).x * np.array([[1.0], [10.0], [0.0]], np.float32)
    method = Across(FCN(3, dim=8))
    method.prepare(Windows(x))
    assert method.channel_mean.flatten().tolist() == pytest.approx([100, 1000, 0], rel=0.01)
    assert method.channel_std.flatten().tolist() == pytest.approx([1, 10, 1], rel=0.05)  # a constant channel: 1
    assert {"channel_mean", "channel_std"} <= set(method.state_dict())
    views = method.distortion(torch.from_numpy(x[:, :2]), method.channel_mean[:2], method.channel_std[:2])
    assert (views - method.channel_mean[:2]).abs().max() < 10 * 10, "a channel far from 0 is not blown up"
