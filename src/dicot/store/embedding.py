"""The vectors of a corpus: a store with a shard for each of its shards, by this process or by many on a Ray cluster.

Any process may do a shard. The bytes depend neither on who did it nor on how often the work was begun anew.
"""

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dicot.core.errors import InputError, LostWorkerError
from dicot.core.processes.budget import peak_bytes
from dicot.core.processes.cluster import Cluster, Lost, Share
from dicot.core.progress import Bar
from dicot.core.storage.locks import only_writer
from dicot.data.cases import Array
from dicot.store.corpus import Corpus
from dicot.store.folder import (
    UNFINISHED,
    VECTORS,
    Shard,
    Store,
    UnfinishedStore,
    finish_unit,
    known_of,
    write_manifest,
    write_shard,
)
from dicot.store.made_of import MadeOf
from dicot.store.sources import SCHEME


class Embedder(Protocol):
    """What turns windows into vectors (N, F): a TimeSeriesEmbedder, an OnnxEmbedder."""

    def transform(self, X: Any, /) -> Array: ...


@dataclass(frozen=True)
class OnCluster:
    """Where a corpus is embedded, other than in this process.

    Parameters
    ----------
    make : loads the model in each process
    share : what each process has of its node
    actors : processes at once; None: as many as find room
    """

    cluster: Cluster
    make: Callable[[], Embedder]
    share: Share
    actors: int | None = None


def embed_corpus(
    model: Embedder | OnCluster,
    corpus: Corpus,
    out: str | Path,
    *,
    model_hash: str,
    overwrite: bool = False,
    on_shard: Callable[[int], None] = lambda peak: None,
) -> Store:
    """Embed all windows of a corpus, shard by shard; killed, the same call continues.

    Parameters
    ----------
    model : what has a `transform`, or a cluster whose processes have one
    out : a folder for the vectors, a store
    model_hash : tells models apart, so that no run is continued by another one
    overwrite : replace vectors of another corpus or model
    on_shard : is told the most memory, in bytes, that the process which did a shard has had
    """
    folder = Path(out).absolute()
    with only_writer(folder, folder=True):
        plan = {"corpus": corpus.fingerprint(), "model": model_hash}
        work = UnfinishedStore(folder, plan, overwrite=overwrite)
        if work.finished is not None:
            return work.finished
        units = [shard.name for shard in corpus.shards]
        left = [number for number, unit in enumerate(units) if work.note(unit) is None]
        done = len(units) - len(left)
        with Bar("embed", len(units)) as bar:
            bar.update(done, "shards")
            if isinstance(model, OnCluster):
                peaks = _on_cluster(model, corpus, folder, left)
            else:
                peaks = (_embedded(model, corpus, number, folder) for number in left)
            for peak in peaks:
                done += 1
                bar.update(done, "shards")
                on_shard(peak)
        notes = [work.note(unit) or {} for unit in units]
        shards = [Shard(**one) for note in notes for one in note["shards"]]
        made = made_of_corpus(corpus, model_hash)
        about = {"plan": plan, "model": model_hash, "source": None if made is None else made.to_dict()}
        return write_manifest(folder, VECTORS, [notes[0]["features"]], shards, about)


def _embedded(model: Embedder, corpus: Corpus, number: int, folder: Path) -> int:
    """Embed one shard and write its vectors, whole or not at all; return the most memory this process has had."""
    windows, name = corpus.shard(number), corpus.shards[number].name
    vectors = model.transform(windows)
    finish_unit(folder, name, [write_shard(folder, name, vectors, known_of(windows))], {"features": vectors.shape[1]})
    return peak_bytes()


def _on_cluster(on: OnCluster, corpus: Corpus, folder: Path, left: Sequence[int]) -> Iterator[int]:
    here = _Shards(on.make, corpus.path.absolute(), folder, corpus.fingerprint())
    for number, answer in on.cluster.answers(here, left, on.share, most=on.actors):
        if isinstance(answer, Lost):
            raise LostWorkerError(f"Shard {corpus.shards[number].name}: {answer.error}")
        yield answer


@dataclass(frozen=True)
class _Shards:
    """Loads model and corpus in a process of the cluster, and gives what embeds a shard there."""

    make: Callable[[], Embedder]
    corpus: Path
    folder: Path
    fingerprint: str

    def __call__(self) -> Callable[[int], Iterator[int]]:
        unseen = [path for path in (self.corpus, self.folder / UNFINISHED) if not path.exists()]
        if unseen:
            raise InputError(
                f"A node of the cluster ({socket.gethostname()}) does not see {unseen[0]}. Put corpus, model and "
                "vectors on a file system that all nodes share."
            )
        corpus, model = Corpus.open(self.corpus), self.make()
        if corpus.fingerprint() != self.fingerprint:
            raise InputError(f"{self.corpus} is another corpus on {socket.gethostname()}. Give all nodes the same one.")

        def embed(number: int) -> Iterator[int]:
            yield _embedded(model, corpus, number, self.folder)

        return embed


def made_of_corpus(corpus: Corpus, model: str) -> MadeOf | None:
    """Say which recordings the vectors of a corpus were made of and how; nothing where these lay behind URLs."""
    sources = [source for source in corpus.sources if source.windows]
    if any(SCHEME in source.file for source in sources):
        return None
    return MadeOf(
        "recordings",
        tuple(source.file for source in sources),
        corpus.reading.to_dict(),
        model,
        corpus.channels,
        corpus.rate,
        corpus.n_times,
        corpus.stride,
        {source.name: {"file": source.file, "bytes": source.bytes} for source in sources},
    )
