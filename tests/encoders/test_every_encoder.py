"""Every registered encoder: features of all layers, the plain path, hooks, and BatchNorm's own words."""

import copy

import numpy as np
import pytest
import torch
from tests.own import Net
from torch import nn

from dicot.core.errors import InputError
from dicot.model.embedding import embed
from dicot.nets.encoders import ENCODERS, FCN, Encoder, InceptionTime, ResNet, as_encoder, build_encoder
from dicot.nets.encoders.inspection import stages_of


@pytest.fixture(params=ENCODERS)
def name(request):
    return request.param


def make(name: str) -> Encoder:
    torch.manual_seed(0)
    return build_encoder(name, {"n_channels": 2, "dim": 16})


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


def test_batch_norm_refuses_a_single_value(name):
    encoder = make(name)
    if name == "inception_time":  # PyTorch's own BatchNorm says so in the others
        with pytest.raises(InputError, match="one time step of one case"):
            encoder(torch.randn(1, 2, 1))
    assert embed(encoder, np.zeros((1, 2, 1), np.float32), device="cpu").shape == (1, 16), "no batch is trained on"


def names(network: nn.Module, stages: list[list[nn.Parameter]]) -> list[list[str]]:
    known = {id(parameter): name for name, parameter in network.named_parameters()}
    return [[known[id(parameter)] for parameter in stage] for stage in stages]


def test_stages_go_from_input_to_output():
    inception = InceptionTime(2, dim=8)
    found = names(inception, inception.stages())
    assert [{name.partition(".")[0] for name in stage} for stage in found] == [{"input"}, {"block0"}, {"block1"}]
    fcn = FCN(2, dim=8)
    assert names(fcn, fcn.stages())[1] == ["convs.1.weight", "convs.1.bias", "norms.1.weight", "norms.1.bias"]
    resnet = ResNet(2, dim=8)
    assert [stage[0] for stage in names(resnet, resnet.stages())] == [f"blocks.{i}.convs.0.weight" for i in range(3)]
    foreign = as_encoder(Net(), 2, 32)
    parts = [stage[0] for stage in names(foreign, foreign.stages())]
    assert parts == ["module.first.weight", "module.norm.weight", "module.second.weight"]


def test_a_shared_parameter_is_listed_once_and_own_ones_come_first():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(3, 3)
            self.many = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
            self.many[2].weight = self.one.weight
            self.scale = nn.Parameter(self.one.bias.detach().clone())

    network = Tied()
    assert names(network, stages_of(network)) == [
        ["scale"],
        ["one.weight", "one.bias"],
        ["many.0.weight", "many.0.bias"],
        ["many.2.bias"],
    ]
