"""A unit of work: a contender is fitted once, each target embedded once, each job scored and recorded at once.

Nothing here asks who the contender is. What fails becomes the result of the jobs that needed it.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.device import describe_device, load_optimisers, peak_memory
from dicot.core.storage import remove_leftovers
from dicot.data import Split, Windows
from dicot.data.collection import labelled_cases
from dicot.data.datasets import paper_subset_seed
from dicot.judge.evaluation.contenders import Frozen
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.evaluation.loading import Loaded, Shelf
from dicot.judge.protocols import Features, ModelProtocol, Protocol
from dicot.judge.protocols.base import PER_SEED, SubsetSeed
from dicot.judge.protocols.network import Fitted
from dicot.judge.protocols.subsets import PAPER_SUBSET_SEED
from dicot.judge.result import Result
from dicot.model.estimator import TimeSeriesEmbedder, fit_many
from dicot.train.record import Checkpoint

CHECKPOINT_SECONDS = 30.0
KEY = 32  # letters of a fit's key that its checkpoint is called by
LONGEST_ERROR = 1000  # characters that are kept of a message

Facts = Mapping[str, Any]  # what is known of a result before its values
Record = Callable[[Job, Sequence[Result]], None]  # the results of a job, one for each draw of labelled cases
OnFit = Callable[[Unit, Fitted | Exception], None]
OnDraws = Callable[[Job, Sequence[Mapping[str, float]]], None]  # the scores of a job as its protocol gave them


@dataclass(frozen=True)
class Site:
    """Where units are run: a device, and a folder for fits that may be interrupted."""

    device: str
    work: Path | None = None
    at_once: int = 1  # fits that share the device
    alone: bool = False  # one unit after the other, and nothing else of the command beside it
    verbose: bool = False
    checkpoint_seconds: float = CHECKPOINT_SECONDS


@dataclass(frozen=True, eq=False)
class Embedded:
    """Both parts of a target as embeddings, and the jobs that they are to be scored for."""

    jobs: tuple[Job, ...]
    train: Features
    test: Features
    facts: Facts = field(default_factory=dict)


Score = Callable[[Embedded], None]


@dataclass(frozen=True, eq=False)
class _Attempt:
    """A unit with what its fit needs, and what is known of all its results."""

    unit: Unit
    source: Loaded
    model: Any
    facts: Facts
    checkpoint: Checkpoint | None  # None for what is not trained, and for a fit that is measured

    def cases(self) -> tuple[Any, Any]:
        """Return all cases and no label, or for a contender that needs labels the labelled ones with theirs."""
        if not self.unit.first.contender.needs_labels:
            return cases_for(self.model, replace(self.source.split.train, y=None)), None
        labelled = labelled_cases(self.source.split.train)
        return cases_for(self.model, labelled), labelled.y

    def fitted(self, seconds: float, memory: int = 0) -> Fitted:
        resumed = self.checkpoint is not None and self.checkpoint.resumed
        return Fitted(self.model, math.nan if resumed else seconds, memory)


def run_units(
    units: Sequence[Unit],
    site: Site,
    shelf: Shelf,
    record: Record,
    *,
    score: Score | None = None,
    on_fit: OnFit = lambda unit, fitted: None,
) -> None:
    """Fit these units, at once where there are several, and score their jobs.

    `score` may leave the scoring of embeddings to others; `on_fit` is told of each fit before it is scored, and of
    each that failed.
    """
    score = score or partial(score_embedded, record=record)

    def assess(fit: _Attempt, fitted: Fitted | Exception) -> None:
        on_fit(fit.unit, fitted)
        if isinstance(fitted, Exception):
            fail(fit.unit.jobs, fitted, record, fit.facts)
            return
        facts = {**fit.facts, **_fit_facts(fitted)}
        for target, jobs in fit.unit.by_target().items():
            try:
                data = fit.source if target == fit.unit.first.source else shelf.get(target)
            except Exception as error:
                fail(jobs, error, record, facts)
            else:
                _assess(fitted, jobs, data, {**facts, "target_data": data.fingerprint}, record, score)
        if fit.checkpoint is not None:
            remove_leftovers(fit.checkpoint.path)
            fit.checkpoint.path.unlink(missing_ok=True)  # only now: until here it would have to be trained again

    if any(unit.first.contender.trained for unit in units):
        load_optimisers()
    fits: list[_Attempt] = []
    for unit in units:
        facts: dict[str, Any] = {}
        try:
            source = shelf.get(unit.first.source)
            facts = {"source_data": source.fingerprint, "device": describe_device(site.device, site.alone)}
            fits.append(_Attempt(unit, source, _made(unit, source, site), facts, _checkpoint(unit, source, site)))
        except Exception as error:
            on_fit(unit, error)
            fail(unit.jobs, error, record, facts)
    if len(fits) > 1:
        _fit_together(fits, site, assess)
    else:
        for fit in fits:
            assess(fit, _fit_alone(fit, site))


def fail(jobs: Iterable[Job], error: Exception, record: Record, facts: Facts | None = None) -> None:
    """Record a failure, which is a result too: NaN, and the reason."""
    reason = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
    for job in jobs:
        values = dict.fromkeys(job.scorer().metric_names, math.nan)
        record(job, [job.result(values, reason, **(facts or {}))])


def score_embedded(given: Embedded, record: Record, on_draws: OnDraws = lambda job, draws: None) -> None:
    """Score every job by its protocol: on all draws of labelled cases, or on one (D-40).

    `on_draws` is told of what a protocol gave before it is recorded: which cases were right is in no result.
    """
    for job in given.jobs:
        protocol = job.scorer()
        assert isinstance(protocol, Protocol)
        chosen = protocol if job.draws else protocol.on_subset(_subset_seed(job))
        compute = partial(chosen.score_draws, given.train, given.test, seed=job.seed)
        _score(job, compute, given.facts, record, on_draws)


def _subset_seed(job: Job) -> SubsetSeed:
    """What draws a job's labelled cases: the run's seed, or the authors', which a data set may have of its own."""
    if job.subsets == PER_SEED:
        return "run"
    own = paper_subset_seed(job.target.name)
    return PAPER_SUBSET_SEED if own is None else own


