import numpy as np
import pytest
import torch
from torch import nn

from dicot.data import Windows
from dicot.model.controls import CONTROLS
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.nets.encoders import InceptionTime, as_encoder


def fresh(kind=InceptionTime):
    torch.manual_seed(0)
    return kind(2, dim=16)


def test_random_is_the_encoder_as_initialised(waves):
    encoder = fresh()
    CONTROLS["random"](encoder, waves, "cpu")
    assert not encoder.training
    assert all(
        torch.equal(a, b) for a, b in zip(encoder.state_dict().values(), fresh().state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("n_cases", [24, 150])
def test_calibrated_has_the_cumulative_statistics_of_batches_of_64(n_cases):
    x = np.random.default_rng(0).normal(1, 3, size=(n_cases, 2, 20)).astype(np.float32)
    encoder = fresh()
    CONTROLS["calibrated"](encoder, Windows(x), "cpu")
    assert not encoder.training
    # The first normalisation sees a fixed linear map of the input, so its statistics can be written down.
    plain = fresh().eval()
    means, variances = [], []
    seen = []
    plain.block0.module0.bn.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    with torch.no_grad():
        for start in range(0, n_cases, 64):
            plain(torch.from_numpy(x[start : start + 64]))
            means.append(seen[-1].mean((0, 2)))
            variances.append(seen[-1].var((0, 2)))
    norm = encoder.block0.module0.bn
    torch.testing.assert_close(norm.running_mean, torch.stack(means).mean(0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(norm.running_var, torch.stack(variances).mean(0), rtol=1e-4, atol=1e-5)
    assert norm.momentum == 0.1
    for (name, ours), theirs in zip(encoder.named_parameters(), plain.parameters(), strict=True):
        assert torch.equal(ours, theirs), name


def test_calibration_does_not_count_what_was_there_before(waves):
    encoders = [fresh(), fresh()]
    with torch.no_grad():
        encoders[1].train()(torch.randn(8, 2, 20) * 100)
    for encoder in encoders:
        CONTROLS["calibrated"](encoder, waves, "cpu")
    assert all(torch.equal(a, b) for a, b in zip(*(e.state_dict().values() for e in encoders), strict=True))


def test_controls_start_from_the_weights_the_method_starts_from(waves):
    settings = {"dim": 16, "random_state": 4, "device": "cpu"}
    start = TimeSeriesEmbedder("dicot", steps=0, **settings).fit(waves.x).encoder_
    for name in CONTROLS:
        control = TimeSeriesEmbedder(name, **settings).fit(waves.x)
        assert control.history_.loss == []
        for ours, theirs in zip(control.encoder_.parameters(), start.parameters(), strict=True):
            assert torch.equal(ours, theirs)


def test_any_batch_norm_is_calibrated_in_foreign_modules_too(waves):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Unflatten(2, (32, 1)), nn.Conv2d(2, 4, 1), nn.BatchNorm2d(4), nn.Flatten(2))
    encoder = as_encoder(module, 2, 32)
    CONTROLS["calibrated"](encoder, waves, "cpu")
    with torch.no_grad():
        values = module[1](torch.from_numpy(waves.x).unsqueeze(3))
    torch.testing.assert_close(module[2].running_mean, values.mean((0, 2, 3)), rtol=1e-4, atol=1e-5)
    assert int(module[2].num_batches_tracked) == 1 and not encoder.training


def test_without_batch_norm_the_controls_are_equal(waves):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv1d(2, 4, 1), nn.GroupNorm(2, 4), nn.Dropout(0.5))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.get_rng_state()
    encoder = as_encoder(module, 2, 32)
    CONTROLS["calibrated"](encoder, waves, "cpu")
    assert not encoder.training and torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
