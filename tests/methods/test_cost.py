from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.contracts.toys import Stack
from torch.nn.functional import normalize

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.methods import Batch, CoST, Places
from dicot.methods.cost import frequency_contrast, queue_contrast
from dicot.nets.encoders import FCN, InceptionTime
from dicot.train import Checkpoint, Recipe, pretrain
from dicot.train.draws import plan_generator


def prepared(n_times: int = 20, dim: int = 8, n_channels: int = 2, **settings) -> CoST:
    torch.manual_seed(0)
    method = CoST(InceptionTime(n_channels, dim=dim), **settings)
    method.prepare(Windows(np.zeros((3, n_channels, n_times), np.float32)))
    return method


def batch(n_cases: int = 4, n_channels: int = 2, n_times: int = 20) -> Batch:
    x = torch.randn(n_cases, n_channels, n_times, generator=torch.Generator().manual_seed(1))
    return Batch(x, torch.arange(n_cases))


def move(method: CoST) -> None:
    """As an optimiser step would: the trained network leaves its copy."""
    with torch.no_grad():
        for group in method.param_groups():
            for parameter in group["params"]:
                parameter += 0.1 * torch.randn_like(parameter)


def test_loss_by_hand():
    method = prepared(sigma=0.0, alpha=0.3, momentum=0.9, temperature=0.5, queue_size=6, kernels=(1, 2, 32)).eval()
    data, queue = batch(), method.queue.clone()
    move(method)
    expected_key = [
        0.9 * k.clone() + 0.1 * q.detach()
        for k, q in zip(method._key_parameters(), method._query_parameters(), strict=True)
    ]
    got = method.loss(data, Places((0, 13)))
    for key, expected in zip(method._key_parameters(), expected_key, strict=True):
        torch.testing.assert_close(key, expected)
    h = method.encoder(data.x)
    q = normalize(method.projection(method.trend(h)[..., 13]), dim=1)
    k = normalize(method.key_projection(method.key_trend(method.key_encoder(data.x))[..., 13]), dim=1)
    amplitude, phase = frequency_contrast(method.season(h), method.season(h))
    expected = queue_contrast(q, k, queue, 0.5) + 0.3 * (amplitude + phase) / 2
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(method.queue[:, :4], k.T)
    assert torch.equal(method.queue[:, 4:], queue[:, 4:]) and method.pointer.item() == 4