def _fit_facts(fitted: Fitted) -> dict[str, Any]:
    recipe = getattr(fitted.model, "recipe_", None)
    used = {}
    if recipe is not None and recipe.steps > 0:
        used = {**asdict(recipe), "method_params": getattr(fitted.model, "method_params_", {})}
    return {"recipe": used, "fit_seconds": fitted.seconds, "peak_memory": fitted.peak_memory}


def _assess(fitted: Fitted, jobs: Sequence[Job], data: Loaded, facts: Facts, record: Record, score: Score) -> None:
    """Score the jobs of one target: the network itself, and embeddings, which are made once."""
    embedded = []
    for job in jobs:
        protocol = job.scorer()
        if isinstance(protocol, ModelProtocol):
            _score_network(job, protocol, fitted, data, facts, record)
        else:
            embedded.append(job)
    if not embedded:
        return
    try:
        started = time.perf_counter()
        train, test = embed_labelled(fitted.model, data.split)
    except Exception as error:
        fail(embedded, error, record, facts)
        return
    score(Embedded(tuple(embedded), train, test, {**facts, "embed_seconds": time.perf_counter() - started}))


def _score_network(
    job: Job, protocol: ModelProtocol, fitted: Fitted, data: Loaded, facts: Facts, record: Record
) -> None:
    """Score a network, after training it further where the protocol does: that counts as fitting, not as scoring."""
    chosen = protocol.on_subset(_subset_seed(job))
    try:
        trained = chosen.train(fitted, data.split, seed=job.seed, steps=job.steps)
    except Exception as error:
        fail([job], error, record, facts)
        return
    took = {} if trained is fitted else _fit_facts(trained)
    if took and facts["recipe"]:  # of the pretraining, which is what the row is called by
        took["recipe"] = {**facts["recipe"], "tuning": took["recipe"]}
    _score(job, lambda: [chosen.score(trained, data.split, seed=job.seed)], {**facts, **took}, record)


