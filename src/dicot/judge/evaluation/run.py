"""A unit of work: a contender is fitted once, each target embedded once, each job scored and recorded at once.

Nothing here asks who the contender is. What fails becomes the result of the jobs that needed it.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dicot.core.storage import remove_leftovers
from dicot.data import Split, Windows
from dicot.data.collection import labelled_cases
from dicot.data.datasets import paper_subset_seed
from dicot.judge.evaluation.contenders import Frozen
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.evaluation.loading import Loaded, Shelf
from dicot.judge.evaluation.model_protocols import Fitted, ModelProtocol
from dicot.judge.evaluation.result import Result
from dicot.judge.protocols import PER_SEED, Features, Protocol, SubsetSeed
from dicot.judge.protocols.subsets import PAPER_SUBSET_SEED

if TYPE_CHECKING:
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

    def checkpoint(self, unit: Unit, source: Loaded) -> "Checkpoint | None":
        """None for what is not trained, and for a fit that is measured."""
        from dicot.train.record import Checkpoint

        if self.work is None or not unit.first.contender.trained or unit.alone:
            return None
        path = self.work / f"{unit.key[:KEY]}-{source.fingerprint}.safetensors"
        return Checkpoint(path, self.checkpoint_seconds, overwrite=True)  # one of another version is no failure


@dataclass(frozen=True, eq=False)
class Embedded:
    """Both parts of a target as embeddings, and the jobs that they are to be scored for."""

    jobs: tuple[Job, ...]
    train: Features
    test: Features
    facts: Facts = field(default_factory=dict)


Score = Callable[[Embedded], None]


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
    from dicot.core.device import describe_device

    score = score or partial(score_embedded, record=record)
    sources: dict[str, Loaded] = {}
    for unit in units:
        try:
            sources[unit.key] = shelf.get(unit.first.source)
        except Exception as error:
            fail(unit.jobs, error, record)

    def assess(unit: Unit, fitted: Fitted | Exception) -> None:
        on_fit(unit, fitted)
        source = sources[unit.key]
        facts = {"source_data": source.fingerprint, "device": describe_device(site.device, site.alone)}
        if isinstance(fitted, Exception):
            fail(unit.jobs, fitted, record, facts)
            return
        for target, jobs in unit.by_target().items():
            load = partial(shelf.get, target) if target != unit.first.source else lambda: source
            _assess(fitted, jobs, load, {**facts, **_fit_facts(fitted)}, record, score)
        if checkpoint := site.checkpoint(unit, source):
            remove_leftovers(checkpoint.path)
            checkpoint.path.unlink(missing_ok=True)  # only now: until here it would have to be trained again

    _fit([unit for unit in units if unit.key in sources], sources, site, assess)


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
        scores = protocol.score_draws if job.draws else partial(_one_draw, protocol.on_subset(_subset_seed(job)))
        _score(job, partial(scores, given.train, given.test, seed=job.seed), given.facts, record, on_draws)


def _one_draw(protocol: Protocol, train: Features, test: Features, *, seed: int) -> list[dict[str, float]]:
    return [protocol.score(train, test, seed=seed)]


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


def _assess(
    fitted: Fitted, jobs: Sequence[Job], load: Callable[[], Loaded], facts: Facts, record: Record, score: Score
) -> None:
    """Score the jobs of one target: the network itself, and embeddings, which are made once."""
    try:
        data = load()
    except Exception as error:
        fail(jobs, error, record, facts)
        return
    facts = {**facts, "target_data": data.fingerprint}
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
    from dicot.model.estimator import TimeSeriesEmbedder

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


def _fit(units: Sequence[Unit], sources: Mapping[str, Loaded], site: Site, on_fit: OnFit) -> None:
    """Fit the contender of each unit, on a GPU several at once; a fit that was interrupted goes on."""
    from dicot.core.device import load_optimisers

    if any(unit.first.contender.trained for unit in units):
        load_optimisers()
    models = []
    for unit in units:
        family, first = sources[unit.key].split.family, unit.first
        try:
            made = first.contender.make(first.seed, family=family, device=site.device, verbose=site.verbose)
        except Exception as error:
            on_fit(unit, error)
        else:
            models.append((unit, made))
    if len(models) > 1:
        _fit_together(models, sources, site, on_fit)
    else:
        for unit, model in models:
            _fit_alone(unit, model, sources[unit.key], site, on_fit)


def _training_cases(unit: Unit, model: Any, source: Loaded) -> tuple[Any, Any]:
    """Return all cases and no label, or for a contender that needs labels the labelled ones with theirs."""
    if not unit.first.contender.needs_labels:
        return cases_for(model, replace(source.split.train, y=None)), None
    labelled = labelled_cases(source.split.train)
    return cases_for(model, labelled), labelled.y


def _fit_alone(unit: Unit, model: Any, source: Loaded, site: Site, on_fit: OnFit) -> None:
    from dicot.core.device import peak_memory

    checkpoint = site.checkpoint(unit, source)
    resumed = checkpoint is not None and checkpoint.path.exists()
    fitted: Fitted | Exception
    try:
        x, y = _training_cases(unit, model, source)
        if unit.alone and unit.first.contender.trained:
            _warm_up(unit, site, source)
        with peak_memory(site.device) as peak:
            started = time.perf_counter()
            model.fit(x, y, **({"checkpoint": checkpoint} if checkpoint else {}))
            seconds = time.perf_counter() - started
            fitted = Fitted(model, math.nan if resumed else seconds, peak())
    except Exception as error:
        fitted = error
    on_fit(unit, fitted)


_warm: set[tuple[str, str]] = set()  # contenders and devices that this process has fitted


def _warm_up(unit: Unit, site: Site, source: Loaded) -> None:
    """Fit a contender for two steps before it is measured for the first time: what is loaded then belongs to no fit."""
    first = unit.first
    if (first.contender.name, site.device) not in _warm:
        settings = {**first.contender.settings, "steps": 2}
        model = replace(first.contender, settings=settings).make(
            first.seed, family=source.split.family, device=site.device, verbose=False
        )
        x, y = _training_cases(unit, model, source)
        model.fit(x, y).transform(x)
        _warm.add((first.contender.name, site.device))


def _fit_together(models: Sequence[tuple[Unit, Any]], sources: Mapping[str, Loaded], site: Site, on_fit: OnFit) -> None:
    """The seconds of each are its own share; whose the memory is cannot be told."""
    from dicot.model.estimator import fit_many

    unfinished = set(range(len(models)))

    def done(number: int, error: Exception | None = None) -> None:
        unfinished.discard(number)
        unit, model = models[number]
        on_fit(unit, error or Fitted(model, math.nan if resumed[number] else model.history_.seconds))

    checkpoints = [site.checkpoint(unit, sources[unit.key]) for unit, _ in models]
    resumed = [checkpoint is not None and checkpoint.path.exists() for checkpoint in checkpoints]
    try:
        fit_many(
            [model for _, model in models],
            [_training_cases(unit, model, sources[unit.key]) for unit, model in models],
            checkpoints=checkpoints,
            at_once=site.at_once,
            on_fit=done,
            on_error=done,
        )
    except Exception as error:  # of the device, not of one of the fits
        for number in sorted(unfinished):
            done(number, error)
