"""What the encoder reads in a step, relative to the length of a case."""

import pytest
import torch

from dicot.methods import METHODS
from dicot.methods.base import Method
from dicot.nets.views.blocks import block_layout
from dicot.train.draws import plan_generator
from dicot.train.encoded import PLANS, encoded_per_time_step


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
    assert encoded_per_time_step(name, {}, waves, seed=1, steps=3) == share


def test_sub_blocks_are_counted_by_the_plans_of_the_run(waves):
    drawn = [int(plan_generator(5, step).integers(2, 11)) for step in range(PLANS)]
    layouts = [block_layout(waves.n_times, k, 0.5) for k in drawn]
    expected = sum(len(layout) * layout.length for layout in layouts) / (PLANS * waves.n_times)
    state = torch.random.get_rng_state()
    assert encoded_per_time_step("dicot", {}, waves, seed=5, steps=1000) == pytest.approx(expected)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_method_of_ones_own_and_every_registered_one_are_counted(waves):
    class Twice(Method):
        summary = paper = complexity = "a toy"

        def loss(self, batch, plan):
            return (self.encoder.embed(batch.x) - self.encoder.embed(batch.x[..., ::2])).square().mean()

    assert encoded_per_time_step(Twice, {}, waves, seed=1, steps=2) == 1.5
    assert all(encoded_per_time_step(name, {}, waves, seed=1, steps=1) >= 1 for name in ("tnc", "ts2vec", "soft"))
    assert len(METHODS) == 12, "a new method belongs into one of these tests"
