"""Contenders on one data set, scored by protocols: fit, transform, score, and never ask who it is."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from dicot.classical import CLASSICAL, RAW_FEATURES
from dicot.controls import CONTROLS
from dicot.data.collection import Windows, known_layout, labelled
from dicot.data.policies import Array
from dicot.data.splits import with_policies
from dicot.datasets import Split
from dicot.errors import InputError, lookup
from dicot.estimator import TimeSeriesEmbedder
from dicot.methods import METHODS
from dicot.progress import Bar
from dicot.protocols import Features, Score
from dicot.protocols.base import Protocol as ScoringProtocol

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
    needs_labels: bool = False  # is fitted on the labelled cases alone; all others see every case and no label
    fixed: bool = False  # the same for every seed
    scale: str | None = None  # of the cases it is given, where it does not scale them itself


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
        """Training and test embeddings of the labelled cases with their labels."""
        assert self.train is not None and self.test is not None and split.test is not None
        return _labelled_rows(self.train, split.train), _labelled_rows(self.test, split.test)


def _labelled_rows(embeddings: Array, windows: Windows) -> Features:
    assert windows.y is not None
    rows = labelled(windows.y)
    return Features(embeddings[rows], windows.y[rows])


@dataclass
class Evaluation:
    """All runs and all scores; failures are among both."""

    runs: list[Run] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)  # contenders that are the same for every seed

    def run(self, contender: str) -> Run:
        """The first run of a contender."""
        return next(run for run in self.runs if run.contender == contender)


def contender(name: str, **settings: Any) -> Contender:
    """A method or control with settings of TimeSeriesEmbedder, or a classical baseline, which has `scale` alone."""
    if name in CLASSICAL:
        kind = CLASSICAL[name]
        scale = settings.get("scale") if kind.scaled else None
        return Contender(name, lambda seed: kind(random_state=seed), fixed=not kind.random, scale=scale)
    lookup({**METHODS, **CONTROLS, **CLASSICAL}, name, "contender")
    needs_labels = name in METHODS and METHODS[name].needs_labels
    return Contender(name, lambda seed: TimeSeriesEmbedder(name, random_state=seed, **settings), needs_labels)


def saved(name: str, model: TimeSeriesEmbedder) -> Contender:
    """A fitted model as it is."""
    return Contender(name, lambda seed: Frozen(model), fixed=True)


def beside(model: TimeSeriesEmbedder) -> list[Contender]:
    """The controls and raw features of a fitted model: everything is the model's but its weights."""
    settings = {
        k: v for k, v in model.get_params(deep=False).items() if k not in ("method", "method_params", "random_state")
    }
    return [contender(name, **settings) for name in BESIDE]


def check_scorable(split: Split) -> None:
    """Both parts must be there and have labels."""
    if split.test is None:
        raise InputError(
            f"{split.name or 'The data'} has no test part. Give one, or hold cases out of the training part."
        )
    for what, part in (("training", split.train), ("test", split.test)):
        if part.y is None:
            raise InputError("Scoring needs labels, and these cases have none. Name a label column or pass y.")
        if not labelled(part.y).any():
            raise InputError(f"Scoring needs labels, and none of the {len(part)} {what} cases has one.")


def distinct(protocols: Sequence[ScoringProtocol], split: Split) -> tuple[list[ScoringProtocol], dict[str, list[str]]]:
    """Protocols that differ with these training labels, and the names of those that come to one of them."""
    check_scorable(split)
    assert split.train.y is not None
    y = split.train.y[labelled(split.train.y)]
    kept: dict[str, ScoringProtocol] = {}
    same: dict[str, list[str]] = {}
    for protocol in protocols:
        found = protocol.without_draws(y)
        kept.setdefault(found.name, found)
        if found.name != protocol.name:
            same.setdefault(found.name, []).append(protocol.name)
    return list(kept.values()), same


def evaluate(
    split: Split,
    contenders: Sequence[Contender],
    protocols: Sequence[ScoringProtocol],
    seeds: Sequence[int],
    *,
    on_run: Callable[[Run], None] | None = None,
) -> Evaluation:
    """Fit each contender on the training cases with each seed and score it by every protocol on the labelled ones.

    `on_run` is told of each fitted run before it is scored. What is the same for every seed is fitted once.
    """
    check_scorable(split)
    out = Evaluation(fixed=[one.name for one in contenders if one.fixed])
    for seed in seeds:
        for one in contenders:
            again = one.fixed and seed != seeds[0]
            run = replace(out.run(one.name), seed=seed) if again else _run(one, split, seed)
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
    try:
        split = split if one.scale is None else with_policies(split, scale=one.scale)
        assert split.test is not None and split.train.y is not None
        transformer, started = one.make(seed), time.perf_counter()
        if one.needs_labels:
            known = split.train.subset(labelled(split.train.y))
            transformer.fit(known.x, known.y)
        else:
            transformer.fit(split.train.x)
        seconds = time.perf_counter() - started
        train, test = transformer.transform(split.train.x), transformer.transform(split.test.x)
    except Exception as error:  # a failure is a row of the table, never a missing one
        return Run(one.name, seed, error=f"{type(error).__name__}: {error}")
    return Run(one.name, seed, transformer, train, test, seconds)


def _score(run: Run, protocol: ScoringProtocol, split: Split) -> list[Score]:
    draws: list[dict[str, float]] = [dict.fromkeys((metric.name for metric in protocol.metrics), np.nan)]
    error = run.error
    if error is None:
        try:
            draws = protocol.score_draws(*run.features(split), seed=run.seed)
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
    return [
        Score(run.contender, protocol.name, metric, run.seed, value, error, draw)
        for draw, values in enumerate(draws, start=1)
        for metric, value in values.items()
    ]
