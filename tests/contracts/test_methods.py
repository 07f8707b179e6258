"""What every method in the registry must do."""

from inspect import signature

import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.encoders import InceptionTime
from dicot.errors import InputError
from dicot.methods import METHODS, Batch, build_method
from dicot.train import Recipe, pretrain
from dicot.train.draws import plan_generator

LABELLED = [name for name, kind in METHODS.items() if kind.needs_labels]

# Methods whose loss may rise at first for a reason of their own.
NO_DESCENT = {
    "cost": "the queue starts with random vectors, easy to tell from a key; 32 steps replace them by real, harder keys",
}


@pytest.fixture(params=list(METHODS))
def name(request):
    return request.param


def make(name: str, n_channels: int = 2):
    torch.manual_seed(0)
    return build_method(name, InceptionTime(n_channels, dim=16), {})


def first_batch(waves: Windows, method) -> Batch:
    y = torch.from_numpy(waves.y[:8]) if method.needs_labels else None
    return Batch(torch.from_numpy(waves.x[:8]), torch.arange(8), y)


def loss_of(method, batch: Batch) -> torch.Tensor:
    torch.manual_seed(3)
    return method.loss(batch, method.plan(tuple(batch.x.shape), plan_generator(0, 0)))


def test_loss_and_every_gradient_are_finite(name, waves):
    method = make(name)
    method.prepare(waves)
    loss = loss_of(method, first_batch(waves, method))
    assert loss.shape == () and torch.isfinite(loss)
    loss.backward()
    for group in method.param_groups():
        for parameter in group["params"]:
            assert parameter.grad is not None and torch.isfinite(parameter.grad).all()


def test_plans_are_hashable_and_fixed_by_the_generator(name, waves):
    method = make(name)
    method.prepare(waves)
    plans = [[method.plan((8, 2, 32), plan_generator(1, step)) for step in range(20)] for _ in range(2)]
    assert plans[0] == plans[1]
    assert {hash(plan) for plan in plans[0]}


def test_same_seed_same_loss_and_weights_move(name, waves):
    histories, weights = [], []
    for _ in range(2):
        method = make(name)
        before = [p.clone() for p in method.encoder.parameters()]
        histories.append(pretrain(method, waves, Recipe(5, 8), seed=7, device="cpu"))
        weights.append([p.detach() for p in method.trained_encoder().parameters()])
        assert any(not torch.equal(a, b) for a, b in zip(before, method.encoder.parameters(), strict=True))
    assert histories[0].loss == histories[1].loss
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_labels_are_not_seen_unless_needed(name, waves):
    poisoned = Windows(waves.x, np.full(len(waves), "poison"), name=waves.name)
    if METHODS[name].needs_labels:
        with pytest.raises(InputError, match="learns from labels"):
            pretrain(make(name), Windows(waves.x), Recipe(1, 8), seed=0, device="cpu")
        return
    losses = [pretrain(make(name), data, Recipe(3, 8), seed=1, device="cpu").loss for data in (waves, poisoned)]
    assert losses[0] == losses[1]


def test_state_dict_round_trip(name, waves):
    method, other = make(name), make(name)
    pretrain(method, waves, Recipe(3, 8), seed=1, device="cpu")
    other.prepare(waves)
    other.load_state_dict(method.state_dict())
    batch = first_batch(waves, method)
    method.eval(), other.eval()
    assert torch.equal(loss_of(method, batch), loss_of(other, batch))


def test_thirty_steps_lower_the_loss(name, waves):
    if name in NO_DESCENT:
        pytest.skip(NO_DESCENT[name])
    recipe = Recipe(30, 8, lr=1e-3)
    loss = pretrain(make(name), waves, recipe, seed=2, device="cpu").loss
    assert np.mean(loss[-8:]) < np.mean(loss[:8])


def test_the_callers_random_state_is_untouched(name, waves):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    states = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    method = make(name)
    torch.set_rng_state(states[0])
    pretrain(method, waves, Recipe(2, 8), seed=1, device="cpu")
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002


def test_extreme_shapes(name):
    rng = np.random.default_rng(0)
    for n_channels, n_times, batch in ((1, 8, 2), (64, 8, 2), (1, 50, 3)):
        x = rng.normal(size=(4, n_channels, n_times)).astype(np.float32)
        x[0] = 1.0  # a constant case
        history = pretrain(make(name, n_channels), Windows(x, np.arange(4) % 2), Recipe(2, batch), seed=0, device="cpu")
        assert np.isfinite(history.loss).all()


def test_settings_make_an_equal_method(name):
    method = make(name)
    settings = method.settings()
    accepted = [given for given in signature(type(method)).parameters.values() if given.kind is given.KEYWORD_ONLY]
    assert settings == {given.name: given.default for given in accepted}
    assert type(method)(InceptionTime(2, dim=16), **settings).settings() == settings


def test_says_what_it_is(name):
    kind = METHODS[name]
    assert all("\n" not in text and text for text in (kind.summary, kind.paper, kind.complexity))


def test_unknown_settings_and_names():
    with pytest.raises(InputError, match="does not take"):
        build_method("dicot", InceptionTime(1, dim=8), {"depth": 1})
    with pytest.raises(InputError, match="Did you mean 'dicot'"):
        build_method("di-cot", InceptionTime(1, dim=8), {})