@pytest.mark.parametrize("n_times", [2, 7, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_trained_parameter_has_a_gradient_and_no_copy_is_trained(n_times, dtype):
    method = prepared(n_times, n_channels=1).to(dtype)
    x = torch.randn(2, 1, n_times, dtype=dtype)
    loss = method.loss(Batch(x, torch.arange(2)), Places((0, n_times - 1)))
    loss.backward()
    trained = {id(p) for group in method.param_groups() for p in group["params"]}
    parts = (method.encoder, method.trend, method.season, method.projection)
    assert trained == {id(p) for part in parts for p in part.parameters()}
    assert loss.dtype == method.queue.dtype == dtype
    for part in parts:
        for name, parameter in part.named_parameters():
            assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
    assert all(p.grad is None and not p.requires_grad for p in method._key_parameters())


def test_three_passes_and_statistics_of_their_own():
    method = prepared().train()
    calls = []
    method.encoder.register_forward_hook(lambda *_: calls.append("query"))
    method.key_encoder.register_forward_hook(lambda *_: calls.append("key"))
    method.loss(batch(), Places((0, 3)))
    assert calls == ["query", "key", "query"]
    counts = [{int(b) for n, b in net.named_buffers() if n.endswith("num_batches_tracked")}
              for net in (method.encoder, method.key_encoder)]  # fmt: skip
    assert counts == [{2}, {1}], "averaged or copied statistics would agree"


def test_the_key_network_starts_as_a_copy_and_follows_slowly():
    method = prepared(momentum=0.75)
    for key, query in zip(method._key_parameters(), method._query_parameters(), strict=True):
        assert torch.equal(key, query) and key is not query
    before = [key.clone() for key in method._key_parameters()]
    move(method)
    method.loss(batch(), Places((0, 3)))
    pairs = zip(before, method._key_parameters(), method._query_parameters(), strict=True)
    for old, key, query in pairs:
        torch.testing.assert_close(key, 0.75 * old + 0.25 * query)


def test_the_two_views_are_drawn_apart_and_per_case():
    method = prepared(probability=1.0)
    seen = []
    method.encoder.register_forward_hook(lambda _module, args, _out: seen.append(args[0]))
    method.key_encoder.register_forward_hook(lambda _module, args, _out: seen.append(args[0]))
    x = torch.ones(4, 2, 20)
    method.loss(Batch(x, torch.arange(4)), Places((0, 0)))
    view_q, view_k, again = seen
    assert torch.equal(view_k, again)
    assert not torch.equal(view_q, view_k) and not torch.equal(view_q, x)
    assert len(view_q.mean(dim=2).unique()) == 8


@pytest.mark.parametrize(("size", "n_cases", "pointer"), [(6, 4, 2), (3, 4, 2), (8, 4, 0)])
def test_the_queue_wraps_around(size, n_cases, pointer):
    method = prepared(queue_size=size)
    torch.testing.assert_close(method.queue.norm(dim=0), torch.ones(size))
    start = method.queue.clone()
    for _ in range(2):
        method.loss(batch(n_cases), Places((0, 3))).backward()
    assert method.pointer.item() == pointer
    assert not (method.queue == start).any()
    torch.testing.assert_close(method.queue.norm(dim=0), torch.ones(size))


def test_a_single_case_trains_on_the_time_loss_alone():
    losses = []
    for alpha in (0.0, 100.0):
        method = prepared(alpha=alpha)
        torch.manual_seed(2)
        losses.append(method.loss(batch(1), Places((0, 3))).item())
    assert losses[0] == losses[1] > 0


def test_plans_cover_windows_and_time_steps():
    method = prepared(max_length=5)
    plans = {method.plan((2, 2, 7), plan_generator(0, step)) for step in range(300)}
    assert plans == {Places((start, t)) for start in range(3) for t in range(5)}
    assert {method.plan((2, 2, 3), plan_generator(0, step)).at[0] for step in range(20)} == {0}


def test_long_cases_are_cut_to_one_window_for_both_views():
    method = prepared(n_times=20, max_length=8, sigma=0.0)
    assert method.season.n_times == 8
    seen = []
    method.encoder.register_forward_hook(lambda _module, args, _out: seen.append(args[0]))
    data = batch()
    method.loss(data, Places((5, 7)))
    assert len(seen) == 2 and all(torch.equal(x, data.x[..., 5:13]) for x in seen)


def test_preparing_twice_with_the_same_seed_gives_the_same():
    train, states = Windows(np.zeros((3, 2, 11), np.float32)), []
    method = prepared()
    for _ in range(2):
        torch.manual_seed(9)
        method.prepare(train)
        states.append({name: value.clone() for name, value in method.state_dict().items()})
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.slow
def test_a_resumed_run_ends_like_an_uninterrupted_one(waves, tmp_path):
    class StopError(Exception):
        pass

    def stop(step):
        if step.number == 3:
            raise StopError

    def run(**options):
        torch.manual_seed(0)
        method = CoST(FCN(2, dim=8), queue_size=20)
        return method, pretrain(method, waves, Recipe(6, 8), seed=3, device="cpu", **options)

    with pytest.raises(StopError):
        run(checkpoint=Checkpoint(tmp_path / "run", seconds=0), on_step=stop)
    resumed, history = run(checkpoint=Checkpoint(tmp_path / "run", seconds=0))
    straight, expected = run()
    assert history.loss == expected.loss
    for name, value in straight.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name


def test_double_precision(waves):
    torch.manual_seed(0)
    method = CoST(FCN(2, dim=8))
    history = pretrain(method, waves, replace(Recipe(2, 8), precision="float64"), seed=0, device="cpu")
    assert np.isfinite(history.loss).all() and method.season.weight_real.dtype == torch.float64


@pytest.mark.slow
def test_training_lowers_the_loss_once_the_queue_holds_keys(waves):
    torch.manual_seed(0)
    method = CoST(Stack(2, dim=16), queue_size=16, kernels=(1, 2, 4), sigma=0.1)
    loss = pretrain(method, waves, Recipe(60, 8, lr=3e-3), seed=2, device="cpu").loss
    assert np.mean(loss[-20:]) < np.mean(loss[5:25]) - 0.1


def test_what_is_evaluated_is_the_encoder():
    method = prepared()
    assert method.trained_encoder() is method.encoder


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": -1.0}, "alpha must be 0 or above; got -1.0"),
        ({"queue_size": 0}, "queue_size"),
        ({"momentum": 1.1}, "momentum"),
        ({"temperature": 0.0}, "temperature"),
        ({"kernels": ()}, "kernels"),
        ({"kernels": (0, 1)}, "kernels"),
        ({"sigma": -0.5}, "sigma"),
        ({"probability": 2.0}, "probability"),
        ({"dropout": 1.0}, "dropout"),
        ({"max_length": 0}, "max_length"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        CoST(FCN(2, dim=8), **settings)


def test_an_encoder_too_narrow_is_refused():
    with pytest.raises(InputError, match="dim >= 2"):
        CoST(FCN(2, dim=1))
