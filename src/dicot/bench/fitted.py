"""A fitted contender, and the contract of a protocol that scores it rather than its embeddings."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from dicot.data import Split
from dicot.protocols.metrics import Metric


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
        """Numbers for `metrics`; `steps` limits a protocol that trains."""
