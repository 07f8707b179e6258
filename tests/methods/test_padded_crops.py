"""Crops whose lengths only the device knows, as in a CUDA graph, beside crops that are cut to their lengths."""

import copy

import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import METHODS, Batch, Method, Places
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
    """The room for views and overlap is that of the window, and no more than they need."""
    _, left, right, outer_left, outer_right = at
    n_times, needed = batch.x.shape[2], (max(right - outer_left, outer_right - left), right - left)
    rooms = ((n_times, n_times), (n_times, needed[1]), needed)
    ways = [Places(at), *(Places(torch.tensor(at), room) for room in rooms)]
    cut, *others = (outcome(copy.deepcopy(method), batch, plan) for plan in ways)
    for padded in others:
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


@pytest.mark.parametrize(("n_cases", "n_times", "programs"), [(64, 130, 10), (8, 130, 1)])
def test_a_large_step_has_room_by_quarters_of_the_window_and_a_small_one_room_for_all(n_cases, n_times, programs):
    method, rng = make("ts2vec"), np.random.default_rng(0)
    plans = [method.plan((n_cases, 1, n_times), rng) for _ in range(1000)]
    for plan in plans:
        _, left, right, outer_left, outer_right = plan.at
        views, overlap = plan.room
        assert n_times >= views >= max(right - outer_left, outer_right - left) and views >= overlap >= right - left
    assert len({plan.room for plan in plans}) == programs
    assert max(plans, key=method.extent).room == (n_times, n_times)
