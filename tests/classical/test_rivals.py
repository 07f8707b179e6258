"""Rivals that the paper does not have: Hydra-MultiRocket, QUANT and catch22 through aeon; statistics and a spectrum."""

import importlib.util
import pickle

import numpy as np
import pytest
import torch

from dicot.core.errors import InputError, MissingExtraError
from dicot.data.datasets import load
from dicot.judge.classical import BEYOND_PAPER, Catch22, HydraMultiRocket, Quant, StatsSpectrum
from dicot.judge.evaluation import contender, evaluate
from dicot.judge.protocols import Probe

needs_aeon = pytest.mark.skipif(importlib.util.find_spec("aeon") is None, reason="aeon is not installed")
OF_AEON = ("quant", "catch22", pytest.param("hydra-multirocket", marks=pytest.mark.slow))  # the last one compiles


def sines(*cycles: float, length: int = 200) -> np.ndarray:
    return np.sin(2 * np.pi * np.outer(cycles, np.arange(length) / length))[:, None]


@needs_aeon
@pytest.mark.parametrize("name", OF_AEON)
def test_of_aeon_any_length_constants_and_copies(name):
    for n_channels, length in ((1, 1), (2, 8), (1, 3000)):
        x = np.random.default_rng(0).normal(size=(4, n_channels, length)).cumsum(axis=2)
        x[1], x[2] = 5.0, 0.0
        model = BEYOND_PAPER[name](random_state=1).fit(x)
        z = model.transform(x)
        assert z.dtype == np.float32 and np.isfinite(z).all() and not np.array_equal(z[0], z[3])
        assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(x[:1]), z[:1])
        assert np.array_equal(model.transform(np.concatenate([100 * x, x]))[4:], z), "a row depends on its company"


@pytest.mark.parametrize(
    ("kind", "part"), [(Quant, "interval"), (Catch22, "feature"), (HydraMultiRocket, "convolution")]
)
def test_of_aeon_say_how_to_install_it(kind, part, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, f"aeon.transformations.collection.{part}_based", None)
    with pytest.raises(MissingExtraError, match=r"\.\[aeon\]"):
        kind().fit(np.zeros((4, 1, 12)))


@needs_aeon
def test_catch22_ends_with_mean_and_deviation_of_each_channel_at_any_length():
    x = np.random.default_rng(0).normal(3.0, 2.0, size=(5, 2, 40))
    model = Catch22().fit(x)
    for cases in (x, x[:, :, :17]):
        z = model.transform(cases).reshape(5, 2, 24)
        np.testing.assert_allclose(z[..., 22], cases.mean(axis=2), rtol=1e-5)
        np.testing.assert_allclose(z[..., 23], cases.std(axis=2), rtol=1e-5)


@needs_aeon
def test_quant_starts_with_quantiles_of_the_case():
    x = np.random.default_rng(0).permuted(np.tile(np.arange(9.0), (3, 1)), axis=1)[:, None]
    first = Quant().fit(x).transform(x)[:, :3]  # of three quantiles the second is taken less the mean
    np.testing.assert_allclose(first, [[0, 0, 8]] * 3, atol=1e-6)


@needs_aeon
@pytest.mark.slow
def test_hydra_multirocket_is_standardised_by_training_cases_and_leaves_the_process_alone():
    split, threads = load("ItalyPowerDemand"), torch.get_num_threads()
    states = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    scored = evaluate(split, [contender("hydra-multirocket")], [Probe("ridge")], [1], controls=False)
    assert scored.results[0].values["accuracy"] >= 96.0
    z = scored.models["hydra-multirocket"].transform(split.train.x)
    assert z.shape == (67, 2048 + 49_728)
    rocket = z[:, 2048:].astype(np.float64)
    np.testing.assert_allclose(rocket.mean(axis=0), 0, atol=1e-3)
    assert set(rocket.std(axis=0).round(3)) <= {0.0, 1.0} and rocket.std(axis=0).mean() > 0.9
    assert torch.get_num_threads() == threads and torch.equal(states[0], torch.get_rng_state())
    assert np.array_equal(states[1], np.random.get_state()[1])  # noqa: NPY002


def test_stats_spectrum_knows_levels_and_tells_slow_from_fast():
    slow, fast = StatsSpectrum().fit(sines(3, 60)).transform(5 * sines(3, 60) + 2)
    assert slow[:2] == pytest.approx([2, np.log(5 / np.sqrt(2))], abs=1e-6)
    assert slow[2:5] == pytest.approx([-3, 7, 2], abs=0.02)
    assert fast[5] - slow[5] == pytest.approx(np.log(np.sin(0.3 * np.pi) / np.sin(0.015 * np.pi)), abs=0.05)
    assert slow[7:].argmax() == 1 and fast[7:].argmax() == 38, "the bands of bins 3 and 60 of 100"
    ramp = StatsSpectrum().fit(np.zeros((1, 1, 9))).transform(np.linspace(1, 5, 9)[None, None])[0]
    assert ramp[6] == 4.0


def test_stats_spectrum_has_the_same_features_at_every_length():
    model = StatsSpectrum().fit(np.zeros((2, 3, 50)))
    noise = np.random.default_rng(0).normal(size=(4, 3, 4000))
    noise[1] = 0.1  # has no deviation but rounding
    seen = {length: model.transform(noise[..., :length]) for length in (2, 3, 8, 129, 3000, 4000)}
    assert all(z.shape == (4, 3 * 71) and z.dtype == np.float32 and np.isfinite(z).all() for z in seen.values())
    bands = {length: z.reshape(4, 3, 71)[[0, 2, 3], :, 7:] for length, z in seen.items()}
    assert abs(bands[4000].mean() - bands[129].mean()) < 0.5, "white noise has one height, however long"
    again = model.transform(np.concatenate([noise, 9 * noise]))[:4]
    assert np.array_equal(again, seen[4000])
    with pytest.raises(InputError, match="two time steps"):
        model.transform(noise[..., :1])
