"""Crops whose lengths only the device knows, as in a CUDA graph, beside crops that are cut to their lengths."""

import copy

import pytest
import torch

from dicot.data import Windows
from dicot.methods import METHODS, Batch, Method, Places
from dicot.methods.cropping import advance
from dicot.nets.encoders import InceptionTime

# start, left, right, outer_left, outer_right of a window of 8, 13 or 40 time steps
PLACES = {
    8: [(0, 0, 8, 0, 8), (0, 3, 5, 2, 8), (0, 5, 8, 0, 8)],
    13: [(0, 0, 3, 0, 13), (0, 6, 13, 6, 13), (0, 4, 9, 0, 10), (0, 0, 13, 0, 13)],
    40: [(0, 0, 40, 0, 40), (0, 0, 39, 0, 40), (0, 38, 40, 0, 40), (0, 7, 24, 3, 31), (0, 0, 2, 0, 2)],
}


def make(name: str, n_channels: int = 1, **settings) -> Method:
    torch.manual_seed(0)
    return METHODS[name](InceptionTime(n_channels, dim=16), **settings)


def made_ready(method: Method, x: torch.Tensor) -> Method:
    method.prepare(Windows(x.float().numpy()))
    return method.double().train()


def outcome(method: Method, batch: Batch, plan: Places) -> list[torch.Tensor]:
    """Loss, gradients and statistics of a step with random draws of its own."""
    torch.manual_seed(5)
    loss = method.loss(batch, plan)
    loss.backward()
    gradients = [p.grad for p in method.encoder.parameters() if p.grad is not None]
    return [loss.detach(), *gradients, *method.encoder.buffers()]


def compare(method: Method, batch: Batch, at: tuple[int, ...]) -> None:
    other = copy.deepcopy(method)
    cut, padded = outcome(method, batch, Places(at)), outcome(other, batch, Places(torch.tensor(at)))
    assert len(cut) == len(padded) and all(torch.isfinite(value).all() for value in padded)
    for mine, expected in zip(padded, cut, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["ts2vec", "soft"])
@pytest.mark.parametrize(("n_times", "at"), [(n_times, at) for n_times, each in PLACES.items() for at in each])
@pytest.mark.parametrize(("n_cases", "n_channels"), [(3, 1), (5, 3)])
def test_the_length_on_the_device_gives_what_cutting_gives(name, n_times, at, n_cases, n_channels):
    """Loss, all gradients, running statistics; masks and dropout are drawn alike."""
    x = torch.randn(n_cases, n_channels, n_times, dtype=torch.float64)
    compare(made_ready(make(name, n_channels), x), Batch(x, torch.arange(n_cases)), at)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *(("ts2vec", settings) for settings in ({"alpha": 0.0}, {"alpha": 1.0}, {"mask": 0.0, "dropout": 0.0})),
        *(("soft", settings) for settings in ({"tau_inst": 0}, {"tau_temp": 0}, {"lambda_": 0.0, "tau_temp": 2.5})),
        ("ts2vec", {"temporal_unit": 2}),
    ],
    ids=str,
)
def test_every_option(name, settings):
    x = torch.randn(4, 2, 21, dtype=torch.float64)
    compare(made_ready(make(name, 2, **settings), x), Batch(x, torch.arange(4)), (0, 4, 13, 3, 20))


@pytest.mark.parametrize("n_steps", [0, 1, 4, 6])
def test_advance_by_hand(n_steps):
    h = torch.randn(7, 2, 3, dtype=torch.float64, requires_grad=True)
    moved = advance(h, torch.tensor(n_steps))
    assert torch.equal(moved[: 7 - n_steps], h[n_steps:])
    given = torch.randn(7 - n_steps, 2, 3, dtype=torch.float64)
    (moved[: 7 - n_steps] * given).sum().backward()
    assert h.grad is not None and torch.equal(h.grad[n_steps:], given) and (h.grad[:n_steps] == 0).all()
