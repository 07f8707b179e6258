"""Fits and embeddings straight from a corpus: the bits of the same cases in memory."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from tests.corpus.folders import WINDOW, write_recordings

from dicot import TimeSeriesEmbedder, pretrain
from dicot.core.errors import ModelFileError
from dicot.data import Windows
from dicot.methods.dicot import DiCOT
from dicot.model.files import grouped
from dicot.nets.encoders import as_encoder
from dicot.store.build import build_corpus
from dicot.store.folder import Corpus
from dicot.train import Checkpoint, Recipe, Step

TINY = torch.nn.Sequential(torch.nn.Conv1d(2, 8, 3, padding=1), torch.nn.BatchNorm1d(8), torch.nn.ReLU())
SMALL = {"encoder": TINY, "steps": 12, "batch_size": 8, "random_state": 3, "device": "cpu"}


@pytest.fixture
def both(tmp_path) -> tuple[Corpus, Windows]:
    folder, options = write_recordings(tmp_path / "r"), {"channels": ["x", "y"], "label": "label"}
    build_corpus(folder, tmp_path / "c", **WINDOW, **options, shard_bytes=2000)
    return Corpus.open(tmp_path / "c"), Windows.from_folder(folder, **WINDOW, **options)


def equal(one: TimeSeriesEmbedder, other: TimeSeriesEmbedder) -> bool:
    pairs = zip(one.encoder_.state_dict().values(), other.encoder_.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("scale", [None, "dataset", "case"])
def test_weights_and_vectors_are_those_of_the_same_cases_in_memory(both, scale):
    corpus, windows = both
    settings = {**SMALL, "method": "dicot", "scale": scale}
    here, there = (
        TimeSeriesEmbedder(**grouped(settings)).fit(windows),
        TimeSeriesEmbedder(**grouped(settings)).fit(corpus),
    )
    assert equal(here, there) and here.history_.loss == there.history_.loss
    np.testing.assert_array_equal(here.transform(windows), there.transform(corpus))
    np.testing.assert_array_equal(here.transform(windows), here.transform(corpus))


def test_the_whole_preset_is_fitted_from_a_corpus(both):
    corpus, windows = both
    settings = {**SMALL, "steps": 2, "calibrate": True}
    here, there = (
        TimeSeriesEmbedder(**grouped(settings)).fit(windows),
        TimeSeriesEmbedder(**grouped(settings)).fit(corpus),
    )
    assert here.features_["length"] and here.history_.loss
    np.testing.assert_array_equal(here.transform(windows), there.transform(corpus))


def test_labels_are_read_for_a_method_that_needs_them(both):
    corpus, windows = both
    settings = {**SMALL, "method": "supervised"}
    here = TimeSeriesEmbedder(**grouped(settings)).fit(windows, windows.y)
    there = TimeSeriesEmbedder(**grouped(settings)).fit(corpus)
    assert equal(here, there)
    assert here.data_["labels"] == there.data_["labels"] != ""


def test_no_batch_comes_from_another_place_than_its_rows(both):
    """pretrain itself, whose history tells every loss."""
    corpus, windows = both
    histories = []
    for train in (windows.x, corpus):
        torch.manual_seed(0)
        method = DiCOT(as_encoder(deepcopy(TINY), 2, 32))
        histories.append(pretrain(method, train, Recipe(steps=20, batch_size=16), seed=1, device="cpu").loss)
    assert histories[0] == histories[1]


def test_a_run_is_continued_from_its_checkpoint_only_on_the_same_corpus(both, tmp_path):
    corpus, _ = both
    settings = {**SMALL, "method": "dicot"}
    whole = TimeSeriesEmbedder(**grouped(settings)).fit(corpus)
    file = tmp_path / "run.safetensors"

    def fit(train: Corpus, stop: int | None) -> TimeSeriesEmbedder:
        def stopping(step: Step) -> None:
            if step.number == stop:
                raise KeyboardInterrupt

        return TimeSeriesEmbedder(**grouped(settings)).fit(train, checkpoint=Checkpoint(file, 0), on_step=stopping)

    with pytest.raises(KeyboardInterrupt):
        fit(corpus, 5)
    assert file.exists()
    build_corpus(tmp_path / "r", tmp_path / "d", 32, 8, channels=["x", "y"])
    with pytest.raises(ModelFileError, match="belongs to another run .data"):
        fit(Corpus.open(tmp_path / "d"), None)
    assert equal(fit(Corpus.open(tmp_path / "c"), None), whole)


def test_channels_in_another_order_are_put_in_that_of_the_fit(both, tmp_path):
    corpus, windows = both
    model = TimeSeriesEmbedder(**grouped(SMALL), method="dicot").fit(corpus)
    build_corpus(tmp_path / "r", tmp_path / "d", **WINDOW, channels=["y", "x"])
    np.testing.assert_array_equal(model.transform(Corpus.open(tmp_path / "d")), model.transform(windows))
