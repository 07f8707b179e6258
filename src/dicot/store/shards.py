"""Vectors of a corpus, in a folder, shard by shard: by this process, or by those of a Ray cluster.

What is finished lies in an unfinished store, so a run that was killed is continued by the same call, and the bytes are
those of a run that was left alone, whoever did which shard.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dicot.core import __version__
from dicot.core.errors import DicotError, InputError, LostWorkerError, brief
from dicot.core.progress import Bar
from dicot.core.storage import only_writer
from dicot.data.cases import Array
from dicot.store.folder import UNFINISHED, VECTORS, Corpus, Store, UnfinishedStore, finish_unit, known_of, write_shard
from dicot.store.onray import RayCluster, map_rows
from dicot.store.vectors import MadeOf

ATTEMPTS = 3  # times that shards are handed out whose processes were lost: after that it is the shard


class Embedder(Protocol):
    """What turns windows into vectors (N, F): a TimeSeriesEmbedder, an OnnxEmbedder."""

    def transform(self, X: Any, /) -> Array: ...


@dataclass(frozen=True)
class OnRay:
    """Where a corpus is embedded, other than in this process."""

    cluster: RayCluster
    load: Callable[[], Embedder]  # loads the model, once in each process


def embed_corpus(
    model: Embedder | OnRay, corpus: Corpus, out: str | Path, *, model_hash: str, overwrite: bool = False
) -> Store:
    """Embed all windows of a corpus into a folder; killed, the same call continues to the same bytes."""
    folder = Path(out).absolute()
    with only_writer(folder, folder=True):
        work = UnfinishedStore(folder, {"corpus": corpus.fingerprint(), "model": model_hash}, overwrite=overwrite)
        if work.finished is not None:
            return work.finished
        for _ in range(ATTEMPTS):
            missing = [number for number, shard in enumerate(corpus.shards) if work.note(shard.name) is None]
            if not missing:
                break
            with Bar("embed", len(corpus.shards)) as bar:
                bar.update(len(corpus.shards) - len(missing), "shards")
                for count, _ in enumerate(_embed_shards(model, corpus, folder, missing), 1):
                    bar.update(len(corpus.shards) - len(missing) + count, "shards")
        notes = [work.note(shard.name) or {} for shard in corpus.shards]
        lost = [shard.name for shard, note in zip(corpus.shards, notes, strict=True) if not note]
        if lost:
            raise LostWorkerError(
                f"Ray has lost the processes over shard {lost[0]} {ATTEMPTS} times; {len(lost)} of {len(notes)} shards "
                "are missing. The same command goes on with these. Where memory is short, let fewer run at once."
            )
        made = made_of_corpus(corpus, model_hash)
        about = {"model": model_hash, "source": None if made is None else made.to_dict()}
        return work.finish(VECTORS, [notes[0]["features"]], notes, about)


def _embed_shards(model: Embedder | OnRay, corpus: Corpus, folder: Path, numbers: Sequence[int]) -> Iterator[int]:
    """Embed the shards of these numbers, here or on a Ray cluster; yield the number of each that is done."""
    load = model.load if isinstance(model, OnRay) else lambda: model
    arguments = (load, corpus.path.absolute(), folder, os.getcwd(), __version__)
    if isinstance(model, OnRay):
        for answer in map_rows(model.cluster, ShardEmbedder, arguments, numbers):
            if answer["error"]:
                raise InputError(str(answer["error"]))
            yield int(answer["number"])
    else:
        embedder = ShardEmbedder(*arguments)
        for number in numbers:
            embedder.embed(number)
            yield number


class ShardEmbedder:
    """Embeds shards of a corpus by a model that is loaded once. Ray Data keeps one in each process, and calls it."""

    def __init__(self, load: Callable[[], Embedder], corpus: Path, folder: Path, started_in: str, version: str) -> None:
        self.load, self.corpus_at, self.folder = load, corpus, folder
        self.started_in, self.version = started_in, version
        self.model: Embedder | None = None

    def __call__(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """Embed the shard of a number. An error is an answer: Ray would hide its sentence in a traceback."""
        (number,) = batch["number"]
        error = ""
        try:
            self.embed(int(number))
        except DicotError as problem:
            error = str(problem)
        except Exception as problem:
            error = f"Shard {number} could not be embedded ({brief(problem)})."
        return {"number": batch["number"], "error": np.array([error])}

    def embed(self, number: int) -> None:
        """Embed one shard and write its vectors, whole or not at all."""
        if self.model is None:
            self._begin()
        assert self.model is not None
        windows = self.corpus.shard(number)
        vectors = self.model.transform(windows)
        unit = self.corpus.shards[number].name
        shard = write_shard(self.folder, unit, vectors, known_of(windows))
        finish_unit(self.folder, unit, [shard], {"features": vectors.shape[1]})

    def _begin(self) -> None:
        """Load model and corpus, not before the first shard: errors in the making of an object do not come back."""
        host = socket.gethostname()
        if self.version != __version__:
            raise InputError(
                f"A node of the cluster ({host}) has dicot {__version__}, and this is {self.version}. Install the "
                "same version on all nodes."
            )
        for path in (self.corpus_at, self.folder / UNFINISHED):
            if not path.exists():
                raise InputError(
                    f"A node of the cluster ({host}) does not see {path}. Put corpus, model and vectors on a file "
                    "system that all nodes share."
                )
        if Path(self.started_in).is_dir():
            os.chdir(self.started_in)  # so that paths mean what they mean to the caller
        self.model, self.corpus = self.load(), Corpus.open(self.corpus_at)


def made_of_corpus(corpus: Corpus, model: str) -> MadeOf | None:
    """Say which recordings the vectors of a corpus were made of and how; nothing where these lay behind URLs.

    Earlier versions built corpora of such.
    """
    sources = [source for source in corpus.sources if source.windows]
    if any(source.is_url for source in sources):
        return None
    how = (corpus.reading.to_dict(), model, corpus.channels, corpus.rate, corpus.n_times, corpus.stride)
    facts = {source.name: {"file": source.file, "bytes": source.bytes} for source in sources}
    return MadeOf("recordings", tuple(source.file for source in sources), *how, facts)
