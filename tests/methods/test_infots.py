from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.methods import Batch, InfoTS
from dicot.methods.infots import Choices, meta_number, pooled_contrast, segment_contrast
from dicot.methods.infots.mixture import mixing_weights, mixture
from dicot.nets.encoders import InceptionTime
from dicot.train import Checkpoint, Recipe, Step, pretrain
from dicot.train.draws import plan_generator


class Killed(BaseException):
    """Stands for a power cut."""


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


@pytest.mark.parametrize(("n_times", "k"), [(8, 4), (9, 4), (10, 5), (16, 8), (1000, 8)])
def test_short_cases_have_fewer_segments(n_times, k):
    method = make()
    assert method._segments(n_times) == k
    plan = method.plan((2, 2, n_times), plan_generator(0, 0))
    assert plan.start + k * (n_times // k) <= n_times


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


@pytest.mark.slow
def test_the_mixture_adapts_in_a_run_and_not_without_meta_steps(waves):
    adapted, fixed = make(), make(meta_steps=0)
    for method in (adapted, fixed):
        pretrain(method, waves, Recipe(3, 8), seed=1, device="cpu")
    assert not torch.equal(adapted.theta.value, fixed.theta.value)
    assert torch.equal(fixed.theta.mean, torch.zeros(7))
    assert fixed.theta.value.abs().max() < 0.05


def run_until(stop: int, path: Path, waves: Windows, recipe: Recipe, **settings) -> None:
    def on_step(step: Step) -> None:
        if step.number == stop:
            raise Killed

    with pytest.raises(Killed):
        pretrain(make(**settings), waves, recipe, seed=3, device="cpu", on_step=on_step, checkpoint=Checkpoint(path, 0))


@pytest.mark.slow
@pytest.mark.parametrize("meta_steps", [20, 3])  # after every step, after every third
def test_interrupted_twice_ends_bit_equal(tmp_path, waves, meta_steps):
    """Checkpoints hold theta, the classifier, their moments, the averaged weights and the count of steps."""
    recipe, settings = Recipe(10, 8), {"mix": 0.5, "meta_steps": meta_steps}
    whole = make(**settings)
    history = pretrain(whole, waves, recipe, seed=3, device="cpu")
    path = tmp_path / "run.safetensors"
    run_until(4, path, waves, recipe, **settings)
    run_until(7, path, waves, recipe, **settings)
    resumed = make(**settings)
    with torch.no_grad():
        for parameter in resumed.parameters():
            parameter.zero_()
    after = pretrain(resumed, waves, recipe, seed=3, device="cpu", checkpoint=Checkpoint(path, 0))
    assert after.loss == history.loss
    assert whole.theta.square.abs().sum() > 0
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    assert resumed._n_steps == 10


def test_nothing_to_contrast_is_refused():
    with pytest.raises(InputError, match="One case of 7 time steps.*needs 2 cases, or 8 time steps"):
        make(Windows(np.zeros((1, 2, 7), np.float32)))
    make(Windows(np.zeros((1, 2, 8), np.float32)))
    make(Windows(np.zeros((2, 2, 7), np.float32)))