def embed_labelled(model: Any, split: Split) -> tuple[Features, Features]:
    """Embed the labelled cases of both parts."""
    assert split.test is not None
    train, test = labelled_cases(split.train), labelled_cases(split.test)
    embeddings = [model.transform(cases_for(model, part)) for part in (train, test)]
    return Features(embeddings[0], train.y), Features(embeddings[1], test.y)


def cases_for(model: Any, windows: Windows) -> Any:
    """Return Windows for an embedder, which takes them as they are, and the array for any other transformer."""
    inner = model.model if isinstance(model, Frozen) else model
    return windows if isinstance(inner, TimeSeriesEmbedder) else windows.x


def _score(
    job: Job,
    compute: Callable[[], Sequence[Mapping[str, float]]],
    facts: Facts,
    record: Record,
    on_draws: OnDraws = lambda job, draws: None,
) -> None:
    started = time.perf_counter()
    try:
        draws = compute()
        for values in draws:
            if not values or values.keys() - set(job.scorer().metric_names):
                raise ArithmeticError(f"{job.protocol} gave {values} for its metrics")
            if not np.isfinite(list(values.values())).all():
                raise ArithmeticError(f"a value is not finite: {values}")
    except Exception as error:
        fail([job], error, record, facts)
        return
    seconds = time.perf_counter() - started
    on_draws(job, draws)
    record(job, [job.result(v, None, n, **facts, score_seconds=seconds) for n, v in enumerate(draws, start=1)])


def _made(unit: Unit, source: Loaded, site: Site, **settings: Any) -> Any:
    first = unit.first
    contender = replace(first.contender, settings={**first.contender.settings, **settings})
    return contender.make(first.seed, family=source.split.family, device=site.device, verbose=site.verbose)


def _checkpoint(unit: Unit, source: Loaded, site: Site) -> Checkpoint | None:
    if site.work is None or not unit.first.contender.trained or unit.alone:
        return None
    path = site.work / f"{unit.key[:KEY]}-{source.fingerprint}.safetensors"
    return Checkpoint(path, site.checkpoint_seconds, overwrite=True)  # one of another version is no failure


_warm: set[tuple[str, str]] = set()  # contenders and devices that this process has fitted


def _fit_alone(fit: _Attempt, site: Site) -> Fitted | Exception:
    contender = fit.unit.first.contender
    try:
        x, y = fit.cases()
        if fit.unit.alone and contender.trained and (contender.name, site.device) not in _warm:
            # Two steps before it is measured for the first time: what is loaded then belongs to no fit.
            _made(fit.unit, fit.source, replace(site, verbose=False), steps=2).fit(x, y).transform(x)
            _warm.add((contender.name, site.device))
        with peak_memory(site.device) as peak:
            started = time.perf_counter()
            fit.model.fit(x, y, **({"checkpoint": fit.checkpoint} if fit.checkpoint else {}))
            return fit.fitted(time.perf_counter() - started, peak())
    except Exception as error:
        return error


def _fit_together(fits: Sequence[_Attempt], site: Site, on_fit: Callable[[_Attempt, Fitted | Exception], None]) -> None:
    """Fit several at once on a GPU. The seconds of each are its own share; whose the memory is cannot be told."""
    unfinished = set(range(len(fits)))

    def done(number: int, error: Exception | None = None) -> None:
        unfinished.discard(number)
        fit = fits[number]
        on_fit(fit, error or fit.fitted(fit.model.history_.seconds))

    try:
        fit_many(
            [fit.model for fit in fits],
            [fit.cases() for fit in fits],
            checkpoints=[fit.checkpoint for fit in fits],
            at_once=site.at_once,
            on_fit=done,
            on_error=done,
        )
    except Exception as error:  # of the device, not of one of the fits
        for number in sorted(unfinished):
            done(number, error)
