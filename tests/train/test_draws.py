import numpy as np
import torch

from dicot.train.draws import epoch_order, plan_generator, seed_step, weights_seed


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
