"""Every registered encoder: features of all layers, the plain path, hooks, and BatchNorm's own words."""

import pytest
from tests.own import Net
from torch import nn

from dicot.nets.encoders import ENCODERS, FCN, InceptionTime, ResNet, as_encoder
from dicot.nets.encoders.base import stages_of


@pytest.fixture(params=ENCODERS)
def name(request):
    return request.param


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
