"""How steps are carried out; what needs a GPU is in tests/test_gpu.py."""

import logging

import pytest
import torch

from dicot.encoders import InceptionTime
from dicot.errors import DicotError
from dicot.methods import Places, build_method
from dicot.train import Recipe, pretrain
from dicot.train.stepper import FEWEST_REPLAYS, Data, GraphStepper


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


def test_only_what_comes_often_is_recorded(waves):
    """Places in time share one program, however many different ones there are."""
    method = build_method("dicot", InceptionTime(waves.n_channels, dim=16), {})
    plans = ["often"] * FEWEST_REPLAYS + ["rare"] + [Places((t,)) for t in range(FEWEST_REPLAYS)]
    stepper = GraphStepper(method, torch.optim.AdamW(method.parameters()), Data(torch.zeros(1), None), plans)
    assert stepper.worthwhile == {"often", Places}
