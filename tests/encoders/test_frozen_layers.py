"""What the inference pass tells of every layer, against the plain path."""

import pytest
import torch
from torch import nn

from dicot.nets.encoders import ENCODERS, as_encoder, build_encoder

LENGTHS = [1, 7, 12, 13, 65, 200]


def trained(name: str, n_channels: int, dtype: torch.dtype):
    torch.manual_seed(0)
    encoder = build_encoder(name, {"n_channels": n_channels, "dim": 16}).to(dtype)
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.3)
    with torch.no_grad():
        encoder.train()(3 * torch.randn(16, n_channels, 50, dtype=dtype))
    return encoder.eval()


def told(encoder, x: torch.Tensor, dtype: torch.dtype | None = None) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Copies of what the readers are given: the memory behind it is used again."""
    seen: dict[str, torch.Tensor] = {}
    readers = {name: lambda h, name=name: seen.update({name: h.clone()}) for name in encoder.layer_dims()}
    with torch.inference_mode():
        last = encoder.frozen_layers(x.shape[2], dtype)(x, readers)
    return seen, last


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-5)])
@pytest.mark.parametrize("n_channels", [2, 130])  # fewer and more than InceptionTime's input projection gives
def test_every_layer_is_told_as_features_have_it(name, dtype, tolerance, n_channels):
    encoder = trained(name, n_channels, dtype)
    for n_times in LENGTHS:
        x = torch.randn(3, n_channels, n_times, dtype=dtype)
        with torch.no_grad():
            expected = encoder.features(x)
        seen, last = told(encoder, x)
        assert seen.keys() == expected.keys()
        for layer, h in expected.items():
            torch.testing.assert_close(seen[layer], h, atol=tolerance, rtol=0)
        torch.testing.assert_close(last, encoder(x).detach(), atol=tolerance, rtol=0)


def test_in_half_precision_two_digits_remain():
    encoder, x = trained("inception_time", 2, torch.float32), torch.randn(3, 2, 65)
    with torch.no_grad():
        expected = encoder.features(x)
    seen, _ = told(encoder, x, torch.bfloat16)
    for layer, h in expected.items():
        torch.testing.assert_close(seen[layer].float(), h, atol=0.03 * float(h.abs().max()), rtol=0)
        dead = (h == 0).double().mean()
        assert abs((seen[layer] == 0).double().mean() - dead) < 0.02, "ReLU's zeros are zeros"


@pytest.mark.parametrize("name", ENCODERS)
def test_without_readers_the_features_are_those_of_frozen(name):
    encoder, x = trained(name, 2, torch.float32), torch.randn(3, 2, 40)
    with torch.inference_mode():
        assert torch.equal(encoder.frozen_layers(40)(x, {}), encoder.frozen(40)(x))


def test_inception_takes_the_sign_of_its_modules():
    names = trained("inception_time", 2, torch.float32).centred_layers()
    assert list(names) == [f"block{i}.module{j}" for i in range(2) for j in range(3)]


def test_a_foreign_module_takes_that_of_its_batch_norms_or_of_all():
    with_norm = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.BatchNorm1d(4), nn.ReLU(inplace=True))
    assert list(as_encoder(with_norm, 2, 20).centred_layers()) == ["1"]
    without = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.ReLU())
    assert list(as_encoder(without, 2, 20).centred_layers()) == ["0", "1"]
