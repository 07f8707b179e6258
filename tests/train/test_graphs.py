"""Recorded steps on a GPU; skipped where there is none."""

import logging

import numpy as np
import pytest
import torch

from dicot.encoders import InceptionTime, kernels, rows
from dicot.methods import METHODS, build_method
from dicot.train import Recipe, Run, pretrain, pretrain_many
from dicot.windows import Windows

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")


def method(name: str, n_channels: int = 2, seed: int = 0):
    torch.manual_seed(seed)
    return build_method(name, InceptionTime(n_channels, dim=32), {})


def losses(name: str, waves: Windows, stepper: str, steps: int = 30) -> np.ndarray:
    history = pretrain(method(name), waves, Recipe(steps, 8), seed=1, device="cuda", stepper=stepper)
    return np.array(history.loss)


@pytest.mark.parametrize("name", METHODS)
def test_graphs_give_what_single_operations_give(name, waves, caplog):
    with caplog.at_level(logging.WARNING, "dicot"):
        recorded = losses(name, waves, "graphs")
    assert not caplog.records
    np.testing.assert_allclose(recorded[:6], losses(name, waves, "eager")[:6], rtol=1e-3)


def test_two_runs_of_a_seed_are_equal_to_the_bit(waves):
    assert np.array_equal(losses("dicot", waves, "graphs", 100), losses("dicot", waves, "graphs", 100))


def test_a_step_that_cannot_be_recorded_runs_op_by_op(waves, caplog, monkeypatch):
    kind = METHODS["catt"]
    usual = kind.loss

    def reading(self, batch, plan):
        loss = usual(self, batch, plan)
        return loss * (1.0 if loss.item() > -1e9 else 2.0)  # the host waits for the device

    monkeypatch.setattr(kind, "loss", reading)
    with caplog.at_level(logging.WARNING, "dicot"):
        found = losses("catt", waves, "graphs", 12)
    assert "op by op" in caplog.text
    monkeypatch.undo()
    np.testing.assert_allclose(found[:6], losses("catt", waves, "eager", 12)[:6], rtol=1e-3)


def test_many_runs_end_as_they_do_alone(waves):
    names = ["dicot", "tfc", "dicot", "tnc", "simmtm", "dicot", "tfc", "infots"]
    runs = [Run(method(name, seed=seed), waves, Recipe(60, 8), seed) for seed, name in enumerate(names)]
    together = pretrain_many(runs, device="cuda", at_once=4)
    for seed, (name, history) in enumerate(zip(names, together, strict=True)):
        alone = pretrain(method(name, seed=seed), waves, Recipe(60, 8), seed=seed, device="cuda")
        assert history.loss == alone.loss, name


@pytest.mark.parametrize(("n_rows", "widths"), [(7, (48, 16)), (5000, (192, 64)), (5000, (256,))])
def test_kernels_equal_the_operators(n_rows, widths):
    torch.manual_seed(0)
    parts = [3 * torch.randn(n_rows, width, device="cuda") + 10 for width in widths]
    bias, dy = torch.randn(sum(widths), device="cuda"), torch.randn(n_rows, sum(widths), device="cuda")
    added = torch.randn_like(dy) if len(widths) == 1 else None
    found = []
    for way in (kernels, rows):
        norm = torch.nn.BatchNorm1d(sum(widths), device="cuda")
        kept = way.norm_forward(parts, norm, bias, added)
        dparts, *rest = way.norm_backward(dy, kept, norm, widths, masked=False)
        found.append([kept.y, *dparts, *rest, norm.running_mean, norm.running_var, norm.num_batches_tracked.float()])
    for mine, other in zip(*found, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_times", [1, 2, 5, 300])
def test_pooling_with_ties(n_times):
    u = (4 * torch.randn(n_times, 3, 16, device="cuda").relu()).round()
    dy = torch.randn_like(u)
    y, pairs = rows.pool_forward(u)
    assert torch.equal(kernels.pool_forward(u)[0], y)
    torch.testing.assert_close(kernels.pool_backward(dy, u, None), rows.pool_backward(dy.clone(), u, pairs))
