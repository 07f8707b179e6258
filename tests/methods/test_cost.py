import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from dicot.data import Windows
from dicot.methods import Batch, CoST, Places
from dicot.methods.cost import enqueued, frequency_contrast, queue_contrast
from dicot.nets.encoders import InceptionTime


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


def keys_and_queries(method: CoST) -> list[tuple[torch.Tensor, torch.Tensor]]:
    modules = (
        (method.key_encoder, method.key_trend, method.key_projection),
        (method.encoder, method.trend, method.projection),
    )
    keys, queries = ([p for one in part for p in one.parameters()] for part in modules)
    return list(zip(keys, queries, strict=True))


def test_loss_by_hand():
    method = prepared(sigma=0.0, alpha=0.3, momentum=0.9, temperature=0.5, queue_size=6, kernels=(1, 2, 32)).eval()
    data, queue = batch(), method.queue.clone()
    for key, query in keys_and_queries(method):
        assert torch.equal(key, query) and key is not query
    move(method)
    expected_key = [0.9 * k.clone() + 0.1 * q.detach() for k, q in keys_and_queries(method)]
    got = method.loss(data, Places((0, 13)))
    for (key, _), expected in zip(keys_and_queries(method), expected_key, strict=True):
        torch.testing.assert_close(key, expected)
    h = method.encoder(data.x)
    q = normalize(method.projection(method.trend(h, 13)), dim=1)
    k = normalize(method.key_projection(method.key_trend(method.key_encoder(data.x), 13)), dim=1)
    amplitude, phase = frequency_contrast(method.season(h), method.season(h))
    expected = queue_contrast(q, k, queue, 0.5) + 0.3 * (amplitude + phase) / 2
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(method.queue[:, :4], k.T)
    assert torch.equal(method.queue[:, 4:], queue[:, 4:]) and method.pointer.item() == 4


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


@pytest.mark.parametrize("size", [1, 4, 5, 12])
@pytest.mark.parametrize("n_keys", [1, 2, 4, 5, 13])
def test_the_ring_keeps_the_last_keys(size, n_keys):
    queue, pointer = torch.zeros(2, size), torch.tensor(0)
    expected, position = np.zeros((2, size)), 0
    for step in range(4):
        keys = torch.randn(n_keys, 2, generator=torch.Generator().manual_seed(step))
        queue, pointer = enqueued(queue, pointer, keys)
        for key in keys.numpy():  # one after the other, later ones overwriting
            expected[:, position] = key
            position = (position + 1) % size
    np.testing.assert_array_equal(queue.numpy(), expected.astype(np.float32))
    assert pointer.item() == position
