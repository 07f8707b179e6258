"""Windows that are like others: of the same vectors, of other ones, or of a recording that is not among them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import InputError
from dicot.data.cases import Array
from dicot.model.deployed import open_model
from dicot.store.folder import Store
from dicot.store.modelplace import check_same_model, places_of_model
from dicot.store.search import EmbeddingIndex
from dicot.store.series import CaseSeries, Series, series_of, windows_like
from dicot.store.vectors import Vectors, are_vectors, made_of, read_vectors
from dicot.use.events import first_hits
from dicot.use.why import model_behind

WIDER = 4  # times as many windows are looked at where those that overlap left too few hits


@dataclass(frozen=True, eq=False)
class SearchedVectors:
    """Vectors with their index."""

    path: Path
    vectors: Vectors  # of a folder without the numbers, which stay on disk
    index: EmbeddingIndex

    @classmethod
    def open(cls, path: Path, metric: str = "cosine") -> "SearchedVectors":
        """Open a file of vectors, or a folder."""
        if not path.is_dir():
            vectors = read_vectors(path)
            return cls(path, vectors, EmbeddingIndex(vectors.x, metric=metric, **vectors.columns()))
        store = Store(path)
        index = EmbeddingIndex.load(path, metric=metric)
        nothing = np.broadcast_to(np.float32(0), (len(index), index.n_features))
        return cls(path, Vectors(nothing, **store.columns(), source=made_of(store)), index)

    def nearest(self, queries: Array, k: int, leave_out: Any = None) -> dict[int, float]:
        """Return the rows of the k windows nearest to any of the queries (Q, F) with their distances, nearest first.

        Of windows that overlap or touch the nearest counts, so that more than k are looked at.
        """
        places = self.vectors.places() if self.vectors.placed else None
        n_looked_at = k
        while True:
            distances, rows = self.index.query(queries, n_looked_at, leave_out=leave_out)
            pairs = zip(distances.ravel().tolist(), rows.ravel().tolist(), strict=True)
            nearest: dict[int, float] = {}
            for distance, row in sorted(pairs):
                if row >= 0 and len(nearest) < n_looked_at:
                    nearest.setdefault(row, distance)
            hits = first_hits(list(nearest), places, k)
            if len(hits) == k or len(nearest) < n_looked_at:
                return {row: nearest[row] for row in hits}
            n_looked_at *= WIDER


@dataclass(frozen=True, eq=False)
class AskedWindows:
    """Windows of elsewhere that are compared with vectors."""

    path: Path
    vectors: Vectors
    series: Series | None = None  # of a recording that was embedded for this; vectors know their own

    def all_series(self) -> Series:
        """Return the series of these windows."""
        return self.series or series_of(self.vectors, None, {}, path=self.path)

    @property
    def index(self) -> EmbeddingIndex:
        return EmbeddingIndex(self.vectors.x, **self.vectors.columns())


def windows_from(other: Path, searched: SearchedVectors, model: str | None = None) -> AskedWindows:
    """Return the windows of other vectors; or of a recording, cut and embedded like those that are searched.

    model : where the model of the searched vectors is now, if it was moved
    """
    known = searched.vectors
    if are_vectors(other):
        vectors = read_vectors(other)
        check_same_model(other, vectors.model, vectors.x.shape[1], searched.path, known)
        return AskedWindows(other, vectors)

    if known.source is None or known.source.kind != "recordings":
        raise InputError(
            f"{searched.path} does not say how recordings were cut for it. Embed {other}, and name its vectors."
        )
    cut = windows_like(known.source, other)
    usual = places_of_model(searched.path, known.source)
    embedder = open_model(model_behind(known.model, model, usual=usual))
    vectors = Vectors(embedder.transform(cut), cut.recording, cut.start, cut.end)
    return AskedWindows(other, vectors, CaseSeries(list(cut.x), cut.channels))
