"""From cases to vectors: an encoder's features pooled, a bank of kernels beside them, all of it compressed."""

from dicot.model.embedding.composition import MIXED, Composition, check_parts, fit_composition
from dicot.model.embedding.passes import (
    EMBED_PRECISIONS,
    Composer,
    Target,
    cases_at_once,
    embed,
    embed_into,
    refuse_length,
)
from dicot.model.embedding.poolings import POOLINGS, Pooling, pooled, pooled_dim

__all__ = [
    "EMBED_PRECISIONS",
    "MIXED",
    "POOLINGS",
    "Composer",
    "Composition",
    "Pooling",
    "Target",
    "cases_at_once",
    "check_parts",
    "embed",
    "embed_into",
    "fit_composition",
    "pooled",
    "pooled_dim",
    "refuse_length",
]
