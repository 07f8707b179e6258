"""Any nn.Module as an encoder."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.methods import METHODS, Batch, build_method
from dicot.model.embedding import embed, pooled_dim
from dicot.nets.encoders import ForeignEncoder, as_encoder
from dicot.train import Recipe, pretrain
from dicot.train.batches import plan_generator


class MeanOverTime(nn.Module):
    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return h.mean(-1)


def per_time_step(n_channels: int = 2) -> nn.Sequential:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv1d(n_channels, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(inplace=True))
    return nn.Sequential(body, nn.Dropout(0.5), nn.Conv1d(8, 16, 1))


def per_case(n_channels: int = 2) -> nn.Sequential:
    return nn.Sequential(per_time_step(n_channels), MeanOverTime())


def shorter() -> nn.Conv1d:
    return nn.Conv1d(2, 16, 4, stride=2)


@pytest.mark.parametrize(("make", "n_out"), [(per_time_step, 20), (per_case, 1), (shorter, 9)])
def test_shapes(make, n_out):
    encoder = as_encoder(make(), 2, 20)
    assert as_encoder(encoder, 2, 30) is encoder
    assert isinstance(encoder, ForeignEncoder) and (encoder.n_channels, encoder.dim) == (2, 16)
    assert encoder.per_time_step is (n_out == 20)
    x = torch.randn(5, 2, 20)
    assert encoder(x).shape == (5, 16, n_out) and encoder.embed(x).shape == (5, 16)
    assert embed(encoder, x.numpy(), device="cpu").shape == (5, 16)
    assert embed(encoder, x.numpy(), pooling=None, device="cpu").shape == (5, 16, n_out)
    assert embed(encoder, x.numpy(), pooling="layers", device="cpu").shape == (5, pooled_dim(encoder, "layers"))


@pytest.mark.parametrize(
    ("module", "named"),
    [
        (nn.Flatten(0), "\\(80,\\)"),
        (nn.Sequential(nn.Flatten(0), nn.Unflatten(0, (4, 20))), "\\(4, 20\\)"),
        (nn.LSTM(20, 4), "tuple"),
        (nn.Conv1d, "class"),
    ],
)
def test_other_outputs_are_refused_by_their_shape(module, named):
    with pytest.raises(InputError, match=named):
        as_encoder(module, 2, 20)


def test_features_have_the_names_of_the_modules():
    module = per_time_step().eval()
    x = torch.randn(3, 2, 20)
    features = as_encoder(module, 2, 20).features(x)
    assert list(features) == ["0.0", "0.1", "0.2", "1", "2"]
    assert torch.equal(features["0.0"], module[0][0](x))
    assert torch.equal(features["0.1"], module[0][1](module[0][0](x))), "not what ReLU made of it in place"
    assert torch.equal(features["0.2"], features["0.1"].relu())
    assert torch.equal(features["2"], module(x))
    *_, (name, last) = as_encoder(per_case().eval(), 2, 20).features(x).items()
    assert name == "output" and last.shape == (3, 16, 1)


def test_fresh_draws_new_weights_and_leaves_the_module_alone():
    module = per_time_step()
    before = copy.deepcopy(module.state_dict())
    encoder = as_encoder(module, 2, 20)
    with torch.no_grad():
        encoder.train()(torch.randn(4, 2, 20))
    fresh = encoder.fresh()
    assert isinstance(fresh, ForeignEncoder) and fresh.module is not module
    assert not torch.equal(fresh.module[2].weight, module[2].weight)
    assert torch.equal(fresh.module[0][1].running_mean, torch.zeros(8)), "statistics of BatchNorm start anew"
    assert torch.equal(module[2].weight, before["2.weight"])
    attention = as_encoder(nn.Sequential(nn.Linear(20, 8), nn.TransformerEncoderLayer(8, 2, 8)), 2, 20)
    assert attention.fresh().dim == attention.dim


def loss_of(name: str, module: nn.Module, waves: Windows) -> float:
    torch.manual_seed(0)
    method = build_method(name, as_encoder(module.eval(), 2, 32), {})
    torch.manual_seed(1)
    method.prepare(waves)
    batch = Batch(torch.from_numpy(waves.x[:8]), torch.arange(8), torch.from_numpy(waves.y[:8]))
    torch.manual_seed(2)
    return float(method.eval().loss(batch, method.plan((8, 2, 32), plan_generator(0, 0))).detach())


@pytest.mark.parametrize("name", METHODS)
def test_a_vector_per_case_is_enough_or_refused(name, waves):
    """A method that says nothing gives the same loss whether the module or the encoder takes the mean over time."""
    if METHODS[name].needs_time_steps:
        with pytest.raises(InputError, match=f"{METHODS[name].__name__}.*Sequential"):
            loss_of(name, per_case(), waves)
    else:
        assert loss_of(name, per_case(), waves) == pytest.approx(loss_of(name, per_time_step(), waves), rel=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_a_foreign_module(name, waves):
    module = per_time_step()
    method = build_method(name, as_encoder(module, 2, 32), {})
    history = pretrain(method, waves, Recipe(2, 8), seed=0, device="cpu")
    assert np.isfinite(history.loss).all()
    assert embed(method.trained_encoder(), waves.x, device="cpu").shape == (24, 16)
