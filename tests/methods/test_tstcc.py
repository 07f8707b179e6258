import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import Batch, Places
from dicot.methods.tstcc import TSTCC
from dicot.nets.encoders import InceptionTime
from dicot.nets.losses import nt_xent
from dicot.nets.views import jitter, permute, scale
from dicot.train.batches import plan_generator


def build(n_times: int = 32, **settings) -> TSTCC:
    torch.manual_seed(0)
    method = TSTCC(InceptionTime(2, dim=16), **settings)
    method.prepare(Windows(np.random.default_rng(0).normal(size=(6, 2, n_times)).astype(np.float32)))
    return method


def unit(h: torch.Tensor) -> torch.Tensor:
    return h / h.square().sum(dim=1, keepdim=True).sqrt()


@pytest.mark.parametrize("per_step", [False, True])
def test_loss_by_hand(per_step):
    method = build(per_step=per_step, temporal_weight=0.5, contextual_weight=2.0, temperature=0.3).double().eval()
    x = torch.randn(5, 2, 32, dtype=torch.float64)
    torch.manual_seed(1)
    got = method.loss(Batch(x, torch.arange(5)), Places((3, 20), (8, 24)))
    torch.manual_seed(1)
    weak = scale(x, 2.0, 1.1, per_step=per_step)
    strong = jitter(permute(x, 8), 0.8 * method.noise_unit)
    h1, h2 = unit(method.encoder(weak)), unit(method.encoder(strong))
    total, contexts = 0.0, []
    for t, source, target in ((3, h1, h2), (20, h2, h1)):
        context = method.contrast.context(source, t)
        contexts.append(method.contrast.project(context))
        for i in range(1, 7):
            logits = target[:, :, t + i] @ method.contrast.predictors[i - 1](context).T
            for b in range(5):
                total = total - logits[b].log_softmax(0)[b] / (5 * 6)
    torch.testing.assert_close(got, 0.5 * total + 2.0 * nt_xent(*contexts, 0.3))


@pytest.mark.parametrize(
    ("n_times", "expected"), [(2, 1), (3, 1), (4, 2), (6, 3), (8, 4), (11, 5), (12, 6), (13, 6), (500, 6)]
)
def test_short_cases_predict_half_of_their_length(n_times, expected):
    method = build(n_times)
    assert len(method.contrast.predictors) == expected
    plans = [method.plan((6, 2, n_times), plan_generator(0, step)) for step in range(300)]
    assert {t for plan in plans for t in plan.at} <= set(range(n_times - expected))
    loss = method.loss(Batch(torch.randn(6, 2, n_times), torch.arange(6)), Places((n_times - expected - 1, 0)))
    assert torch.isfinite(loss)


def test_a_past_on_the_device_needs_no_more_room_than_its_length():
    method = build(130).double().eval()
    plan = next(plan for step in range(99) if max((plan := method.plan((64, 2, 130), plan_generator(0, step))).at) < 60)
    assert all(t < room < 66 for t, room in zip(plan.at, plan.room, strict=True))
    h1, h2 = torch.randn(2, 5, 16, 130, dtype=torch.float64)
    for t, room in zip(plan.at, plan.room, strict=True):
        expected = method.contrast(h1, h2, t)
        torch.testing.assert_close(method.contrast(h1[..., :room], h2, torch.tensor(t)), expected)


def test_noise_is_in_units_of_the_channel():
    x = np.random.default_rng(0).normal(size=(50, 3, 40)) * [[1.0], [10.0], [0.0]] + 5
    method = TSTCC(InceptionTime(3, dim=8))
    method.prepare(Windows(x.astype(np.float32)))
    assert method.noise_unit.flatten().tolist() == pytest.approx([1, 10, 1], rel=0.05)  # a constant channel: 1
    absolute = TSTCC(InceptionTime(3, dim=8), absolute_noise=True)
    absolute.prepare(Windows(x.astype(np.float32)))
    assert absolute.noise_unit.flatten().tolist() == [1, 1, 1]
