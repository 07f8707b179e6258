"""CUDA graphs on a GPU; skipped where torch sees no GPU."""

import gc
import logging

import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import METHODS, Batch, build_method
from dicot.nets.encoders import InceptionTime
from dicot.train import Checkpoint, History, Recipe, Step, pretrain

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")


VARIANTS = [
    *((name, {}) for name in METHODS),
    ("dicot", {"projection": True}),
    ("catt", {"chunked": False}),
]


def method(name: str, n_channels: int = 2, seed: int = 0, **settings):
    torch.manual_seed(seed)
    return build_method(name, InceptionTime(n_channels, dim=32), settings)


def losses(name: str, waves: Windows, stepper: str, steps: int = 30, **settings) -> np.ndarray:
    history = pretrain(method(name, **settings), waves, Recipe(steps, 8), seed=1, device="cuda", stepper=stepper)
    return np.array(history.loss)


@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_graphs_give_what_single_operations_give(name, settings, waves, caplog):
    with caplog.at_level(logging.WARNING, "dicot"):
        replayed = losses(name, waves, "graphs", **settings)
    assert not caplog.records
    np.testing.assert_allclose(replayed[:6], losses(name, waves, "eager", **settings)[:6], rtol=1e-3)


def test_two_runs_of_a_seed_are_equal_to_the_bit(waves):
    assert np.array_equal(losses("dicot", waves, "graphs", 100), losses("dicot", waves, "graphs", 100))


# Memory: two views of long cases, so that a step takes far more than what every run takes.


@pytest.fixture
def two_views(monkeypatch):
    kind = METHODS["dicot"]
    usual = kind.loss

    def both(self, batch, plan):
        return usual(self, batch, plan) + usual(self, Batch(batch.x.flip(-1), batch.index), plan)

    monkeypatch.setattr(kind, "loss", both)
    gc.collect()
    torch.cuda.empty_cache()
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)
    gc.collect()
    torch.cuda.empty_cache()


@pytest.fixture(scope="module")
def long_cases() -> Windows:
    return Windows(np.random.default_rng(0).standard_normal((64, 2, 600), dtype=np.float32))


def trained(cases: Windows, batch_size: int = 32) -> History:
    torch.manual_seed(0)
    run = build_method("dicot", InceptionTime(2, dim=128), {"k": (2, 10)})
    return pretrain(run, cases, Recipe(15, batch_size), seed=0, device="cuda")


def taken(cases: Windows) -> int:
    """Bytes that a run takes."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    trained(cases)
    return torch.cuda.max_memory_reserved() - before


def total_memory() -> int:
    return torch.cuda.get_device_properties(0).total_memory


def leave(n_bytes: float) -> None:
    """To this process, beside what it holds."""
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + n_bytes) / total_memory())


def test_where_memory_does_not_suffice_for_graphs_a_run_ends_op_by_op(two_views, long_cases, caplog, monkeypatch):
    expected = trained(long_cases).loss
    leave(0.7 * taken(long_cases))
    # Nobody says how little there is.
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (total_memory(), total_memory()))
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", lambda device: 1.0)
    found = trained(long_cases).loss
    assert "does not suffice" in caplog.text
    np.testing.assert_allclose(found[:6], expected[:6], rtol=1e-3)


def test_a_run_that_fits_in_no_way_says_so(two_views, long_cases):
    leave(2**29)
    with pytest.raises(MemoryError, match="not even op by op"):
        trained(long_cases, batch_size=64)


# Batches that are streamed, and optimisers of the caller's choice.


@pytest.mark.parametrize("name", METHODS)
def test_streamed_batches_give_the_same_losses(name, waves, caplog):
    def run(batches: str) -> list[float]:
        return pretrain(method(name), waves, Recipe(40, 8), seed=1, device="cuda", batches=batches).loss

    with caplog.at_level(logging.WARNING, "dicot"):
        assert run("streamed") == run("device")
    assert not caplog.records


def test_a_run_that_ends_early_has_the_history_of_its_weights(waves, tmp_path):
    """Losses arrive some steps late: more steps are taken than the one that a callback ends the run at."""
    told: list[int] = []

    def stop(step: Step) -> bool:
        told.append(step.number)
        return step.number == 70

    checkpoint = Checkpoint(tmp_path / "run", 1000)
    trained = method("dicot")
    history = pretrain(trained, waves, Recipe(400, 8), seed=1, device="cuda", on_step=stop, checkpoint=checkpoint)
    assert 70 <= len(history) < 400 and told == list(range(1, len(history) + 1))
    whole: list[float] = pretrain(method("dicot"), waves, Recipe(400, 8), seed=1, device="cuda").loss
    assert history.loss == whole[: len(history)]
    read = method("dicot")
    again = pretrain(read, waves, Recipe(400, 8), seed=1, device="cuda", checkpoint=checkpoint)
    assert again.loss == history.loss
    assert all(torch.equal(value, read.state_dict()[name]) for name, value in trained.state_dict().items())
