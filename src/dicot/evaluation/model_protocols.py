"""Protocols that score a fitted network where its embeddings do not tell: fine-tuning, and what the training took."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dicot.data import Split
from dicot.errors import InputError
from dicot.evaluation.loading import scored
from dicot.protocols import PROTOCOLS, Protocol
from dicot.protocols.metrics import CLASSIFICATION_METRICS, COST_METRICS, REGISTRIES, Metric, classification_scores
from dicot.protocols.subsets import PAPER_SUBSET_SEED, stratified_fraction

EPOCHS = 50
# The authors train 50 epochs on four of the large sets and 5 on the two where that would take longest (D-97).
MAX_STEPS = 10_000


@dataclass(frozen=True)
class Fitted:
    """A contender after its fit, and what that took."""

    model: Any  # has `transform`; a TimeSeriesEmbedder where the contender has a network
    seconds: float  # NaN where it was interrupted
    peak_memory: int = 0  # bytes; 0 where it was not measured


class ModelProtocol(ABC):
    """One way to score a fitted network."""

    metrics: tuple[Metric, ...]
    trains: bool = False  # and would take fewer steps in a trial
    alone: bool = False  # what it measures is only true while nothing else runs

    @property
    @abstractmethod
    def name(self) -> str:
        """The registry key."""

    @property
    @abstractmethod
    def description(self) -> str:
        """One line for a listing."""

    @abstractmethod
    def score(self, fitted: Fitted, data: Split, *, seed: int, steps: int | None = None) -> dict[str, float]:
        """Compute numbers for `metrics`; `steps` limits a protocol that trains."""


class FineTuning(ModelProtocol):
    """Train all weights further with a part of the labels: mean over time and one linear layer for everybody (D-57).

    The labelled cases are those of the few-label probes: the same subset for all runs (D-40). Batches have the size of
    the pretraining of the data set's family.
    """

    metrics = CLASSIFICATION_METRICS
    trains = True

    def __init__(self, fraction: float) -> None:
        if not 0 < fraction <= 1:
            raise InputError(f"fraction must lie in (0, 1]; got {fraction}.")
        self.fraction = fraction

    @property
    def name(self) -> str:
        return f"finetune-{100 * self.fraction:g}"

    @property
    def description(self) -> str:
        return f"encoder and linear layer trained further with {100 * self.fraction:g} % of the training labels"

    def score(self, fitted: Fitted, data: Split, *, seed: int, steps: int | None = None) -> dict[str, float]:
        from dicot.classifier import TimeSeriesClassifier
        from dicot.train import paper_recipe

        assert data.test is not None
        train, test = scored(data.train), scored(data.test)
        assert train.y is not None and test.y is not None
        labelled = train.subset(stratified_fraction(train.y, self.fraction, PAPER_SUBSET_SEED))
        batch_size = paper_recipe(data.family, len(labelled), labelled.n_times).batch_size
        usual = min(MAX_STEPS, EPOCHS * max(1, len(labelled) // batch_size))
        classifier = TimeSeriesClassifier(
            fitted.model,
            steps=usual if steps is None else min(steps, usual),
            batch_size=batch_size,
            random_state=seed,
            device=fitted.model.device,
            verbose=False,
        )
        predicted = classifier.fit(labelled, labelled.y).predict(test)
        return classification_scores(test.y, predicted)


class TrainingTime(ModelProtocol):
    """Report milliseconds per step over the whole training, whatever was built on the way included, and memory.

    Memory is what the tensors on a GPU took at most, on a CPU by how much the process grew; it is left out where
    neither can be told. A control takes no steps and has no time per step.
    """

    metrics = COST_METRICS
    alone = True
    name = "cost"  # in the keys of every ledger
    description = "time per step and peak memory of the fit"

    def score(self, fitted: Fitted, data: Split, *, seed: int, steps: int | None = None) -> dict[str, float]:
        history = fitted.model.history_
        values = {"fit_seconds": fitted.seconds}
        if len(history):
            values["step_ms"] = 1e3 * history.seconds / len(history)
        if fitted.peak_memory:
            values["peak_mib"] = fitted.peak_memory / 2**20
        return values


MODEL_PROTOCOLS: dict[str, Callable[[], ModelProtocol]] = {
    "finetune-1": lambda: FineTuning(0.01),
    "finetune-10": lambda: FineTuning(0.1),
    "finetune-100": lambda: FineTuning(1.0),
    "cost": TrainingTime,
}
REGISTRIES.append(MODEL_PROTOCOLS)

AnyProtocol = Protocol | ModelProtocol


def every_protocol() -> dict[str, Callable[[], AnyProtocol]]:
    """Both kinds by name; read anew each time, because others may register more."""
    return {**PROTOCOLS, **MODEL_PROTOCOLS}


def metric_names(protocol: AnyProtocol) -> tuple[str, ...]:
    """What the numbers of a protocol are called."""
    return tuple(metric.name for metric in protocol.metrics)


def trains(name: str) -> bool:
    """Whether a protocol trains, so that a trial gives it fewer steps."""
    return name in MODEL_PROTOCOLS and MODEL_PROTOCOLS[name]().trains


def runs_alone(name: str) -> bool:
    """Whether a protocol measures something that other work would disturb."""
    return name in MODEL_PROTOCOLS and MODEL_PROTOCOLS[name]().alone
