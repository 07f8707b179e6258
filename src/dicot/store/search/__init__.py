"""Search among embeddings: which windows are most like this one."""

from dicot.store.search.index import EmbeddingIndex

__all__ = ["EmbeddingIndex"]
