"""Runs that are begun anew because a GPU had too little memory; on a GPU: tests/train/test_graphs.py."""

import pytest
import torch

from dicot.data import Windows
from dicot.methods import build_method
from dicot.nets.encoders import InceptionTime
from dicot.train import Checkpoint, Recipe, Step, TrainingRun, carry_out


def run(name: str, waves: Windows, **more) -> TrainingRun:
    torch.manual_seed(0)
    return TrainingRun(build_method(name, InceptionTime(waves.n_channels, dim=16), {}), waves, Recipe(3, 8), 1, **more)


class FailsOnce:
    """A callback that finds no memory at its second step; the weights have changed by then."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def __call__(self, step: Step) -> None:
        self.told.append(step.number)
        if step.number == 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")


def same(one: TrainingRun, other: TrainingRun) -> bool:
    pairs = zip(one.method.state_dict().items(), other.method.state_dict().items(), strict=True)
    return all(name == its_name and torch.equal(mine, its) for (name, mine), (its_name, its) in pairs)


@pytest.mark.parametrize("name", ["dicot", "ts2vec", "infots", "cost"])
def test_a_run_begun_anew_ends_with_the_same_bits_and_tells_each_step_once(name, waves):
    callback = FailsOnce()
    undisturbed, disturbed = run(name, waves), run(name, waves, on_step=callback)
    expected, history = carry_out(undisturbed, device="cpu"), carry_out(disturbed, device="cpu")
    assert (history.loss, history.lr) == (expected.loss, expected.lr) and same(undisturbed, disturbed)
    assert callback.told == [1, 2, 3]


def test_with_a_checkpoint_it_goes_on_from_there(tmp_path, waves):
    checkpoint, callback = Checkpoint(tmp_path / "run", 0), FailsOnce()
    undisturbed, disturbed = run("dicot", waves), run("dicot", waves, checkpoint=checkpoint, on_step=callback)
    expected, history = carry_out(undisturbed, device="cpu"), carry_out(disturbed, device="cpu")
    assert history.loss == expected.loss and same(undisturbed, disturbed)
    assert checkpoint.resumed and callback.told == [1, 2, 3]
