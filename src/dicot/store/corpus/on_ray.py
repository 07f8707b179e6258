"""A corpus embedded by many processes on a Ray cluster, each of which holds the model and takes shard after shard.

This process keeps the lock of the folder and writes its manifest; the others write shards, whole or not at all.
"""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dicot.core.errors import InputError, LostWorkerError
from dicot.core.processes.budget import peak_bytes
from dicot.core.processes.cluster import Cluster, Lost, Share
from dicot.core.progress import Bar
from dicot.core.storage.locks import only_writer
from dicot.store.corpus.embedding import PLAN, EmbeddedCorpus, Embedder, begin, embed_shard, finish
from dicot.store.corpus.store import Corpus


def embed_on(
    cluster: Cluster,
    make: Callable[[], Embedder],
    corpus: Corpus,
    out: str | Path,
    *,
    share: Share,
    actors: int | None = None,
    model_hash: str,
    dtype: str = "float32",
    overwrite: bool = False,
    on_shard: Callable[[int], None] = lambda peak: None,
) -> EmbeddedCorpus:
    """Do what `embed_corpus` does, on a cluster; the bytes are the same, and either continues what the other began.

    Parameters
    ----------
    make : loads the model in each process
    share : what each process has of its node
    actors : processes at once; None: as many as find room
    on_shard : is told the most memory, in bytes, that the process which did a shard has had
    """
    folder = Path(out).absolute()
    with only_writer(folder, folder=True):
        left = begin(corpus, folder, model_hash=model_hash, dtype=dtype, overwrite=overwrite)
        total = len(corpus.shards)
        done = total - len(left)
        here = _Shards(make, corpus.path.absolute(), folder, corpus.fingerprint())
        with Bar("embed", total) as bar:
            bar.update(done, "shards")
            for number, answer in cluster.answers(here, left, share, most=actors):
                if isinstance(answer, Lost):
                    raise LostWorkerError(f"Shard {corpus.shards[number].name}: {answer.error}")
                done += 1
                bar.update(done, "shards")
                on_shard(answer)
        return finish(corpus, folder)


@dataclass(frozen=True)
class _Shards:
    """Loads model and corpus in a process of the cluster, and gives what embeds a shard there."""

    make: Callable[[], Embedder]
    corpus: Path
    folder: Path
    fingerprint: str

    def __call__(self) -> Callable[[int], Iterator[int]]:
        unseen = [path for path in (self.corpus, self.folder / PLAN) if not path.exists()]
        if unseen:
            raise InputError(
                f"A node of the cluster ({socket.gethostname()}) does not see {unseen[0]}. Put corpus, model and "
                "vectors on a file system that all nodes share."
            )
        corpus, model = Corpus.open(self.corpus), self.make()
        if corpus.fingerprint() != self.fingerprint:
            raise InputError(f"{self.corpus} is another corpus on {socket.gethostname()}. Give all nodes the same one.")

        def embed(number: int) -> Iterator[int]:
            embed_shard(model, corpus, number, self.folder)
            yield peak_bytes()

        return embed
