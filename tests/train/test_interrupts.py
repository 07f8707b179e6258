"""Ctrl-C while a run is kept on disk: what is written belongs to a whole step."""

import signal

import pytest
import torch

from dicot.methods.dicot import DiCOT
from dicot.nets.encoders import InceptionTime
from dicot.train import Checkpoint, Recipe, pretrain

RECIPE = Recipe(8, 8)


def method() -> DiCOT:
    torch.manual_seed(0)
    return DiCOT(InceptionTime(2, dim=8))


def interrupted_in(step: int, times: int = 1, number: int = signal.SIGINT) -> DiCOT:
    """A method that is interrupted in the middle of a step."""
    made = method()
    loss, calls = made.loss, []

    def interrupting(*given):
        calls.append(given)
        for _ in range(times if len(calls) == step else 0):
            signal.raise_signal(number)
        return loss(*given)

    made.loss = interrupting
    return made


def train(made: DiCOT, waves, path, seconds: float = 1000.0):
    return pretrain(made, waves, RECIPE, seed=3, device="cpu", checkpoint=Checkpoint(path, seconds))


def test_an_interrupted_run_is_written_and_ends_as_one_left_alone(tmp_path, waves):
    path = tmp_path / "run.safetensors"
    whole = method()
    history = pretrain(whole, waves, RECIPE, seed=3, device="cpu")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train(interrupted_in(3), waves, path)
        assert path.exists()
    resumed = method()
    losses = []
    after = pretrain(
        resumed, waves, RECIPE, seed=3, device="cpu", checkpoint=Checkpoint(path, 1000),
        on_step=lambda step: losses.append(step.number),
    )  # fmt: skip
    assert losses == [7, 8], "each of the two runs before did three steps"
    assert after.loss == history.loss
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_a_second_interrupt_does_not_wait(tmp_path, waves):
    made = interrupted_in(3, times=2)
    with pytest.raises(KeyboardInterrupt):
        train(made, waves, tmp_path / "run.safetensors")
    assert not (tmp_path / "run.safetensors").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_request_to_end_gets_to_the_callers_handler_after_the_step(tmp_path, waves):
    path, seen = tmp_path / "run.safetensors", []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(path.exists()))
    try:
        history = train(interrupted_in(3, number=signal.SIGTERM), waves, path)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [True]
    assert len(history) == RECIPE.steps, "a handler that returns lets the run go on"


def test_the_last_step_is_written_before_the_interrupt_is_delivered(tmp_path, waves):
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train(interrupted_in(RECIPE.steps), waves, path)
    steps = []
    pretrain(
        method(), waves, RECIPE, seed=3, device="cpu", checkpoint=Checkpoint(path, 1000), on_step=steps.append
    )  # fmt: skip
    assert steps == [], "nothing is left to be done"
