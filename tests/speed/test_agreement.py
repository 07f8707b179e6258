"""The check of losses must pass for what is right and fail for what is not."""

import inspect

import numpy as np
import pytest
import torch
from benchmarks.timing.agreement import accuracy_section, check_losses, first_losses
from benchmarks.timing.reference import Definition, plain_pretrain
from benchmarks.timing.shapes import Shape

from dicot.methods import METHODS, build_method
from dicot.methods.dicot import DiCOT
from dicot.model.fitting import seeded_weights
from dicot.nets.encoders import InceptionTime
from dicot.train import Recipe, pretrain

SHAPE = Shape(4, 16, 1)


def test_ours_agrees_with_the_definition():
    found = check_losses(SHAPE, "float32", 4, "cpu")
    assert found.holds and found.steps == 4
    assert found.early < 1e-4


def test_another_objective_does_not_agree():
    found = check_losses(SHAPE, "float32", 4, "cpu", lambda n: DiCOT(InceptionTime(n), temperature=0.08))
    assert not found.holds


def test_a_wrong_gradient_does_not_agree():
    def make(n_channels):
        method = DiCOT(InceptionTime(n_channels))
        for parameter in method.parameters():
            parameter.register_hook(lambda gradient: -gradient)
        return method

    # The rate rises slowly from 0, so a wrong direction takes a few steps to show.
    assert not check_losses(SHAPE, "float32", 10, "cpu", make).holds


def test_a_run_is_cut_short_without_being_changed():
    train, recipe = SHAPE.windows(), Recipe(20, 4)

    def method():
        with seeded_weights(0):
            return DiCOT(InceptionTime(1, dim=8))

    few = first_losses(method(), train, recipe, 3, "cpu")
    whole = pretrain(method(), train, recipe, seed=0, device="cpu").loss
    assert few.tolist() == whole[:3] and len(whole) == 20


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_plain_loop_with_the_same_losses(name, waves):
    # Dropout goes through memory, which the two encoders fill in another order.
    params = {"dropout": 0.0} if "dropout" in inspect.signature(METHODS[name]).parameters else {}
    losses = []
    for encoder, train in ((InceptionTime, pretrain), (Definition, plain_pretrain)):
        with seeded_weights(1):
            method = build_method(name, encoder(2, dim=16), params)
        losses.append(train(method, waves, Recipe(4, 8), seed=1, device="cpu"))
    np.testing.assert_allclose(losses[0].loss, losses[1][0], rtol=2e-3)


def test_the_callers_random_state_is_left_alone(waves):
    before = torch.random.get_rng_state()
    method = build_method("dicot", Definition(2, dim=8), {})
    torch.random.set_rng_state(before)
    losses, seconds = plain_pretrain(method, waves, Recipe(9, 8), seed=1, device="cpu", steps=2)
    assert len(losses) == len(seconds) == 2
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.slow
def test_accuracy_of_both_ways_is_shown_with_its_spread():
    section = accuracy_section(["float32"], "cpu", data="synthetic", seeds=(1, 2), steps=1)
    assert section.columns == ("trained by", "seed 1", "seed 2", "mean", "standard deviation")
    for _, (a, b, mean, spread) in section.rows:
        assert mean == pytest.approx((a + b) / 2)
        assert spread == pytest.approx(abs(a - b) / 2**0.5)
    assert [name for name, _ in section.rows] == ["ours, float32", "plain, float32"]
