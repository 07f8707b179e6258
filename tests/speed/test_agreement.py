"""The check of losses must pass for what is right and fail for what is not."""

import inspect

import numpy as np
import pytest

from bench.speed.agreement import check_losses
from bench.speed.reference import Definition, plain_pretrain
from bench.speed.shapes import Shape
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


def test_a_wrong_gradient_does_not_agree():
    def make(n_channels):
        method = DiCOT(InceptionTime(n_channels))
        for parameter in method.parameters():
            parameter.register_hook(lambda gradient: -gradient)
        return method

    # The rate rises slowly from 0, so a wrong direction takes a few steps to show.
    assert not check_losses(SHAPE, "float32", 10, "cpu", make).holds


@pytest.mark.slow
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
