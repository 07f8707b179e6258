"""What every encoder in the registry must do, and a toy that is registered like one of a user."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from dicot.embedding import embed
from dicot.encoders import ENCODERS, Encoder, build_encoder, encoder_name
from dicot.errors import InputError
from dicot.estimator import TimeSeriesEmbedder
from dicot.pretrained import from_pretrained, save_pretrained


class Toy(Encoder):
    """The least a user writes: a forward, and an argument of its own kept under its name. No BatchNorm, no padding."""

    def __init__(self, n_channels: int, dim: int = 32, depth: int = 2) -> None:
        super().__init__(n_channels, dim)
        self.depth = depth
        self.maps = nn.ModuleList(nn.Conv1d(n_channels if i == 0 else dim, dim, 1) for i in range(depth))

    def forward(self, x: torch.Tensor, keep: torch.Tensor | None = None) -> torch.Tensor:
        self.check_shape(x.shape)
        v = x if keep is None else x * keep.unsqueeze(1)
        for layer in self.maps:
            v = layer(v).tanh()
        return v


@pytest.fixture(params=[*ENCODERS, "toy"])
def name(request, monkeypatch):
    if request.param == "toy":
        monkeypatch.setitem(ENCODERS, "toy", Toy)
    return request.param


def make(name: str, n_channels: int = 2, dim: int = 16, **own: object) -> Encoder:
    torch.manual_seed(0)
    return build_encoder(name, {"n_channels": n_channels, "dim": dim, **own})


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
    h, whole = encoder(x, keep), encoder(x)
    assert torch.equal(h[1], whole[1])
    assert not torch.equal(h[0, :, 150], whole[0, :, 150])
    # What is blanked has no influence any more.
    changed = x.clone()
    changed[0, :, 100:] += 5
    assert torch.equal(encoder(changed, keep), h)


@pytest.mark.parametrize("n_times", [3, 20])
def test_features_of_every_layer_end_with_the_output(name, n_times):
    encoder = make(name).eval()
    x = torch.randn(3, 2, n_times)
    features = encoder.features(x)
    assert len(features) > 1
    assert all(h.shape[0] == 3 and h.shape[2] == n_times for h in features.values())
    assert torch.equal(features[list(features)[-1]], encoder(x))
    assert encoder.layer_dims() == {layer: h.shape[1] for layer, h in features.items()}
    assert not any(module._forward_hooks for module in encoder.modules()), "hooks are left behind"


def test_the_plain_path_gives_the_same(name):
    """In training up to rounding: features, gradients and statistics; in inference as embedding promises."""
    plain = make(name).double()
    plain.plain = True
    other = make(name).double()
    x = torch.randn(4, 2, 30, dtype=torch.float64)
    for module in (plain, other):
        torch.manual_seed(1)  # dropout
        module.train()(x).square().sum().backward()
    for mine, theirs in zip(plain.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-8, rtol=1e-8)
    for mine, theirs in zip(plain.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=1e-12)
    vectors = [embed(module.float(), x.float().numpy(), device="cpu") for module in (plain, other)]
    np.testing.assert_allclose(*vectors, atol=1e-5, rtol=0)
    assert copy.deepcopy(plain).plain and not copy.deepcopy(other).plain
    assert plain.state_dict().keys() == other.state_dict().keys()


def test_hooks_on_every_module_fire(name):
    """In training, in eval and in embed: whatever is called by definition is called where somebody listens."""
    encoder = make(name)
    modules = {label: module for label, module in encoder.named_modules() if not isinstance(module, nn.ModuleList)}
    fired: list[str] = []
    for label, module in modules.items():
        module.register_forward_hook(lambda module, inputs, output, label=label: fired.append(label))
    x = torch.randn(3, 2, 20)
    for run in (lambda: encoder.train()(x), lambda: encoder.eval()(x), lambda: embed(encoder, x.numpy(), device="cpu")):
        fired.clear()
        run()
        assert set(fired) == set(modules)


def test_fresh_has_the_same_shape_and_other_weights(name):
    encoder = make(name)
    other = encoder.fresh()
    assert type(other) is type(encoder)
    pairs = list(zip(encoder.state_dict().values(), other.state_dict().values(), strict=True))
    assert all(a.shape == b.shape for a, b in pairs)
    assert any(not torch.equal(a, b) for a, b in pairs)
    assert encoder_name(other) == name


def test_can_be_saved_and_copied(name, tmp_path):
    encoder = make(name).eval()
    x = torch.randn(2, 2, 12)
    embed(encoder, x.numpy(), device="cpu")
    loaded, _ = from_pretrained(save_pretrained(tmp_path / name, encoder, {}))
    for other in (loaded, copy.deepcopy(encoder)):
        assert torch.equal(other(x), encoder(x)) and other.config() == encoder.config()


def test_refuses_other_channels_in_words(name):
    with pytest.raises(InputError, match="2 channels.*\\(3, 1, 8\\)"):
        make(name)(torch.randn(3, 1, 8))
    with pytest.raises(InputError, match="no_such_argument"):
        build_encoder(name, {"n_channels": 1, "no_such_argument": 3})
    with pytest.raises(InputError, match="n_channels.*0"):
        make(name, n_channels=0)


def test_batch_norm_refuses_a_single_value_in_words(name):
    encoder = make(name)
    if any(isinstance(module, _BatchNorm) for module in encoder.modules()):
        with pytest.raises(InputError, match="one time step of one case"):
            encoder(torch.randn(1, 2, 1))
    else:
        assert encoder(torch.randn(1, 2, 1)).shape == (1, 16, 1)
    assert embed(encoder, np.zeros((1, 2, 1), np.float32), device="cpu").shape == (1, 16), "no batch is trained on"


def test_an_encoder_of_a_user_with_an_argument_of_its_own(monkeypatch, tmp_path, waves):
    monkeypatch.setitem(ENCODERS, "toy", Toy)
    model = TimeSeriesEmbedder(encoder="toy", encoder_params={"depth": 3}, dim=16, steps=2, device="cpu").fit(waves.x)
    assert model.encoder_.config() == {"n_channels": 2, "dim": 16, "depth": 3}
    loaded = TimeSeriesEmbedder.from_pretrained(model.save_pretrained(tmp_path / "model"), device="cpu")
    assert loaded.encoder_.depth == 3
    assert np.array_equal(loaded.transform(waves.x), model.transform(waves.x))


def test_an_argument_that_is_not_kept_is_named():
    class Forgetful(Encoder):
        def __init__(self, n_channels: int, dim: int = 4, depth: int = 1) -> None:
            super().__init__(n_channels, dim)

        def forward(self, x, keep=None):
            return x

    with pytest.raises(InputError, match="'depth'"):
        Forgetful(1).config()


def test_unknown_name_suggests():
    with pytest.raises(InputError, match="'inception_time'"):
        build_encoder("InceptionTime", {"n_channels": 1})
