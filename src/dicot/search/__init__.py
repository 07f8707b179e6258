"""Search among embeddings: which windows are most like this one."""

from dicot.search.index import EmbeddingIndex

__all__ = ["EmbeddingIndex"]
