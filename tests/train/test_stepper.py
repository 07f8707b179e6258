"""How steps are carried out; what needs a GPU is in tests/test_gpu.py."""

import logging
from types import SimpleNamespace

import pytest
import torch

from dicot.methods import build_method
from dicot.methods.cropping import Crops
from dicot.nets.encoders import InceptionTime
from dicot.nets.views.blocks import Blocks
from dicot.train import Recipe, pretrain
from dicot.train.batches import DeviceBatches
from dicot.train.stepper import GraphStepper


def history(waves, **more):
    torch.manual_seed(0)
    method = build_method("dicot", InceptionTime(waves.n_channels, dim=16), {})
    return pretrain(method, waves, Recipe(4, 8), seed=0, device="cpu", **more)


def test_without_a_gpu_graphs_fall_back_with_a_reason(waves, caplog):
    with caplog.at_level(logging.WARNING, "dicot"):
        fallen_back = history(waves, stepper="graphs")
    assert "need a GPU" in caplog.text
    assert fallen_back.loss == history(waves, stepper="eager").loss == history(waves).loss


class Capturer:
    """In place of `capture`, which needs a GPU: some tries fail."""

    def __init__(self, monkeypatch, errors: dict[int, Exception]) -> None:
        self.errors, self.tries, self.released = errors, 0, 0
        monkeypatch.setattr("dicot.train.stepper.capture", self)
        monkeypatch.setattr("dicot.train.stepper.renew_generator", lambda device: None)
        monkeypatch.setattr("dicot.train.stepper.release_memory", self.release, raising=False)

    def __call__(self, work, pool):
        self.tries += 1
        if self.tries in self.errors:
            raise self.errors[self.tries]
        outcome = work()
        return SimpleNamespace(pool=lambda: "pool", replay=work), outcome

    def release(self, device) -> None:
        self.released += 1


def steps(waves, plans, name: str = "catt", taken: int | None = None) -> GraphStepper:
    """A capture takes a step here, so that its replays can."""
    method = build_method(name, InceptionTime(waves.n_channels, dim=16), {})
    method.prepare(waves)
    optimiser = torch.optim.AdamW(method.parameters())
    stepper = GraphStepper(method, optimiser, DeviceBatches(torch.from_numpy(waves.x), None), plans)
    for plan in plans[:taken]:
        stepper((torch.arange(8),), plan)
    return stepper


@pytest.mark.parametrize(
    ("name", "plans"),
    [
        ("dicot", [Blocks(8, (0, 8)), Blocks(8, (0, 4, 8))]),
        ("ts2vec", [Crops(32, 8, 16, 4, 20), Crops(32, 8, 24, 0, 32)]),
        ("soft", [Crops(32, 8, 16, 4, 20), Crops(32, 8, 24, 0, 32)]),
    ],
)
def test_the_largest_plan_is_captured_first(name, plans, waves, monkeypatch):
    """The others fit into its memory; it would not fit into theirs."""
    Capturer(monkeypatch, {})
    captured = steps(waves, plans[:1] * 2 + plans[1:] * 2, name).captured
    assert list(captured) == plans[::-1]


def test_a_capture_that_finds_no_memory_is_tried_again_without_what_nobody_uses(waves, monkeypatch):
    capturer = Capturer(monkeypatch, {1: torch.OutOfMemoryError("CUDA out of memory.")})
    assert list(steps(waves, [()] * 3).captured) == [()]
    assert (capturer.tries, capturer.released) == (2, 1)


def test_a_capture_that_fails_is_tried_again_after_a_step_op_by_op(waves, monkeypatch, caplog):
    capturer = Capturer(monkeypatch, {1: RuntimeError("not permitted")})
    assert list(steps(waves, [()] * 4).captured) == [()] and capturer.tries == 2
    capturer = Capturer(monkeypatch, {n: RuntimeError("not permitted") for n in (1, 2)})
    assert not steps(waves, [()] * 5).captured and capturer.tries == 2
    assert "op by op: not permitted" in caplog.text
