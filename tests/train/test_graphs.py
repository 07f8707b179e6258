"""CUDA graphs on a GPU; skipped where torch sees no GPU."""

import gc
import logging

import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import METHODS, Batch, build_method
from dicot.nets.encoders import InceptionTime
from dicot.train import Checkpoint, History, Recipe, Step, TrainingRun, pretrain, pretrain_many

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


def test_many_runs_end_as_they_do_alone(waves):
    names = ["dicot", "tfc", "dicot", "tnc", "simmtm", "dicot", "tfc", "infots"]
    runs = [TrainingRun(method(name, seed=seed), waves, Recipe(60, 8), seed) for seed, name in enumerate(names)]
    together = pretrain_many(runs, device="cuda", at_once=4)
    for seed, (name, history) in enumerate(zip(names, together, strict=True)):
        alone = pretrain(method(name, seed=seed), waves, Recipe(60, 8), seed=seed, device="cuda")
        assert history.loss == alone.loss, name


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


def view_run(seed: int, cases: Windows, k=(2, 10), steps: int = 60) -> TrainingRun:
    torch.manual_seed(seed)
    return TrainingRun(build_method("dicot", InceptionTime(2, dim=128), {"k": k}), cases, Recipe(steps, 32), seed)


def alone(seed: int, cases: Windows, steps: int = 60) -> History:
    run = view_run(seed, cases, steps=steps)
    return pretrain(run.method, cases, run.recipe, seed=seed, device="cuda")


def taken(seed: int, cases: Windows, steps: int = 60) -> int:
    """Bytes that a run takes alone."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    alone(seed, cases, steps)
    return torch.cuda.max_memory_reserved() - before


def total_memory() -> int:
    return torch.cuda.get_device_properties(0).total_memory


def leave(n_bytes: float) -> None:
    """To this process, beside what it holds."""
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + n_bytes) / total_memory())


def test_six_runs_share_the_memory_of_three_and_end_as_alone(two_views, long_cases, caplog):
    expected = [alone(seed, long_cases).loss for seed in range(6)]
    leave(3 * taken(0, long_cases))
    found = pretrain_many([view_run(seed, long_cases) for seed in range(6)], device="cuda")
    assert [history.loss for history in found] == expected
    assert not caplog.records, "nobody found too little"


@pytest.mark.parametrize(("share", "steps"), [(2.5, 60), (0.7, 15)])  # fewer at once; op by op
def test_where_memory_does_not_suffice_runs_end_all_the_same(share, steps, two_views, long_cases, caplog, monkeypatch):
    """Of 15 steps some run op by op, beside what the graphs hold."""
    expected = [alone(seed, long_cases, steps).loss for seed in range(6)]
    leave(share * taken(0, long_cases, steps))
    # Nobody says how little there is.
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (total_memory(), total_memory()))
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", lambda device: 1.0)
    found = pretrain_many([view_run(seed, long_cases, steps=steps) for seed in range(6)], device="cuda")
    assert "does not suffice" in caplog.text
    for history, losses in zip(found, expected, strict=True):
        if share > 1:
            assert history.loss == losses
        np.testing.assert_allclose(history.loss[:6], losses[:6], rtol=1e-3)


def test_a_run_that_fits_in_no_way_is_the_only_one_to_fail(two_views, long_cases, waves):
    leave(2**29)
    runs = [TrainingRun(method("dicot", seed=0), waves, Recipe(20, 8), 0), view_run(0, long_cases)]
    runs[1].recipe = Recipe(20, 64)
    told: dict[int, Exception] = {}
    histories = pretrain_many(runs, device="cuda", on_error=told.__setitem__)
    assert list(told) == [1] and isinstance(told[1], MemoryError)
    assert len(histories[0]) == 20


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
