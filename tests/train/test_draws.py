import numpy as np
import pytest
import torch

from dicot.methods import METHODS
from dicot.methods.base import Method
from dicot.train.batches import epoch_order, plan_generator, seed_step, weights_seed
from dicot.train.encoded import encoded


def test_an_epoch_visits_every_case_once_in_its_own_order():
    orders = [epoch_order(1, epoch, 50) for epoch in range(3)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert not np.array_equal(orders[0], orders[1])
    assert np.array_equal(orders[2], epoch_order(1, 2, 50))
    assert not np.array_equal(orders[0], epoch_order(2, 0, 50))


def test_streams_do_not_coincide():
    assert plan_generator(1, 0).integers(2**62) != plan_generator(1, 1).integers(2**62)
    assert len({weights_seed(seed) for seed in range(100)}) == 100


def test_a_step_draws_the_same_whatever_came_before():
    with torch.random.fork_rng(devices=[]):
        seed_step(4, 7, torch.device("cpu"))
        first = torch.rand(3)
        torch.rand(10)
        seed_step(4, 7, torch.device("cpu"))
        assert torch.equal(torch.rand(3), first)
        seed_step(4, 8, torch.device("cpu"))
        assert not torch.equal(torch.rand(3), first)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("catt", 1),
        ("supervised", 1),
        ("across", 2),
        ("infots", 2),
        ("tstcc", 2),
        ("cost", 3),
        ("tfc", 4),
        ("simmtm", 4),
    ],
)
def test_whole_cases_are_counted_as_often_as_they_are_encoded(name, share, waves):
    assert encoded(name, {}, waves, seed=1, steps=3).per_time_step == share


def test_a_method_of_ones_own_and_every_registered_one_are_counted(waves):
    class Twice(Method):
        summary = paper = complexity = "a toy"

        def loss(self, batch, plan):
            return (self.encoder.embed(batch.x) - self.encoder.embed(batch.x[..., ::2])).square().mean()

    assert encoded(Twice, {}, waves, seed=1, steps=2) == (2, 1.5)
    assert all(encoded(name, {}, waves, seed=1, steps=1).per_time_step >= 1 for name in ("tnc", "ts2vec", "soft"))
    assert len(METHODS) == 12, "a new method belongs into one of these tests"
