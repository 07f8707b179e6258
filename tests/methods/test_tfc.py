import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import Batch
from dicot.methods.tfc import TFC, distort_spectrum, magnitude_spectrum
from dicot.nets.encoders import FCN, InceptionTime, ResNet
from dicot.nets.losses import nt_xent, poly_nt_xent
from dicot.nets.views import jitter


def build(**settings) -> TFC:
    torch.manual_seed(0)
    return TFC(FCN(2, dim=8), **settings)


@pytest.mark.parametrize("form", ["poly", "plain"])
@pytest.mark.parametrize("consistency", [False, True])
@pytest.mark.parametrize("per_sample", [False, True])
def test_loss_by_hand(form, consistency, per_sample):
    settings = {"form": form, "consistency": consistency, "per_sample_maximum": per_sample}
    method = build(temperature=0.3, weight=0.4, noise=1.5, remove=0.2, add=0.3, **settings).double().eval()
    method.noise_unit[:] = torch.tensor([[1.0], [3.0]])
    x = torch.randn(5, 2, 20, dtype=torch.float64)
    torch.manual_seed(1)
    got = method.loss(Batch(x, torch.arange(5)), ())

    torch.manual_seed(1)
    noisy = jitter(x, 1.5 * method.noise_unit)
    spectrum = magnitude_spectrum(x)
    distorted = distort_spectrum(spectrum, 0.2, 0.3, per_sample=per_sample)
    contrast = {"poly": poly_nt_xent, "plain": nt_xent}[form]
    h = [method.encoder(view).mean(dim=2) for view in (x, noisy)]
    g = [method.spectrum_encoder(view).mean(dim=2) for view in (spectrum, distorted)]
    z, w = [method.time_projector(e) for e in h], [method.spectrum_projector(e) for e in g]
    own, joint = contrast(*h, 0.3) + contrast(*g, 0.3), contrast(z[0], w[0], 0.3)
    expected = 0.4 * own + joint
    if consistency:
        others = contrast(z[0], w[1], 0.3), contrast(z[1], w[0], 0.3), contrast(z[1], w[1], 0.3)
        expected = 0.4 * own + 0.6 * sum(1 + joint - other for other in others)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("encoder", [InceptionTime(1, dim=8), ResNet(1, dim=8, original=True)])
def test_the_spectrum_has_an_encoder_of_its_own_and_the_other_is_evaluated(encoder):
    method = TFC(encoder)
    assert method.trained_encoder() is encoder
    assert type(method.spectrum_encoder) is type(encoder)
    assert method.spectrum_encoder.config() == encoder.config()
    shared = {id(p) for p in encoder.parameters()} & {id(p) for p in method.spectrum_encoder.parameters()}
    assert not shared
    first, second = next(encoder.parameters()), next(method.spectrum_encoder.parameters())
    assert not torch.equal(first, second)


def test_noise_is_in_units_of_the_channel():
    x = np.random.default_rng(0).normal(size=(50, 2, 40)) * [[0.1], [10.0]] + 5
    for absolute, expected in ((False, [0.1, 10]), (True, [1, 1])):
        method = build(absolute_noise=absolute)
        method.prepare(Windows(x.astype(np.float32)))
        assert method.noise_unit.flatten().tolist() == pytest.approx(expected, rel=0.05)
        assert "noise_unit" in method.state_dict()
