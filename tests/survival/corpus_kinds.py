"""A corpus and its vectors: every byte is held to its hash."""

from pathlib import Path
from typing import Any

import numpy as np

from dicot.store.build import build_corpus
from dicot.store.corpus import Corpus
from dicot.store.embedding import embed_corpus
from dicot.store.search import EmbeddingIndex
from tests.survival.kind import Kind
from tests.survival.mutations import JSON, NPY, ZIP

SHARD = "c/shards/000000-000"


class _Means:
    def transform(self, windows: Any) -> Any:
        return windows.x.mean(axis=2)


def _make(folder: Path) -> None:
    dice = np.random.default_rng(0)
    (folder / "r").mkdir()
    for name in ("ann", "bob"):
        label = np.repeat(["rest", "walk"], 50)
        np.savez(folder / "r" / f"{name}.npz", X=dice.normal(size=(2, 100)), label=label, rate=50.0)
    build_corpus(folder / "r", folder / "c", 20, 10, label="label")


def _make_vectors(folder: Path) -> None:
    _make(folder)
    embed_corpus(_Means(), Corpus.open(folder / "c"), folder / "v", model_hash="m")


def _read(folder: Path) -> Any:
    corpus = Corpus.open(folder / "c", verify=True)
    return corpus[:], corpus.columns(), corpus.fingerprint()


def _judge(folder: Path, result: Any, sound: Any) -> str:
    if not np.array_equal(result[0], sound[0]):
        return "other windows than were stored"
    if result[1].keys() != sound[1].keys():
        return "other columns than were stored"
    same = all(np.array_equal(result[1][name], sound[1][name]) for name in sound[1])
    return "" if same else "other facts about windows than were stored"


def _read_vectors(folder: Path) -> Any:
    index = EmbeddingIndex.load(folder / "v")
    return index.vectors(np.arange(len(index))), {"recording": index.recording, "start": index.start}


KINDS = [
    Kind(
        "corpus",
        _make,
        {"c/manifest.json": JSON, f"{SHARD}.npy": NPY, f"{SHARD}.npz": ZIP},
        _read,
        _judge,
    ),
    Kind(
        "corpus-vectors",
        _make_vectors,
        {"v/manifest.json": JSON, "v/shards/000000-000.npy": NPY, "v/shards/000000-000.npz": ZIP},
        _read_vectors,
        _judge,
    ),
]
