"""Supervised_B: what the same encoder and budget reach when the labels are known."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dicot.core.errors import InputError, lookup
from dicot.methods.base import Batch, Method, TrainingSet
from dicot.nets.encoders import Encoder

# (B, F, T) -> (B, F)
POOLS: dict[str, Callable[[Tensor], Tensor]] = {"mean": lambda h: h.mean(dim=-1), "max": lambda h: h.amax(dim=-1)}


class Supervised(Method):
    """Encoder, pooling over time, one linear layer, cross-entropy. Shuffled and scheduled as all methods are (D-56).

    pool: "mean" as every embedding here, or "max" as the authors' classifier. The evaluated encoder is pooled by the
    embedder's own setting, and the linear layer is thrown away.
    """

    summary = "learn the labels by cross-entropy, keep the encoder: a reference, not self-supervised"
    paper = "Supervised_B of Divide and Contrast, ICML 2026"
    complexity = "encodes T time steps per case in one pass; loss O(B F K) for K classes"
    needs_labels = True

    head: nn.Linear  # F -> K, made in prepare, which knows the classes

    def __init__(self, encoder: Encoder, *, pool: str = "mean") -> None:
        super().__init__(encoder)
        lookup(POOLS, pool, "pool")
        self.pool = pool

    def prepare(self, train: TrainingSet) -> None:
        self.head = nn.Linear(self.encoder.dim, count_classes(train))

    def logits(self, x: Tensor) -> Tensor:
        """(B, C, T) -> (B, K) scores of the classes in ascending order, in float32 or wider."""
        z = POOLS[self.pool](self.encoder(x))
        scores: Tensor = self.head(z.to(self.head.weight.dtype))
        return scores

    def loss(self, batch: Batch, plan: object) -> Tensor:
        assert batch.y is not None  # the loop sees to it
        return cross_entropy(self.logits(batch.x), batch.y)


def count_classes(train: TrainingSet) -> int:
    """Return the number of classes, two at least."""
    labels = train.labels()
    if labels is None:
        raise InputError("This method learns from labels, and the training set has none. Pass y.")
    return refuse_one_class(labels)


def refuse_one_class(labels: NDArray[Any]) -> int:
    """Return the number of classes, two at least."""
    classes = np.unique(labels)
    if len(classes) < 2:
        raise InputError(
            f"A classifier needs at least 2 classes; the {len(labels)} label(s) hold 1 class, {classes[0]}."
        )
    return len(classes)
