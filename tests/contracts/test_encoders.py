"""What every encoder in the registry must do."""

import pytest
import torch

from dicot.encoders import ENCODERS, build_encoder, encoder_name
from dicot.errors import InputError

NAMES = list(ENCODERS)


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def make(name: str, n_channels: int = 2, dim: int = 16):
    torch.manual_seed(0)
    return build_encoder(name, {"n_channels": n_channels, "dim": dim})


@pytest.mark.parametrize("n_times", [1, 2, 4, 5, 9, 40, 101])
def test_keeps_the_length(name, n_times):
    encoder = make(name)
    x = torch.randn(3, 2, n_times)
    assert encoder(x).shape == (3, 16, n_times)
    assert encoder.embed(x).shape == (3, 16)
    assert torch.equal(encoder.eval().embed(x), encoder(x).mean(-1))


@pytest.mark.parametrize("n_times", [4, 30])
def test_every_parameter_gets_a_gradient(name, n_times):
    encoder = make(name)
    encoder.embed(torch.randn(4, 2, n_times)).square().mean().backward()
    for label, parameter in encoder.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), label


def test_keep_blanks_time_steps(name):
    encoder = make(name).eval()
    x = torch.randn(2, 2, 200)
    keep = torch.ones(2, 200, dtype=torch.bool)
    assert torch.equal(encoder(x, keep), encoder(x))
    keep[0, 100:] = False
    h, plain = encoder(x, keep), encoder(x)
    assert torch.equal(h[1], plain[1])
    assert not torch.equal(h[0, :, 150], plain[0, :, 150])
    # What is blanked has no influence any more.
    changed = x.clone()
    changed[0, :, 100:] += 5
    assert torch.equal(encoder(changed, keep), h)


def test_fresh_has_the_same_shape_and_other_weights(name):
    encoder = make(name)
    other = encoder.fresh()
    assert type(other) is type(encoder)
    pairs = list(zip(encoder.state_dict().values(), other.state_dict().values(), strict=True))
    assert all(a.shape == b.shape for a, b in pairs)
    assert any(not torch.equal(a, b) for a, b in pairs)
    assert encoder_name(other) == name


def test_refuses_other_channels_in_words(name):
    with pytest.raises(InputError, match="takes .*2 channels.*got \\(3, 1, 8\\)"):
        make(name)(torch.randn(3, 1, 8))
    with pytest.raises(InputError, match="one time step of one case"):
        make(name)(torch.randn(1, 2, 1))
    with pytest.raises(InputError, match="does not take"):
        build_encoder(name, {"n_channels": 1, "depth": 3})
    with pytest.raises(InputError, match="n_channels must be"):
        make(name, n_channels=0)


def test_unknown_name_suggests():
    with pytest.raises(InputError, match="Did you mean 'inception_time'"):
        build_encoder("InceptionTime", {"n_channels": 1})
