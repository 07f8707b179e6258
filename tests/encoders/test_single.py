"""One case through the frozen network in C against the definition, and against the way of many cases."""

import copy

import pytest
import torch

from dicot.core.gpu.device import host_threads
from dicot.nets.encoders import InceptionTime
from dicot.nets.encoders.inception import single

compiled = pytest.mark.skipif(single.library() is None, reason="there is no C compiler here")


def trained(n_channels: int, dim: int) -> InceptionTime:
    torch.manual_seed(0)
    encoder = InceptionTime(n_channels, dim)
    for module in encoder.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.3)
    with torch.no_grad():
        encoder.train()(3 * torch.randn(16, n_channels, 50))
    return encoder.eval()


@compiled
@pytest.mark.parametrize(("n_channels", "dim"), [(1, 16), (6, 20), (130, 36)])  # 20: no whole number of vectors
@pytest.mark.parametrize("n_times", [13, 60, 65, 150, 300])  # one segment to five
def test_equals_the_definition(n_times, n_channels, dim):
    encoder = trained(n_channels, dim)
    frozen = encoder.frozen(n_times)
    assert frozen.single is not None
    x = torch.randn(1, n_channels, n_times)
    with torch.no_grad():
        expected = copy.deepcopy(encoder).double()(x.double()).float()
    found = frozen(x)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    with host_threads(1):
        assert torch.equal(frozen(x), found)
    torch.testing.assert_close(frozen(x.repeat(2, 1, 1))[:1], found, atol=1e-6, rtol=0)


@compiled
def test_input_and_earlier_features_stay_and_nan_is_not_hidden():
    frozen = trained(2, 16).frozen(40)
    x = torch.randn(3, 2, 40).transpose(0, 1).contiguous().transpose(0, 1)[1:2]  # not in one piece
    given = x.clone()
    first = frozen(x)
    kept = first.clone()
    assert not torch.equal(frozen(-x), kept) and torch.equal(first, kept) and torch.equal(x, given)
    assert torch.equal(frozen(x), kept)
    x = x.clone()
    x[0, 1, 20] = torch.nan
    assert frozen(x)[0, :, 20].isnan().all()


@compiled
def test_layers_that_are_read_take_the_way_of_many():
    encoder = trained(2, 16)
    frozen, told = encoder.frozen_layers(40), {}
    x = torch.randn(1, 2, 40)
    last = frozen(x, {"block0.module1": lambda h: told.update(h=h.clone())})
    torch.testing.assert_close(told["h"], encoder.features(x)["block0.module1"], atol=1e-5, rtol=0)
    torch.testing.assert_close(last, frozen(x, {}), atol=1e-6, rtol=0)


def test_short_cases_and_other_types_have_no_such_function():
    encoder = trained(2, 16)
    assert encoder.frozen(8).single is None
    assert encoder.double().frozen(40).single is None
