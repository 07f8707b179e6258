"""What must hold on a GPU as well; skipped where there is none."""

import numpy as np
import pytest
import torch

from dicot.controls import CONTROLS
from dicot.embedding import embed
from dicot.encoders import InceptionTime
from dicot.methods import METHODS, build_method
from dicot.speed import Options, Shape, run_benchmark
from dicot.speed.memory import memory_section
from dicot.train import Checkpoint, Recipe, pretrain

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")


def encoder(n_channels: int = 2) -> InceptionTime:
    torch.manual_seed(0)
    return InceptionTime(n_channels, dim=32)


def test_an_embedding_does_not_depend_on_its_company_and_equals_the_cpus(waves):
    model = encoder()
    CONTROLS["calibrated"](model, waves, "cuda")
    x = np.random.default_rng(0).normal(size=(50, 2, 150)).astype(np.float32)
    whole = embed(model, x, device="cuda")
    for batch_size in (1, 7, 32):
        np.testing.assert_allclose(embed(model, x, device="cuda", batch_size=batch_size), whole, atol=1e-6, rtol=0)
    order = np.random.default_rng(1).permutation(50)
    np.testing.assert_allclose(embed(model, x[order], device="cuda"), whole[order], atol=1e-6, rtol=0)
    assert next(model.parameters()).device.type == "cpu", "back where it was"
    np.testing.assert_allclose(embed(model, x, device="cpu"), whole, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_and_leaves_the_callers_state(name, waves):
    torch.manual_seed(3)
    before = torch.cuda.get_rng_state()
    method = build_method(name, encoder(), {})
    torch.cuda.set_rng_state(before)
    history = pretrain(method, waves, Recipe(60, 8), seed=1, device="cuda")
    assert len(history) == len(history.lr) == 60
    assert np.isfinite(history.loss).all()
    assert torch.equal(torch.cuda.get_rng_state(), before)


def dicot_run(waves, device: str, steps: int, checkpoint: Checkpoint | None = None) -> list[float]:
    method = build_method("dicot", encoder(), {})
    return pretrain(method, waves, Recipe(steps, 8), seed=1, device=device, checkpoint=checkpoint).loss


def test_first_losses_equal_the_cpus(waves):
    np.testing.assert_allclose(dicot_run(waves, "cuda", 5), dicot_run(waves, "cpu", 5), rtol=1e-3)


def test_a_run_resumes(tmp_path, waves):
    checkpoint = Checkpoint(tmp_path / "run.safetensors", 0)
    first = dicot_run(waves, "cuda", 60, checkpoint)
    assert dicot_run(waves, "cuda", 60, checkpoint) == first


def test_torchs_own_settings_are_restored(waves):
    before = torch.backends.cudnn.conv.fp32_precision
    pretrain(build_method("dicot", encoder(), {}), waves, Recipe(2, 8, precision="tf32"), seed=1, device="cuda")
    embed(encoder(), waves.x, device="cuda")
    assert torch.backends.cudnn.conv.fp32_precision == before


def test_the_speed_benchmark_counts_whole_runs_and_leaves_torchs_settings():
    before = torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision
    shape = Shape(8, 24, 1)
    result = run_benchmark(Options("cuda", shapes=(shape,), steps=2, checked=10, embedding=True))
    assert result.agrees and len(result.ratios) == 2, "float32 and tf32"
    steps = result.sections[0]
    for _, values in steps.rows:
        found = dict(zip(steps.columns[1:], values, strict=True))
        assert found["steps"] == "200" and found["ratio"] == found["plain ms"] / found["ours all in ms"]
    assert (torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision) == before
    ((_, peaks),) = memory_section([shape], "cuda").rows
    assert min(peaks) > 0
