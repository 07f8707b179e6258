"""Long cases by halves on a CPU, with what the kernels of a GPU compute written in PyTorch; on a GPU: test_gpu.py."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.nets.encoders import InceptionTime
from dicot.nets.encoders.inception import halves, kernels
from dicot.nets.encoders.inception.filter_bank import Halved


def split_into(
    v: Tensor, largest: Tensor, unit: float, both: Tensor, whole: Tensor, factors: Tensor, *, left: int | None = None
) -> None:
    scale = torch.ldexp(torch.ones_like(largest), 10 - torch.frexp(largest).exponent)
    factors.copy_(unit / scale)
    x = v * scale[:, None]
    if left is not None:
        x = x[(torch.arange(whole.shape[1]) - left).clamp(0, len(v) - 1)].transpose(0, 1)
    held = x.half()
    whole.view_as(held).copy_(held)
    both.view(*held.shape[:2], -1).copy_(torch.cat([held, (x - held).half()], dim=2))


def multiply_into(y: Tensor, a: Tensor, b: Tensor, *, add: bool = False) -> None:
    y.copy_(a.float() @ b.float() + (y if add else 0))


def pooled(u: Tensor) -> Tensor:
    return F.max_pool1d(u.permute(1, 2, 0), 3, stride=1, padding=1).permute(2, 0, 1)


def project(self: halves.Projections, u: Tensor, largest: Tensor, v: Tensor, largest_of_v: Tensor, z: Tensor) -> None:
    assert torch.equal(largest, halves.largest_of_cases(u)), "known from whoever wrote u"
    n_chunks, n_tiles = self.weights.shape[:2]
    parts = self.weights.view(n_chunks, n_tiles, 8, 4, 2, 4)  # (C / 16, O / 8, column, q, number and rest, channel)
    weight = parts.float().sum(dim=4).permute(0, 3, 4, 1, 2).reshape(u.shape[2], -1) * self.unit
    if self.name == "narrow_and_pooled":
        v.copy_(u @ weight[:, : halves.NARROW] + self.bias)
    largest_of_v.copy_(halves.largest_of_cases(v))
    z.copy_(pooled(u) @ weight[:, -halves.POOLED :])


def join_into(
    parts: list[Tensor],
    shift: Tensor,
    lowest: Tensor,
    y: Tensor,
    *,
    factors: Tensor | None = None,
    added: tuple[Any, Any] = (None, None),
    largest: Tensor | None = None,
) -> Tensor:
    first = parts[0] if factors is None else parts[0] * factors[:, None]
    y.copy_(torch.maximum(torch.cat([first, parts[1]], dim=2) + shift, lowest))
    if added[0] is not None:
        y.add_(added[0] if added[1] is None else added[0] * added[1][:, None]).relu_()
    if largest is not None:
        largest.copy_(halves.largest_of_cases(y))
    return y


@pytest.mark.parametrize("readers", [(), ("input", "block0.module2", "block0", "block1.module1", "block1.module2")])
@pytest.mark.parametrize("n_channels", [2, 130])  # fewer than the input is projected to, and more
def test_long_cases_are_those_of_the_definition(n_channels, readers, monkeypatch):
    monkeypatch.setattr(halves, "serve", lambda like, n_times: True)
    monkeypatch.setattr(kernels, "serve", lambda like, *widths: True)
    monkeypatch.setattr(kernels, "pool_into", lambda u, y: y.copy_(pooled(u)))
    monkeypatch.setattr(halves.Projections, "__call__", project)
    for module, function in ((halves, split_into), (halves, multiply_into), (kernels, join_into)):
        monkeypatch.setattr(module, function.__name__, function)
    torch.manual_seed(0)
    encoder = InceptionTime(n_channels)
    with torch.no_grad():
        encoder(torch.randn(8, n_channels, 64))  # statistics of BatchNorm
        encoder.eval()
        x = torch.randn(2, n_channels, 90) * torch.tensor([1.0, 40.0])[:, None, None]
        expected, exact = encoder.features(x), encoder(x)
    told: dict[str, Tensor] = {}
    frozen = encoder.frozen_layers(x.shape[2])
    assert isinstance(frozen.block0.first.bank, Halved)
    y = frozen(x, {name: lambda h, name=name: told.update({name: h.clone()}) for name in readers})
    for ours, wanted in [(y, exact), *((told[name], expected[name]) for name in readers)]:
        scale = wanted.abs().amax(dim=(1, 2), keepdim=True)
        assert ((ours - wanted).abs() / scale).max() < 3e-6
