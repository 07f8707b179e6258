"""What must hold on a GPU as well; skipped where there is none."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.timing.embedding import embedding_section
from benchmarks.timing.scaling import memory_section
from benchmarks.timing.shapes import Shape, effort_for
from benchmarks.timing.steps import step_sections
from torch.nn import functional as F

from dicot.data import Windows
from dicot.methods import METHODS, build_method
from dicot.model.controls import CONTROLS
from dicot.model.embedding import embed
from dicot.nets.encoders import ENCODERS, InceptionTime, build_encoder
from dicot.nets.encoders.inception import rows
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
        np.testing.assert_allclose(embed(model, x, device="cuda", batch_size=batch_size), whole, atol=1e-6, rtol=2e-6)
    order = np.random.default_rng(1).permutation(50)
    np.testing.assert_allclose(embed(model, x[order], device="cuda"), whole[order], atol=1e-6, rtol=2e-6)
    assert next(model.parameters()).device.type == "cpu", "back where it was"
    np.testing.assert_allclose(embed(model, x, device="cpu"), whole, atol=1e-5, rtol=0)


def test_long_cases_equal_the_cpus(waves):
    model = InceptionTime(2)
    CONTROLS["calibrated"](model, waves, "cpu")
    x = np.random.default_rng(0).normal(size=(5, 2, 1200)).astype(np.float32)
    for pooling in ("mean", "layers"):
        exact = embed(model, x, pooling=pooling, device="cpu")
        ours = embed(model, x, pooling=pooling, device="cuda")
        np.testing.assert_allclose(ours, exact, atol=1e-5 * np.abs(exact).max(), rtol=0)


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


@pytest.mark.parametrize("name", METHODS)
def test_every_plan_that_comes_often_is_captured_at_any_length_and_after_any_runs(name, caplog):
    """PyTorch has 32 streams: by the 33rd run, what a capture needs beside it must not be made on its own stream."""
    rng = np.random.default_rng(0)
    for n_times in np.geomspace(24, 3000, 36).astype(int):
        train = Windows(rng.normal(size=(16, 1, n_times)).astype(np.float32), np.arange(16) % 2)
        pretrain(build_method(name, encoder(1), {}), train, Recipe(16, 8), seed=1, device="cuda")
    assert "op by op" not in caplog.text


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
    parts = (torch.backends.cudnn.conv, torch.backends.cuda.matmul)
    before = [part.fp32_precision for part in parts]
    pretrain(build_method("dicot", encoder(), {}), waves, Recipe(2, 8, precision="tf32"), seed=1, device="cuda")
    embed(encoder(), waves.x, device="cuda")
    assert [part.fp32_precision for part in parts] == before


def test_embeddings_are_in_float32_whatever_the_caller_allows():
    model, x = encoder(), np.random.default_rng(0).normal(size=(30, 2, 150)).astype(np.float32)
    expected = embed(model, x, device="cuda")
    torch.set_float32_matmul_precision("high")
    try:
        assert np.array_equal(embed(model, x, device="cuda"), expected)
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("dim", [32, 16])  # with kernels of our own, and with too few columns for them
@pytest.mark.parametrize(("precision", "tolerance"), [("tf32", 5e-3), ("bf16", 3e-2)])
@pytest.mark.parametrize("name", ENCODERS)
def test_faster_arithmetic_keeps_some_digits(name, precision, tolerance, dim, waves):
    torch.manual_seed(0)
    model = build_encoder(name, {"n_channels": waves.x.shape[1], "dim": dim})
    CONTROLS["calibrated"](model, waves, "cuda")
    exact, fast = (embed(model, waves.x, device="cuda", batch_size=8, precision=p) for p in ("float32", precision))
    assert fast.dtype == np.float32
    np.testing.assert_allclose(fast, exact, atol=tolerance * np.abs(exact).max(), rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_of_inference(dtype):
    torch.manual_seed(0)
    u = torch.randn(30, 7, 40, device="cuda", dtype=dtype)
    assert rows.cuda_serves(u, 40)
    expected = F.max_pool1d(u.float().permute(1, 2, 0), 3, stride=1, padding=1).permute(2, 0, 1)
    assert torch.equal(rows.pool_into(u, torch.empty_like(u)).float(), expected)
    parts = [torch.randn(2003, 7, width, device="cuda", dtype=dtype) for width in (192, 64)]
    shift, lowest = torch.randn(2, 256, device="cuda")
    expected = torch.maximum(torch.cat(parts, dim=2).float() + shift, lowest).to(dtype)
    assert torch.equal(rows.join_into(parts, shift, lowest, torch.empty_like(expected)), expected)


@pytest.mark.parametrize("pooling", ["mean", None])
@pytest.mark.parametrize("name", ENCODERS)
def test_overlapped_batches_arrive_in_their_rows(name, pooling, tmp_path):
    """Many more batches than buffers, the last one smaller, from a read-only file in double precision."""
    torch.manual_seed(0)
    model = build_encoder(name, {"n_channels": 3, "dim": 64})
    x = np.random.default_rng(0).normal(size=(1003, 3, 90))
    x.tofile(tmp_path / "cases.bin")
    mapped = np.memmap(tmp_path / "cases.bin", np.float64, mode="r", shape=x.shape)
    done = []
    z = embed(model, mapped, pooling=pooling, device="cuda", batch_size=32, on_batch=done.append)
    assert done == [*range(32, 1003, 32), 1003]
    with torch.no_grad():
        h = model.eval()(torch.from_numpy(x.astype(np.float32))).numpy()
    np.testing.assert_allclose(z, h if pooling is None else h.mean(-1), atol=1e-5, rtol=0)


def test_long_cases_take_bounded_memory():
    torch.manual_seed(0)
    model = InceptionTime(1)
    x = np.random.default_rng(0).normal(size=(256, 1, 20_000)).astype(np.float32)  # 4.9 GiB of features
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    embed(model, x, device="cuda")
    assert torch.cuda.max_memory_allocated() - before < 1.1 * 2**32


def test_the_speed_benchmark_counts_whole_runs_and_leaves_torchs_settings():
    before = torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision
    shape = Shape(8, 24, 1)
    effort = replace(effort_for(shape, "cuda"), steps=2, checked=10)
    steps, _, ratios, agrees = step_sections((shape,), ("float32", "tf32"), "cuda", lambda shape, kind: effort)
    assert agrees and len(ratios) == 2
    for _, values in steps.rows:
        row = dict(zip(steps.columns[1:], values, strict=True))
        assert row["steps"] == "200"
        assert row["ratio"] == pytest.approx(row["plain ms"] / row["ours all in ms"])
    assert len(embedding_section((shape,), "cuda", n_cases=512).rows) == 3, "float32, tf32 and bf16"
    assert (torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision) == before
    ((_, peaks),) = memory_section([shape], "cuda").rows
    assert min(peaks) > 0


def test_embedding_leaves_no_memory_behind_on_the_gpu():
    encoder = build_encoder("inception_time", {"n_channels": 2, "dim": 64})
    x = np.random.default_rng(0).normal(size=(300, 2, 200)).astype(np.float32)
    embed(encoder, x, device="cuda")  # the first one loads libraries
    before = torch.cuda.memory_allocated()
    embed(encoder, x, device="cuda")
    assert torch.cuda.memory_allocated() - before < 2**20
