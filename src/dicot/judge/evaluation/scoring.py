"""A contender is fitted once, each target embedded once, each job scored and recorded.

Nothing here asks who the contender is. What fails becomes the result of the jobs that needed it.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dicot.core.device import describe_device, load_optimisers, peak_memory
from dicot.core.progress import Bar
from dicot.data import Split, Windows
from dicot.data.collection import labelled_cases
from dicot.data.datasets import paper_subset_seed
from dicot.judge.evaluation.contenders import Frozen
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.evaluation.labelled import Loaded, Shelf
from dicot.judge.protocols import Features, ModelProtocol, Protocol
from dicot.judge.protocols.base import PAPER_SUBSET_SEED, PER_SEED, SubsetSeed
from dicot.judge.protocols.network import Fitted
from dicot.judge.result import Result
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.train.record import Checkpoint

CHECKPOINT_SECONDS = 30.0
KEY = 32  # letters of a fit's key that its checkpoint is called by
LONGEST_ERROR = 1000  # characters that are kept of a message

Facts = Mapping[str, Any]  # what is known of a result before its values
Record = Callable[[Job, Sequence[Result]], None]  # keeps the results of a job, one for each draw of labelled cases


@dataclass(frozen=True)
class Site:
    """Where units are run: a device, and a folder for fits that may be interrupted."""

    device: str
    work: Path | None = None
    alone: bool = False  # one unit after the other, and nothing else of the command beside it
    verbose: bool = False
    checkpoint_seconds: float = CHECKPOINT_SECONDS


class Embedded(NamedTuple):
    """The labelled cases of both parts as embeddings."""

    train: Features
    test: Features


@dataclass(frozen=True, eq=False)
class Fit:
    """What became of the fit that some jobs share: a fitted contender, or the error."""

    unit: Unit
    outcome: Fitted | Exception
    facts: Facts  # of all its results
    checkpoint: Checkpoint | None = None  # None for what is not trained, and for a fit that is measured


def run_unit(unit: Unit, site: Site, shelf: Shelf, record: Record) -> None:
    """Fit the contender of a unit, and score and record all its jobs."""
    score_fit(fit_unit(unit, site, shelf), site, shelf, record)


def fit_unit(unit: Unit, site: Site, shelf: Shelf) -> Fit:
    """Fit the contender of a unit on all cases and no label; one that needs labels gets the labelled cases alone."""
    facts: dict[str, Any] = {}
    try:
        source = shelf.get(unit.first.source)
        facts = {"source_data": source.fingerprint, "device": describe_device(site.device, site.alone)}
        model = model_of(unit, source, site)
        checkpoint = checkpoint_of(unit, source, site)
        x, y = training_cases(unit, source, model)
        if unit.first.contender.trained:
            load_optimisers()
            warm_up(unit, source, site, x, y)
        with peak_memory(site.device) as peak:
            started = time.perf_counter()
            model.fit(x, y, **({"checkpoint": checkpoint} if checkpoint else {}))
            seconds, memory = time.perf_counter() - started, peak()
    except Exception as error:
        return Fit(unit, error, facts)

    was_resumed = checkpoint is not None and checkpoint.resumed
    fitted = Fitted(model, math.nan if was_resumed else seconds, memory)
    return Fit(unit, fitted, {**facts, **training_facts(fitted)}, checkpoint)


def score_fit(fit: Fit, site: Site, shelf: Shelf, record: Record) -> list[Embedded]:
    """Embed each target once, score each job and record it; return the embeddings, one for each target."""
    if isinstance(fit.outcome, Exception):
        record_failure(fit.unit.jobs, fit.outcome, record, fit.facts)
        return []
    embeddings: list[Embedded] = []
    for target, jobs in fit.unit.by_target().items():
        network_jobs = [job for job in jobs if isinstance(job.scorer(), ModelProtocol)]
        vector_jobs = [job for job in jobs if not isinstance(job.scorer(), ModelProtocol)]
        try:
            data = shelf.get(target)
        except Exception as error:
            record_failure(jobs, error, record, fit.facts)
            continue

        facts = {**fit.facts, "target_data": data.fingerprint}
        for job in network_jobs:
            record(job, score_network(job, fit.outcome, data, facts))
        if not vector_jobs:
            continue
        started = time.perf_counter()
        try:
            embedded = embed_labelled(fit.outcome.model, data.split)
        except Exception as error:
            record_failure(vector_jobs, error, record, facts)
            continue
        facts["embed_seconds"] = time.perf_counter() - started
        embeddings.append(embedded)
        name = fit.unit.first.contender.name
        with Bar(f"score {name}", len(vector_jobs), site.verbose) as bar:
            for done, job in enumerate(vector_jobs):
                bar.update(done, job.protocol)
                record(job, score_vectors(job, embedded, facts))
    if fit.checkpoint is not None:
        fit.checkpoint.remove()  # only now: until here it would have to be trained again
    return embeddings


def score_vectors(job: Job, embedded: Embedded, facts: Facts) -> list[Result]:
    """Score embeddings: on all draws of labelled cases, or on one (D-40)."""
    protocol = job.scorer()
    assert isinstance(protocol, Protocol)
    chosen = protocol if job.draws else protocol.on_subset(subset_seed(job))
    started = time.perf_counter()
    try:
        draws = chosen.score_draws(embedded.train, embedded.test, seed=job.seed)
        check_scores(job, draws)
    except Exception as error:
        return [failure(job, error, facts)]
    return results(job, draws, facts, time.perf_counter() - started)


def score_network(job: Job, fitted: Fitted, data: Loaded, facts: Facts) -> list[Result]:
    """Score a network, after training it further where the protocol does: that counts as fitting, not as scoring."""
    protocol = job.scorer()
    assert isinstance(protocol, ModelProtocol)
    chosen = protocol.on_subset(subset_seed(job))
    try:
        trained = chosen.train(fitted, data.split, seed=job.seed, steps=job.steps)
        if trained is not fitted:
            facts = {**facts, **tuning_facts(trained, facts)}
        started = time.perf_counter()
        draws = [chosen.score(trained, data.split, seed=job.seed)]
        check_scores(job, draws)
    except Exception as error:
        return [failure(job, error, facts)]
    return results(job, draws, facts, time.perf_counter() - started)


def results(job: Job, draws: Sequence[Mapping[str, float]], facts: Facts, seconds: float) -> list[Result]:
    """A row for each draw of labelled cases."""
    return [job.result(values, None, n, **facts, score_seconds=seconds) for n, values in enumerate(draws, start=1)]


def failure(job: Job, error: Exception, facts: Facts) -> Result:
    """A failure is a result too: NaN, and the reason."""
    reason = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
    values = dict.fromkeys(job.scorer().metric_names, math.nan)
    return job.result(values, reason, **facts)


def record_failure(jobs: Iterable[Job], error: Exception, record: Record, facts: Facts) -> None:
    """Record the same failure of several jobs."""
    for job in jobs:
        record(job, [failure(job, error, facts)])


def check_scores(job: Job, draws: Sequence[Mapping[str, float]]) -> None:
    """Refuse numbers that are not those of the protocol, and what is not finite."""
    for values in draws:
        if not values or values.keys() - set(job.scorer().metric_names):
            raise ArithmeticError(f"{job.protocol} gave {values} for its metrics")
        if not np.isfinite(list(values.values())).all():
            raise ArithmeticError(f"a value is not finite: {values}")


def subset_seed(job: Job) -> SubsetSeed:
    """What draws a job's labelled cases: the run's seed, or the authors', which a data set may have of its own."""
    if job.subsets == PER_SEED:
        return "run"
    of_data_set = paper_subset_seed(job.target.name)
    return PAPER_SUBSET_SEED if of_data_set is None else of_data_set


