"""Corpora: windows of recordings in a folder, more of them than memory holds."""

from dicot.store.corpus.store import Corpus

__all__ = ["Corpus"]
