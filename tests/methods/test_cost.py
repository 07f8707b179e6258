import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.methods import Batch, CoST, Places
from dicot.methods.cost import frequency_contrast, queue_contrast
from dicot.nets.encoders import FCN, InceptionTime


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


def test_long_cases_are_cut_to_one_window_for_both_views():
    method = prepared(n_times=20, max_length=8, sigma=0.0)
    assert method.season.n_times == 8
    seen = []
    method.encoder.register_forward_hook(lambda _module, args, _out: seen.append(args[0]))
    data = batch()
    method.loss(data, Places((5, 7)))
    assert len(seen) == 2 and all(torch.equal(x, data.x[..., 5:13]) for x in seen)


def test_an_encoder_too_narrow_is_refused():
    with pytest.raises(InputError, match="dim >= 2"):
        CoST(FCN(2, dim=1))
