"""A small signal on a large offset keeps its shape on every way from values to vectors."""

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from dicot import OnnxEmbedder, Stream, TimeSeriesEmbedder, Windows, export_onnx
from dicot.core.errors import DicotWarning
from dicot.data import inspect_recordings
from dicot.model.vector.levels import Levels
from dicot.store.build import build_corpus
from tests.commands import dicot

OFFSET = 1e9
RATE, LENGTH = 50.0, 128
FREQUENCIES = np.array([1.0, 2.0, 4.0, 7.0])


def signals(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Return waves of four frequencies (n, 1, T), with some noise, and which one each is."""
    rng = np.random.default_rng(0)
    which = rng.permutation(np.arange(n) % 4)
    phase = rng.uniform(size=(n, 1))
    waves = np.sin(2 * np.pi * (FREQUENCIES[which, None] * np.arange(LENGTH) / RATE + phase))
    return (waves + 0.1 * rng.normal(size=waves.shape))[:, None], which


@cache
def model(name: str) -> TimeSeriesEmbedder:
    if name == "dicot-base":
        return TimeSeriesEmbedder.from_pretrained(name, device="cpu")
    return TimeSeriesEmbedder(random_state=0, device="cpu").fit(signals()[0] + OFFSET)


def accuracy(vectors: np.ndarray, which: np.ndarray) -> float:
    half = len(vectors) // 2
    return float(KNeighborsClassifier(1).fit(vectors[:half], which[:half]).score(vectors[half:], which[half:]))


def recording_file(folder: Path, offset: np.ndarray | float) -> Path:
    """Write the signals one after the other, as a .csv with a time stamp for each row."""
    values = signals()[0].ravel()
    path = folder / "pump.csv"
    rows = {"time": np.arange(len(values)) / RATE, "p": values + offset}
    pd.DataFrame(rows).to_csv(path, index=False, float_format="%.17g")
    return path


@pytest.mark.parametrize("offset", [0.0, 1e6, 3e7, OFFSET])
@pytest.mark.parametrize("name", ["dicot-base", "instant"])
def test_frequencies_are_told_apart_on_any_offset(name: str, offset: float):
    x, which = signals()
    assert accuracy(model(name).transform(x + offset), which) == 1.0


def test_an_offset_changes_nothing_of_a_vector_but_the_levels():
    encoder = TimeSeriesEmbedder("random", encoder="universal", features={"pooling": "own"}, random_state=0)
    x = signals()[0]
    encoder.fit(x)
    np.testing.assert_allclose(encoder.transform(x + OFFSET), encoder.transform(x), atol=2e-3)
    centred, offsets = torch.from_numpy(x).float(), torch.tensor([[OFFSET]])
    levels = Levels(1)(centred, offsets)
    np.testing.assert_allclose(levels[:, :3], OFFSET, rtol=1e-6)
    torch.testing.assert_close(levels[:, 3:], Levels(1)(centred)[:, 3:])


@pytest.mark.parametrize("name", ["dicot-base", "instant"])
def test_a_vector_does_not_depend_on_whether_others_have_an_offset(name: str):
    x = signals()[0]
    mixed = x + OFFSET * (np.arange(len(x)) % 2)[:, None, None]
    embedder = model(name)
    np.testing.assert_allclose(embedder.transform(mixed)[::2], embedder.transform(x)[::2], atol=1e-5)
    alone = [embedder.transform(case[None])[0] for case in mixed[:6]]
    np.testing.assert_allclose(embedder.transform(mixed)[:6], alone, atol=1e-5)
    listed = embedder.transform(list(mixed))
    np.testing.assert_array_equal(listed, embedder.transform(mixed))


def test_without_a_large_offset_the_bits_stay():
    x = signals()[0].astype(np.float32) + np.float32(100)
    embedder = model("dicot-base")
    np.testing.assert_array_equal(embedder.transform(x.astype(np.float64)), embedder.transform(x))


@pytest.mark.parametrize("before", ["everywhere", "after a start at zero"])
def test_a_file_and_a_stream_keep_the_signal(before: str, tmp_path: Path):
    x, which = signals()
    offset = np.full(x.size, OFFSET)
    if before != "everywhere":
        offset[:LENGTH] = 0.0
    recording_file(tmp_path, offset)
    embedder = model("dicot-base")
    frame = embedder.embed_folder(tmp_path, LENGTH, LENGTH)
    vectors = frame.filter(regex=r"^v\d+$").to_numpy()
    assert accuracy(vectors, which) == 1.0
    stream = Stream(embedder, window=LENGTH, stride=LENGTH, rate=RATE)
    streamed = np.stack([window.vector for window in stream.push(x.ravel()[:, None] + offset[:, None])])
    np.testing.assert_allclose(streamed, vectors, atol=1e-4)


@pytest.mark.parametrize("scale", ["none", "dataset", "case"])
def test_every_scale_keeps_the_signal(scale: str):
    x, which = signals()
    prepare = {} if scale == "none" else {"scale": scale}
    x = x + OFFSET * (np.arange(len(x)) % 4 == 0)[:, None, None]
    vectors = TimeSeriesEmbedder(prepare=prepare, random_state=0, device="cpu").fit(x).transform(x)
    assert len(np.unique(vectors, axis=0)) == len(x)
    same_level = np.arange(len(x)) % 4 == 0
    assert accuracy(vectors[same_level], which[same_level]) >= 0.9


@pytest.mark.parametrize("name", ["dicot-base", "instant"])
def test_an_exported_model_of_float64_keeps_the_signal(name: str, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    x, _ = signals()
    export_onnx(model(name), tmp_path / "exact.onnx", float64=True)
    deployed = OnnxEmbedder(tmp_path / "exact.onnx")
    for cases in (x, x + OFFSET):
        right = model(name).transform(cases)
        np.testing.assert_allclose(deployed.transform(cases), right, atol=1e-4 * np.abs(right).max())
    bare = deployed.session.run(["embedding"], {"window": x + OFFSET})[0]
    np.testing.assert_array_equal(bare, deployed.transform(x + OFFSET))


def test_an_exported_model_of_float32_says_what_is_lost(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    export_onnx(model("dicot-base"), tmp_path / "base.onnx")
    deployed = OnnxEmbedder(tmp_path / "base.onnx")
    with pytest.warns(DicotWarning, match=r"Channel 0 varies by less in 80 of 80 windows .* --float64"):
        deployed.transform(signals()[0] + OFFSET)


def test_an_encoder_that_needs_the_level_says_what_is_lost():
    x = signals()[0] + OFFSET
    trained = TimeSeriesEmbedder("random", encoder="fcn", dim=8, random_state=0, device="cpu")
    with pytest.warns(DicotWarning, match=r"Channel 0 varies by less in 80 of 80 windows than float32.*dicot-base"):
        trained.fit(x)
    with pytest.warns(DicotWarning, match="Channel 0 varies by less in 80 of 80 windows than float32"):
        trained.transform(x)


def test_what_float32_lost_before_is_named_with_its_channel():
    x = signals()[0]
    windows = Windows(np.concatenate([x, 100 * x + OFFSET], axis=1).astype(np.float32), channels=("a", "p"))
    with pytest.warns(DicotWarning, match="Channel 'p' varies by less in 80 of 80 windows than 64 steps of float32"):
        TimeSeriesEmbedder(random_state=0, device="cpu").fit(windows)
    whole_numbers = np.random.default_rng(0).integers(2**23, 2**23 + 3, size=(20, 1, 64)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model("dicot-base").transform(whole_numbers)


def test_inspect_names_an_offset(tmp_path: Path):
    path = recording_file(tmp_path, OFFSET)
    (row,) = inspect_recordings(path)
    assert row.offsets["p"].startswith("mean 1e+09, varies by 2.")
    shown = dicot("inspect", path)
    assert "channel p of pump.csv: mean 1e+09, varies by 2." in " ".join(shown.split())
    recording_file(tmp_path, 1000.0)
    assert not inspect_recordings(path)[0].offsets


def test_a_corpus_says_where_it_loses_a_stretch(tmp_path: Path):
    offset = np.full(signals()[0].size, OFFSET)
    offset[:LENGTH] = 0.0
    path = recording_file(tmp_path, offset)
    with pytest.warns(DicotWarning, match="In stretches of recording 'pump' the values of a channel differ by less"):
        build_corpus(path, tmp_path / "corpus", LENGTH)