def training_facts(fitted: Fitted) -> dict[str, Any]:
    """The recipe as the training used it, and what the fit took."""
    recipe = getattr(fitted.model, "recipe_", None)
    used = {}
    if recipe is not None and recipe.steps > 0:
        used = {**asdict(recipe), "method_params": getattr(fitted.model, "method_params_", {})}
    return {"recipe": used, "fit_seconds": fitted.seconds, "peak_memory": fitted.peak_memory}


def tuning_facts(tuned: Fitted, facts: Facts) -> dict[str, Any]:
    """The same of a network that was trained further; its row is called by the recipe of the pretraining."""
    taken = training_facts(tuned)
    if taken and facts["recipe"]:
        taken["recipe"] = {**facts["recipe"], "tuning": taken["recipe"]}
    return taken


def embed_labelled(model: Any, split: Split) -> Embedded:
    """The labelled cases of both parts as embeddings."""
    assert split.test is not None
    train, test = labelled_cases(split.train), labelled_cases(split.test)
    z_train, z_test = (model.transform(cases_for(model, part)) for part in (train, test))
    return Embedded(Features(z_train, train.y), Features(z_test, test.y))


def cases_for(model: Any, windows: Windows) -> Any:
    """Return Windows for an embedder, which takes them as they are, and the array for any other transformer."""
    inner = model.model if isinstance(model, Frozen) else model
    return windows if isinstance(inner, TimeSeriesEmbedder) else windows.x


def training_cases(unit: Unit, source: Loaded, model: Any) -> tuple[Any, Any]:
    """X and y of a fit: labels go only to a contender that needs them."""
    if not unit.first.contender.needs_labels:
        return cases_for(model, replace(source.split.train, y=None)), None
    train = labelled_cases(source.split.train)
    return cases_for(model, train), train.y


def model_of(unit: Unit, source: Loaded, site: Site, **settings: Any) -> Any:
    """A fresh transformer for a unit."""
    first = unit.first
    contender = replace(first.contender, settings={**first.contender.settings, **settings})
    return contender.make(first.seed, family=source.split.family, device=site.device, verbose=site.verbose)


_warm: set[tuple[str, str]] = set()  # contenders and devices that this process has fitted


def warm_up(unit: Unit, source: Loaded, site: Site, x: Any, y: Any) -> None:
    """Two steps before a fit is measured for the first time: what is loaded then belongs to no fit."""
    place = (unit.first.contender.name, site.device)
    if unit.alone and place not in _warm:
        model_of(unit, source, replace(site, verbose=False), steps=2).fit(x, y).transform(x)
        _warm.add(place)


def checkpoint_of(unit: Unit, source: Loaded, site: Site) -> Checkpoint | None:
    """Where a fit that may be interrupted is written."""
    if site.work is None or not unit.first.contender.trained or unit.alone:
        return None
    path = site.work / f"{unit.key[:KEY]}-{source.fingerprint}.safetensors"
    return Checkpoint(path, site.checkpoint_seconds, overwrite=True)  # one of another version is no failure


def clear_finished(site: Site, fits: Set[str]) -> None:
    """Remove the checkpoints of finished fits, which a run leaves that is killed between its last row and this."""
    finished = {fit[:KEY] for fit in fits}
    for path in site.work.glob("*") if site.work is not None else ():
        if path.name.lstrip(".")[:KEY] in finished:
            path.unlink(missing_ok=True)
