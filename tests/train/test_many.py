"""Several runs in one call."""

import logging

import numpy as np
import torch

from dicot.data import Windows
from dicot.methods import build_method
from dicot.nets.encoders import InceptionTime
from dicot.train import Recipe, TrainingRun, pretrain, pretrain_many


def run(name: str, seed: int, waves: Windows, steps: int = 12, precision: str = "float32", **more) -> TrainingRun:
    torch.manual_seed(seed)
    method = build_method(name, InceptionTime(waves.n_channels, dim=16), {})
    return TrainingRun(method, waves, Recipe(steps, 8, precision=precision), seed, **more)


SPECS = [
    ("dicot", 0, 12, "float32"),
    ("ts2vec", 1, 5, "float64"),
    ("infots", 2, 7, "float32"),
    ("dicot", 3, 0, "tf32"),
]


def test_each_run_ends_as_it_does_alone(waves):
    together = [run(name, seed, waves, steps, precision) for name, seed, steps, precision in SPECS]
    ended: list[int] = []
    histories = pretrain_many(together, device="cpu", on_run=lambda number, history: ended.append(number))
    assert sorted(ended) == [0, 1, 2, 3]
    for one, history, (name, seed, steps, precision) in zip(together, histories, SPECS, strict=True):
        alone = run(name, seed, waves, steps, precision)
        expected = pretrain(alone.method, waves, alone.recipe, seed=seed, device="cpu")
        assert history.loss == expected.loss and history.lr == expected.lr and len(history) == steps
        for mine, other in zip(one.method.state_dict().values(), alone.method.state_dict().values(), strict=True):
            assert torch.equal(mine, other)
        assert not one.method.training


def test_a_run_that_fails_leaves_the_others_if_somebody_is_told(waves):
    broken = Windows(np.full_like(waves.x, np.nan))
    told: dict[int, str] = {}
    histories = pretrain_many(
        [run("dicot", 0, broken), run("dicot", 0, waves)],
        device="cpu",
        on_error=lambda number, error: told.update({number: type(error).__name__}),
    )
    assert told == {0: "NonFiniteLossError"}
    assert histories[0] is None and len(histories[1]) == 12


def history(waves, **more):
    torch.manual_seed(0)
    method = build_method("dicot", InceptionTime(waves.n_channels, dim=16), {})
    return pretrain(method, waves, Recipe(4, 8), seed=0, device="cpu", **more)


def test_without_a_gpu_graphs_fall_back_with_a_reason(waves, caplog):
    with caplog.at_level(logging.WARNING, "dicot"):
        fallen_back = history(waves, stepper="graphs")
    assert "need a GPU" in caplog.text
    assert fallen_back.loss == history(waves, stepper="eager").loss == history(waves).loss
