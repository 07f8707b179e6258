"""What must hold on a GPU as well; skipped where there is none."""

import numpy as np
import pytest
import torch

from bench.speed.shapes import Effort, Shape
from bench.speed.steps import method_row
from dicot.data import Windows
from dicot.methods import METHODS, build_method
from dicot.model.controls import CONTROLS
from dicot.model.embedding import embed
from dicot.nets.encoders import ENCODERS, InceptionTime, build_encoder
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


@pytest.mark.parametrize("pooling", ["mean", "own", None])
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
        cases = torch.from_numpy(x.astype(np.float32))
        h = (model.eval().embed if pooling == "own" else model.eval())(cases).numpy()
    wanted = h.mean(-1) if pooling == "mean" else h
    np.testing.assert_allclose(z, wanted, atol=1e-4 if pooling == "own" else 1e-5, rtol=0)


def test_embedding_leaves_no_memory_behind_on_the_gpu():
    encoder = build_encoder("inception_time", {"n_channels": 2, "dim": 64})
    x = np.random.default_rng(0).normal(size=(300, 2, 200)).astype(np.float32)
    embed(encoder, x, device="cuda")  # the first one loads libraries
    before = torch.cuda.memory_allocated()
    embed(encoder, x, device="cuda")
    assert torch.cuda.memory_allocated() - before < 2**20


def test_a_method_is_timed_beside_its_plain_loop():
    row = method_row("dicot", Shape(8, 24, 1), "tf32", "cuda", Effort(1, 1, 2, 0, 1, 200))
    assert row["method, B, T, C, precision"] == "dicot 8, 24, 1 tf32"
    assert min(row["plain ms"], row["ours ms"], row["ratio"]) > 0
