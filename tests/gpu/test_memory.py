"""Runs that share a GPU's memory, on a device that is made up, and runs that are begun anew; on a GPU: test_graphs."""

import weakref
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from dicot.core.errors import DicotError
from dicot.data import Windows
from dicot.methods import build_method
from dicot.nets.encoders import InceptionTime
from dicot.train import Checkpoint, History, Recipe, Step, TrainingRun, carry_out, loop, many, pretrain, pretrain_many
from dicot.train.stepper import EagerStepper

GIB = 2**30
TRAIN = Windows(np.zeros((8, 1, 64), np.float32))


class Device:
    """Ten and a half GiB, of which run number n takes needs[n] while it lasts, and op by op by_op[n]."""

    def __init__(self, needs: list[float], by_op: dict[int, float] | None = None) -> None:
        self.needs, self.by_op, self.size = needs, by_op or {}, 10.5
        self.taken: dict[int, float] = {}
        self.refused: list[int] = []
        self.most = 0  # runs at once

    def training(self, run, device, stepper, reporter, ranks):
        seed = run.seed
        need = self.by_op.get(seed, self.needs[seed]) if stepper == "eager" else self.needs[seed]
        if self.reserved() + need * GIB > self.size * GIB:
            self.refused.append(seed)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate some GiB.\nMore about it.")
        self.taken[seed] = need
        self.most = max(self.most, len(self.taken))
        try:
            for _ in range(20):
                yield
        finally:
            del self.taken[seed]
        return History([float(seed)], [0.0])

    def reserved(self, *_: object) -> int:
        return int(sum(self.taken.values()) * GIB)


@pytest.fixture
def device(monkeypatch):
    def make(needs: list[float], by_op: dict[int, float] | None = None) -> Device:
        made = Device(needs, by_op)
        for name, fake in {
            "is_available": lambda: True,
            "current_device": lambda: 0,
            "get_device_name": lambda device: "a small GPU",
            "memory_reserved": made.reserved,
            "mem_get_info": lambda device: (int(made.size * GIB) - made.reserved(), int(made.size * GIB)),
            "get_per_process_memory_fraction": lambda device: 1.0,
            "synchronize": lambda device: None,
            "empty_cache": lambda: None,
        }.items():
            monkeypatch.setattr(torch.cuda, name, fake)
        for module in (loop, many):
            monkeypatch.setattr(module, "training", made.training, raising=False)
        monkeypatch.setattr(many, "own_stream", lambda device: nullcontext())
        monkeypatch.setattr(many, "OwnDraws", lambda device: nullcontext())
        return made

    return make


def runs(n: int) -> list[TrainingRun]:
    return [TrainingRun(torch.nn.Linear(1, 1), TRAIN, Recipe(20, 8), seed) for seed in range(n)]


def test_a_run_is_started_while_there_is_room(device):
    gpu = device([3.0] * 6)
    assert [history.loss for history in pretrain_many(runs(6), device="cuda")] == [[float(n)] for n in range(6)]
    assert gpu.most == 3 and not gpu.refused


def test_the_caller_may_say_how_much_memory_there_is(device):
    gpu = device([3.0] * 6)
    assert None not in pretrain_many(runs(6), device="cuda", memory=7 * GIB)
    assert gpu.most == 2
    with pytest.raises(DicotError, match="-1"):
        pretrain_many(runs(1), device="cuda", memory=-1)


def test_a_run_that_finds_too_little_beside_others_comes_later(device):
    gpu = device([1.0, 1.0, 1.0, 8.0, 1.0, 1.0])
    assert [history.loss for history in pretrain_many(runs(6), device="cuda")] == [[float(n)] for n in range(6)]
    assert gpu.refused == [3] and gpu.most == 3


def test_a_run_that_is_too_large_alone_goes_op_by_op(device, caplog):
    gpu = device([3.0, 12.0, 3.0], by_op={1: 6.0})
    assert None not in pretrain_many(runs(3), device="cuda")
    assert "CUDA out of memory" in caplog.text and not gpu.taken


def test_a_run_that_fits_in_no_way_fails_and_the_others_do_not(device):
    device([3.0, 12.0, 3.0, 3.0])
    told: dict[int, Exception] = {}
    histories = pretrain_many(runs(4), device="cuda", on_error=told.__setitem__)
    assert list(told) == [1] and isinstance(told[1], DicotError) and isinstance(told[1], MemoryError)
    assert "8 cases of 64 time steps" in str(told[1]) and "a small GPU" in str(told[1])
    assert [history is None for history in histories] == [False, True, False, False]


def test_the_largest_run_is_the_first(device):
    gpu = device([1.0, 1.0, 1.0])
    order: list[int] = []
    three = runs(3)
    three[1].train = Windows(np.zeros((8, 1, 512), np.float32))
    pretrain_many(three, device="cuda", on_run=lambda number, history: order.append(number))
    assert order == [1, 0, 2] and gpu.most == 3


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
    (expected,) = pretrain_many([undisturbed], device="cpu")
    (history,) = pretrain_many([disturbed], device="cpu")
    assert history.loss == expected.loss and same(undisturbed, disturbed)
    assert checkpoint.resumed and callback.told == [1, 2, 3]


def test_what_a_failed_run_had_in_memory_is_freed(waves, monkeypatch):
    usual = EagerStepper.__call__
    data: list[weakref.ref[torch.Tensor]] = []
    alive: list[bool] = []

    def step(self, inputs, plan):
        if not data:
            data.append(weakref.ref(self.source.x))
            raise torch.OutOfMemoryError("CUDA out of memory.")
        alive.append(data[0]() is not None)
        return usual(self, inputs, plan)

    monkeypatch.setattr(EagerStepper, "__call__", step)
    one = run("dicot", waves)
    pretrain(one.method, waves, one.recipe, seed=1, device="cpu")
    assert alive == [False] * 3
