"""Protocols that score a fitted network where its embeddings do not tell: fine-tuning, and what the training took."""

import time
from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from dicot.data import Split
from dicot.data.collection import labelled_cases
from dicot.judge.protocols.base import (
    CLASSIFICATION_METRICS,
    COST_METRICS,
    PAPER_SUBSET_SEED,
    AnyProtocol,
    SubsetSeed,
    classification_scores,
)
from dicot.judge.protocols.embeddings import Probe
from dicot.train.recipe import paper_recipe

EPOCHS = 50
# The authors train 50 epochs on four of the large sets and 5 on the two where that would take longest (D-97).
MAX_STEPS = 10_000


@dataclass(frozen=True)
class Fitted:
    """A contender after its fit, and what that took; a protocol that trains makes another one of it."""

    model: Any  # has `transform`; a TimeSeriesEmbedder where the contender has a network
    seconds: float  # NaN where it was interrupted
    peak_memory: int = 0  # bytes; 0 where it was not measured


class ModelProtocol(AnyProtocol):
    """One way to score a fitted network."""

    def train(self, fitted: Fitted, data: Split, *, seed: int, steps: int | None = None) -> Fitted:
        """Train further what is then scored, for at most `steps`; what that takes is added to what the fit took."""
        return fitted

    @abstractmethod
    def score(self, fitted: Fitted, data: Split, *, seed: int) -> dict[str, float]:
        """Compute numbers for `metrics` of what `train` gave."""


class FineTuning(ModelProtocol):
    """Train all weights further with a part of the labels: mean over time and one linear layer for everybody (D-57).

    The labelled cases are those of the few-label probes: one draw, by `subset_seed` (D-40). Batches have the size of
    the pretraining of the data set's family. With tuning="gradual" the classifier's own way of tuning, budget and
    pooling are taken instead.
    """

    metrics = CLASSIFICATION_METRICS
    trains = True

    def __init__(self, fraction: float, subset_seed: SubsetSeed = PAPER_SUBSET_SEED, *, tuning: str = "all") -> None:
        self.fraction, self.subset_seed, self.tuning = fraction, subset_seed, tuning

    @property
    def name(self) -> str:
        return f"finetune-{100 * self.fraction:g}" + ("" if self.tuning == "all" else f"-{self.tuning}")

    @property
    def description(self) -> str:
        how = {"all": "trained further", "gradual": "tuned gradually from the frozen probe"}[self.tuning]
        return f"encoder and linear layer {how} with {100 * self.fraction:g} % of the training labels"

    def on_subset(self, seed: SubsetSeed) -> Self:
        if self.fraction == 1:
            return self
        other = copy(self)
        other.subset_seed = seed
        return other

    def train(self, fitted: Fitted, data: Split, *, seed: int, steps: int | None = None) -> Fitted:
        from dicot.core.device import peak_memory
        from dicot.model.classifier import TimeSeriesClassifier

        train = labelled_cases(data.train)
        assert train.y is not None
        probe = Probe("linear", fraction=self.fraction, subset_seed=self.subset_seed, draws=1)
        labelled = train.subset(*probe.run_draws(train.y, seed))
        recipe = usual = None
        if self.tuning == "all":
            batch_size = paper_recipe(data.family, len(labelled), labelled.n_times).batch_size
            recipe = {"batch_size": batch_size}
            usual = min(MAX_STEPS, EPOCHS * max(1, len(labelled) // batch_size))
        limits = [limit for limit in (steps, usual) if limit is not None]
        classifier = TimeSeriesClassifier(
            fitted.model,
            tuning=self.tuning,
            steps=min(limits, default=None),
            recipe=recipe,
            random_state=seed,
            device=fitted.model.device,
            verbose=False,
        )
        with peak_memory(fitted.model.device) as peak:
            started = time.perf_counter()
            classifier.fit(labelled, labelled.y)
            seconds = time.perf_counter() - started
            return Fitted(classifier, fitted.seconds + seconds, max(fitted.peak_memory, peak()))

    def score(self, fitted: Fitted, data: Split, *, seed: int) -> dict[str, float]:
        assert data.test is not None
        test = labelled_cases(data.test)
        assert test.y is not None
        return classification_scores(test.y, fitted.model.predict(test))


class TrainingTime(ModelProtocol):
    """Report milliseconds per step of the whole training, memory, and the shortest of three passes that embed.

    Memory is what the tensors on a GPU took at most, on a CPU by how much the process grew, where that can be told.
    What is encoded is counted on the encoder's inputs: methods that share an encoder do not give it the same work
    (D-54). A control takes no steps and has no time per step.
    """

    metrics = COST_METRICS
    alone = True
    name = "cost"  # in the keys of every ledger
    description = "time per step, to fit and to embed, peak memory of the fit and how much of each case it encodes"

    def score(self, fitted: Fitted, data: Split, *, seed: int) -> dict[str, float]:
        from dicot.train.encoded import encoded

        model, history = fitted.model, fitted.model.history_
        parts = [labelled_cases(part) for part in (data.train, data.test) if part is not None]
        times = []
        for _ in range(3):
            started = time.perf_counter()
            for part in parts:
                model.transform(part)
            times.append(time.perf_counter() - started)
        values = {"fit_seconds": fitted.seconds, "embed_seconds": min(times)}
        if len(history):
            values["step_ms"] = 1e3 * history.seconds / len(history)
            values["encoded"] = encoded(
                model.method_, model.method_params_, data.train, seed=model.seed_, steps=len(history)
            ).per_time_step
        if fitted.peak_memory:
            values["peak_mib"] = fitted.peak_memory / 2**20
        return values
