"""How steps are carried out; what needs a GPU is in tests/test_gpu.py."""

import logging
from types import SimpleNamespace

import pytest
import torch

from dicot.encoders import InceptionTime
from dicot.errors import DicotError
from dicot.methods import Places, build_method
from dicot.train import Recipe, pretrain
from dicot.train.stepper import FEWEST_REPLAYS, Data, GraphStepper
from dicot.views.blocks import block_layout


def history(waves, **more):
    torch.manual_seed(0)
    method = build_method("dicot", InceptionTime(waves.n_channels, dim=16), {})
    return pretrain(method, waves, Recipe(4, 8), seed=0, device="cpu", **more)


def test_without_a_gpu_graphs_fall_back_with_a_reason(waves, caplog):
    with caplog.at_level(logging.WARNING, "dicot"):
        fallen_back = history(waves, stepper="graphs")
    assert "need a GPU" in caplog.text
    assert fallen_back.loss == history(waves, stepper="eager").loss == history(waves).loss


def test_unknown_steppers_are_refused(waves):
    with pytest.raises(DicotError, match="graphs"):
        history(waves, stepper="graph")


def stepper(plans, waves, name="catt") -> GraphStepper:
    method = build_method(name, InceptionTime(waves.n_channels, dim=16), {})
    return GraphStepper(method, torch.optim.AdamW(method.parameters()), Data(torch.zeros(1), None), plans)


def test_only_what_comes_often_is_recorded(waves):
    """Places in time share one program, however many different ones there are."""
    plans = ["often"] * FEWEST_REPLAYS + ["rare"] + [Places((t,)) for t in range(FEWEST_REPLAYS)]
    assert stepper(plans, waves).unrecorded == {"often": "often", Places: Places((0,))}


def test_the_largest_plan_is_recorded_first(waves):
    """Smaller ones fit into its memory, not the other way round."""
    plans = [block_layout(100, k, 0.5) for k in range(2, 11)] * FEWEST_REPLAYS
    covered = [len(plan) * plan.length for plan in stepper(plans, waves, "dicot").unrecorded]
    assert covered == sorted(covered, reverse=True) and covered[0] > covered[-1]


class Recorder:
    """In place of `record`, which needs a GPU: whether a plan can be recorded is a question of the try."""

    def __init__(self, monkeypatch, errors: dict[int, Exception]) -> None:
        self.errors, self.tries, self.released = errors, 0, 0
        monkeypatch.setattr("dicot.train.stepper.record", self)
        monkeypatch.setattr("dicot.train.stepper.renew_generator", lambda place: None)
        monkeypatch.setattr("dicot.train.stepper.release_memory", self.release, raising=False)

    def __call__(self, work, pool):
        self.tries += 1
        if self.tries in self.errors:
            raise self.errors[self.tries]
        outcome = work()
        return SimpleNamespace(pool=lambda: "pool", replay=work), outcome

    def release(self, place) -> None:
        self.released += 1


def steps(waves, n: int) -> GraphStepper:
    """n steps of one plan; a recording carries out a step, so that its replays can."""
    method = build_method("catt", InceptionTime(waves.n_channels, dim=16), {})
    optimiser = torch.optim.AdamW(method.parameters())
    taken = GraphStepper(method, optimiser, Data(torch.from_numpy(waves.x), None), [()] * n)
    for _ in range(n):
        taken(torch.arange(8), ())
    return taken


def test_a_recording_that_finds_no_memory_is_tried_again_without_what_nobody_uses(waves, monkeypatch):
    recorder = Recorder(monkeypatch, {1: torch.OutOfMemoryError("CUDA out of memory.")})
    assert list(steps(waves, 3).recorded) == [()]
    assert (recorder.tries, recorder.released) == (2, 1)


def test_a_recording_that_finds_no_memory_at_all_is_an_error(waves, monkeypatch):
    Recorder(monkeypatch, {n: torch.OutOfMemoryError("CUDA out of memory.") for n in (1, 2)})
    with pytest.raises(torch.OutOfMemoryError):
        steps(waves, 3)


def test_a_recording_that_fails_is_tried_again_after_a_step_op_by_op(waves, monkeypatch, caplog):
    recorder = Recorder(monkeypatch, {1: RuntimeError("not permitted")})
    assert list(steps(waves, 4).recorded) == [()] and recorder.tries == 2
    recorder = Recorder(monkeypatch, {n: RuntimeError("not permitted") for n in (1, 2)})
    assert not steps(waves, 5).recorded and recorder.tries == 2
    assert "op by op: not permitted" in caplog.text
