"""What each distortion does to a case, and how what it draws is distributed."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from dicot.nets.views import (
    Distortion,
    crop_and_resample,
    drop_channels,
    hide_stretch,
    shift,
)

OFF = Distortion(noise=0, scale=0, offset=0, mask=0, crop=0, channel_drop=0)
# One part at a time, strong enough to be seen in every case.
ALONE = {
    "noise": 0.5,
    "scale": 0.5,
    "offset": 0.5,
    "mask": (0.3, 0.5),
    "crop": 0.5,
    "channel_drop": 0.5,
}
EVERYTHING = Distortion()


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def ramps(n_cases: int, n_channels: int, n_times: int) -> torch.Tensor:
    """Every value is its own time step, so that a view shows where it was read."""
    return torch.arange(n_times, dtype=torch.float64).expand(n_cases, n_channels, -1)


def moments(values: torch.Tensor) -> tuple[float, float]:
    return values.mean().item(), values.std().item()


# Each part by itself


def test_a_shift_is_one_number_per_case_and_channel_in_units_of_the_channel():
    x = torch.randn(4000, 2, 5, dtype=torch.float64)
    moved = shift(x, torch.tensor([[0.5], [3.0]])) - x
    torch.testing.assert_close(moved, moved[..., :1].expand_as(x))
    for channel, sigma in enumerate((0.5, 3.0)):
        mean, std = moments(moved[:, channel, 0])
        assert mean == pytest.approx(0, abs=0.05 * sigma) and std == pytest.approx(sigma, rel=0.05)
    assert abs(np.corrcoef(moved[:, :, 0].T.numpy())[0, 1]) < 0.05, "each channel draws for itself"


def test_the_hidden_stretch_is_the_channels_mean_and_what_lies_beside_it_is_untouched():
    x = torch.randn(500, 2, 40, dtype=torch.float64)
    seen = hide_stretch(x, 0.1, 0.35)
    hidden = seen != x
    assert torch.equal(hidden[:, 0], hidden[:, 1]), "all channels at the same time"
    torch.testing.assert_close(seen[hidden], x.mean(dim=2, keepdim=True).expand_as(x)[hidden])
    assert ((hidden[:, 0].int().diff(dim=1) == 1).sum(dim=1) <= 1).all(), "one stretch"
    assert hidden.sum(dim=2).max() <= math.ceil(0.35 * 40)


def test_a_crop_reads_what_numpy_interpolates():
    x = torch.randn(200, 3, 37, dtype=torch.float64)
    torch.manual_seed(5)
    seen = crop_and_resample(x, 0.4)
    torch.manual_seed(5)
    places = crop_and_resample(ramps(200, 1, 37), 0.4)[:, 0]
    assert (places.diff(dim=1) > 0).all()
    for case, at, found in zip(x.numpy(), places.numpy(), seen.numpy(), strict=True):
        np.testing.assert_allclose(at, np.linspace(at[0], at[-1], 37), rtol=1e-12, atol=1e-12)
        for channel, values in zip(case, found, strict=True):
            np.testing.assert_allclose(values, np.interp(at, np.arange(37), channel), rtol=0, atol=1e-12)


@pytest.mark.parametrize("probability", [0.15, 0.6, 0.99])
def test_channels_are_dropped_by_chance_but_never_all(probability):
    x = torch.randn(20_000, 3, 4) + 10
    seen = drop_channels(x, probability, torch.tensor([[1.0], [2.0], [3.0]]))
    dropped = (seen == torch.tensor([[1.0], [2.0], [3.0]])).all(dim=2)
    assert torch.equal(seen[~dropped], x[~dropped])
    assert dropped.sum(dim=1).max() == 2
    expected = probability - probability**3 / 3  # where all three would go, one stays
    assert dropped.double().mean(dim=0).tolist() == pytest.approx([expected] * 3, abs=0.015)


# The chain


def test_strength_zero_is_the_case_itself_and_draws_nothing():
    x, state = torch.randn(6, 3, 20), torch.get_rng_state()
    assert OFF(x, 0.0, 1.0) is x
    assert torch.equal(torch.get_rng_state(), state)
    assert {field.name for field in fields(Distortion)} == set(ALONE), "a new part belongs into ALONE"


@pytest.mark.parametrize("name", ALONE)
def test_every_part_can_be_switched_on_alone_and_draws_for_each_case(name):
    x = torch.randn(1, 3, 50).expand(64, -1, -1)
    seen = replace(OFF, **{name: ALONE[name]})(x, torch.zeros(3, 1), torch.ones(3, 1))
    assert seen.shape == x.shape and seen.dtype == x.dtype
    different = torch.unique(seen.flatten(1), dim=0)
    assert len(different) > (5 if name == "channel_drop" else 50)  # seven ways of dropping some of three channels


def test_views_do_not_depend_on_unit_and_zero_of_the_data():
    x = torch.randn(30, 3, 25, dtype=torch.float64)
    chain = EVERYTHING
    factor = torch.tensor([[1.0], [0.01], [50.0]], dtype=torch.float64)
    zero = torch.tensor([[0.0], [273.0], [-4000.0]], dtype=torch.float64)
    torch.manual_seed(1)
    plain = chain(x, torch.zeros(3, 1), torch.ones(3, 1, dtype=torch.float64))
    torch.manual_seed(1)
    other = chain(x * factor + zero, zero, factor)
    torch.testing.assert_close((other - zero) / factor, plain, atol=1e-8, rtol=0)
