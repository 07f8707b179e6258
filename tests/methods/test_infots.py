import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dicot.data import Windows
from dicot.methods import Batch, InfoTS
from dicot.methods.infots import Choices, meta_number, mixing_weights, mixture, pooled_contrast, segment_contrast
from dicot.nets.encoders import InceptionTime
from dicot.train.batches import plan_generator


def make(waves: Windows | None = None, n_channels: int = 2, **settings) -> InfoTS:
    torch.manual_seed(0)
    method = InfoTS(InceptionTime(n_channels, dim=8), **settings)
    if waves is not None:
        method.prepare(waves)
    return method


def batch_of(waves: Windows, n: int = 6) -> Batch:
    return Batch(torch.from_numpy(waves.x[:n]), torch.arange(n))


@pytest.mark.parametrize("mix", [False, True])
@pytest.mark.parametrize("first_only", [False, True])
def test_loss_by_hand(waves, mix, first_only):
    method, batch = make(waves, first_only=first_only, beta=0.5).train(), batch_of(waves)
    torch.manual_seed(4)
    got = method.loss(batch, Choices(mix, 0))
    torch.manual_seed(4)
    view = mixture(batch.x, mixing_weights(method.theta.value, sample=True)) if mix else batch.x
    z = []
    for x in (view, batch.x):
        keep = torch.rand(6, 32) < 0.5
        z.append(F.dropout(method.encoder(x, keep), 0.1))
    local = segment_contrast(z[0][:1] if first_only else z[0], 8, 0)
    torch.testing.assert_close(got, pooled_contrast(*z) + 0.5 * local)


def test_plans():
    method = make()
    plans = [method.plan((4, 2, 35), plan_generator(0, step)) for step in range(600)]
    assert np.mean([plan.mix for plan in plans]) == pytest.approx(0.2, abs=0.05)
    assert {plan.start for plan in plans} == {0, 1, 2, 3}  # T - 8 (T // 8) = 3
    assert {method.plan((4, 2, 32), plan_generator(0, step)).start for step in range(20)} == {0}
    assert {method.plan((4, 2, 7), plan_generator(0, step)).start for step in range(20)} == {None}
    for mix in (0.0, 1.0):
        sure = make(mix=mix)
        assert {sure.plan((4, 2, 9), plan_generator(0, step)).mix for step in range(20)} == {bool(mix)}


@pytest.mark.parametrize(("n_steps", "count"), [(1, 1), (7, 7), (39, 39), (40, 20), (200, 20), (1500, 20), (1999, 20)])
def test_meta_steps_come_as_often_as_the_sheet_says(n_steps, count):
    every = max(1, n_steps // 20)
    numbers = [meta_number(step, step / n_steps, 20) for step in range(1, n_steps + 1)]
    assert [step for step, number in enumerate(numbers, 1) if number] == list(range(every, n_steps + 1, every))
    done = [number for number in numbers if number]
    assert done == list(range(1, len(done) + 1))
    assert len(done) >= count
    assert not any(meta_number(step, step / n_steps, 0) for step in range(1, n_steps + 1))


def test_meta_step_against_torch_and_the_encoder_stays(waves):
    method, batch = make(waves, meta_beta=0.7), batch_of(waves)
    method.encoder(batch.x)  # statistics that differ from the initial ones
    method.encoder.zero_grad()
    before = {name: value.clone() for name, value in method.encoder.state_dict().items()}
    theta = torch.nn.Parameter(method.theta.value.clone())
    classifier = torch.nn.Linear(8, 24)
    with torch.no_grad():
        classifier.weight.copy_(method.weight.value)
        classifier.bias.copy_(method.bias.value)
    optimiser = torch.optim.AdamW([theta, *classifier.parameters()], lr=0.01)
    for number in (1, 2, 3):
        torch.manual_seed(number)
        method._meta_step(batch.x, number)
        torch.manual_seed(number)
        method.encoder.eval()
        optimiser.zero_grad()
        loss = 0
        for x in (mixture(batch.x, mixing_weights(theta, sample=True)), batch.x):
            logits = classifier(method.encoder(x).max(-1).values)[:, :6]
            loss = loss + 0.7 * F.cross_entropy(logits, torch.arange(6))
        loss.backward()
        optimiser.step()
        method.encoder.train().zero_grad()
    torch.testing.assert_close(method.theta.value, theta.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(method.weight.value, classifier.weight.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(method.bias.value, classifier.bias.detach(), rtol=1e-4, atol=1e-5)
    method._meta_step(batch.x, 4)
    assert method.encoder.training
    assert all(p.grad is None for p in method.encoder.parameters())
    for name, value in method.encoder.state_dict().items():
        assert torch.equal(value, before[name]), name
