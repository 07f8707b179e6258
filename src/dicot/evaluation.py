"""Contenders on one data set, scored by protocols: fit, transform, score, and never ask who it is."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dicot.classical import CLASSICAL, RAW_FEATURES
from dicot.controls import CONTROLS
from dicot.datasets import Split
from dicot.errors import InputError, lookup
from dicot.estimator import TimeSeriesEmbedder
from dicot.methods import METHODS
from dicot.progress import Bar
from dicot.protocols import Features, Score
from dicot.protocols.base import Protocol as ScoringProtocol
from dicot.windows.collection import known_layout
from dicot.windows.policies import Array

# What stands beside every method: two encoders that learned nothing, two features that need no encoder.
BESIDE = (*CONTROLS, *RAW_FEATURES)


class Transformer(Protocol):
    """What every contender answers."""

    def fit(self, X: Any, y: Any = None) -> Any: ...

    def transform(self, X: Any) -> Array: ...


@dataclass(frozen=True)
class Contender:
    """A name for the table and a way to make a fresh transformer for a seed."""

    name: str
    make: Callable[[int], Transformer]


@dataclass(frozen=True)
class Frozen:
    """A fitted transformer that stays as it is when it is fitted again, to score a saved model."""

    model: Transformer

    def fit(self, X: Any, y: Any = None) -> "Frozen":
        return self

    def transform(self, X: Any) -> Array:
        return self.model.transform(X)


@dataclass(frozen=True)
class Run:
    """One contender with one seed: its embeddings, or why there are none."""

    contender: str
    seed: int
    transformer: Transformer | None = None
    train: Array | None = None  # (N, F)
    test: Array | None = None
    seconds: float = 0.0  # of fit
    error: str | None = None

    def features(self, split: Split) -> tuple[Features, Features]:
        """Training and test embeddings with their labels."""
        assert self.train is not None and self.test is not None and split.test is not None
        assert split.train.y is not None and split.test.y is not None
        return Features(self.train, split.train.y), Features(self.test, split.test.y)


@dataclass
class Evaluation:
    """All runs and all scores; failures are among both."""

    runs: list[Run] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)

    def run(self, contender: str) -> Run:
        """The first run of a contender."""
        return next(run for run in self.runs if run.contender == contender)


def contender(name: str, **settings: Any) -> Contender:
    """A method or control with these settings of TimeSeriesEmbedder, or a classical baseline, which has none."""
    if name in CLASSICAL:
        return Contender(name, lambda seed: CLASSICAL[name](random_state=seed))
    lookup({**METHODS, **CONTROLS, **CLASSICAL}, name, "contender")
    return Contender(name, lambda seed: TimeSeriesEmbedder(name, random_state=seed, **settings))


def evaluate(
    split: Split,
    contenders: Sequence[Contender],
    protocols: Sequence[ScoringProtocol],
    seeds: Sequence[int],
    *,
    on_run: Callable[[Run], None] | None = None,
) -> Evaluation:
    """Fit each contender on the training cases with each seed and score it by every protocol.

    `on_run` is told of each fitted run before it is scored.
    """
    if split.test is None:
        raise InputError(
            f"{split.name or 'The data'} has no test part. Give one, or hold cases out of the training part."
        )
    for part in (split.train, split.test):
        if part.y is None:
            raise InputError("Scoring needs labels, and these cases have none. Name a label column or pass y.")
    out = Evaluation()
    for seed in seeds:
        for one in contenders:
            run = _run(one, split, seed)
            if on_run:
                on_run(run)
            out.runs.append(run)
            with Bar(f"score {one.name}", len(protocols)) as bar:
                for done, protocol in enumerate(protocols):
                    bar.update(done, protocol.name)
                    out.scores += _score(run, protocol, split)
    return out


@known_layout()
def _run(one: Contender, split: Split, seed: int) -> Run:
    assert split.test is not None
    try:
        transformer, started = one.make(seed), time.perf_counter()
        transformer.fit(split.train.x, split.train.y)
        seconds = time.perf_counter() - started
        train, test = transformer.transform(split.train.x), transformer.transform(split.test.x)
    except Exception as error:  # a failure is a row of the table, never a missing one
        return Run(one.name, seed, error=f"{type(error).__name__}: {error}")
    return Run(one.name, seed, transformer, train, test, seconds)


def _score(run: Run, protocol: ScoringProtocol, split: Split) -> list[Score]:
    values: dict[str, float] = dict.fromkeys(protocol.metrics, np.nan)
    error = run.error
    if error is None:
        try:
            values = protocol.score(*run.features(split), seed=run.seed)
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
    return [Score(run.contender, protocol.name, metric, run.seed, value, error) for metric, value in values.items()]
