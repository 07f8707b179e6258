"""A unit of work: a contender is fitted once, each target embedded once, each job scored and recorded at once.

Nothing here asks who the contender is. What fails becomes the result of the jobs that needed it.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dicot.bench.fits import Site, fit_units
from dicot.bench.fitted import Fitted
from dicot.bench.jobs import Job, Unit
from dicot.bench.lines import Result
from dicot.bench.loading import Loaded, Shelf, scored
from dicot.bench.model_protocols import MODEL_PROTOCOLS, every_protocol
from dicot.errors import lookup
from dicot.protocols import PROTOCOLS, Features

LONGEST_ERROR = 1000  # characters that are kept of a message

Record = Callable[[Job, Result], None]


@dataclass(frozen=True, eq=False)
class Embedded:
    """Both parts of a target as embeddings, and the jobs that they are to be scored for."""

    jobs: tuple[Job, ...]
    train: Features
    test: Features
    known: Result


Score = Callable[[Embedded], None]


def run_units(units: Sequence[Unit], site: Site, shelf: Shelf, record: Record, score: Score | None = None) -> None:
    """Fit these units, at once where there are several, and score their jobs; `score` may leave that to others."""
    score = score or partial(score_embedded, record=record)
    sources: dict[str, Loaded] = {}
    for unit in units:
        try:
            sources[unit.key] = shelf.get(unit.first.source)
        except Exception as error:
            fail(unit.jobs, error, record)
    ready = [unit for unit in units if unit.key in sources]
    known = {unit.key: _known(sources[unit.key], site) for unit in ready}

    def assess(unit: Unit, fitted: Fitted) -> None:
        source, result = sources[unit.key], _fitted_result(known[unit.key], fitted)
        for target, jobs in unit.by_target().items():
            load = partial(shelf.get, target) if target != unit.first.source else lambda: source
            _assess(fitted, jobs, load, result, record, score)
        if checkpoint := site.checkpoint(unit, sources[unit.key]):
            checkpoint.path.unlink(missing_ok=True)  # only now: until here it would have to be trained again

    fit_units(ready, sources, site, assess, lambda unit, error: fail(unit.jobs, error, record, known[unit.key]))


def fail(jobs: Iterable[Job], error: Exception, record: Record, known: Result | None = None) -> None:
    """A failure is a result too: NaN, and the reason."""
    reason = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
    for job in jobs:
        protocol = lookup(every_protocol(), job.protocol, "protocol")()
        values = dict.fromkeys((metric.name for metric in protocol.metrics), math.nan)
        record(job, replace(known or Result(), values=values, error=reason))


def _known(source: Loaded, site: Site) -> Result:
    from dicot.gpu.device import describe_device

    return Result(source_data=source.fingerprint, device=describe_device(site.device))


def _fitted_result(known: Result, fitted: Fitted) -> Result:
    recipe = getattr(fitted.model, "recipe_", None)
    settings: dict[str, Any] = {}
    if recipe is not None and recipe.steps > 0:
        settings = {**asdict(recipe), "method_params": fitted.model.method_params_}
    return replace(known, recipe=settings, fit_seconds=fitted.seconds, peak_memory=fitted.peak_memory)


def _assess(
    fitted: Fitted, jobs: Sequence[Job], load: Callable[[], Loaded], known: Result, record: Record, score: Score
) -> None:
    """Score the jobs of one target: the network itself, and embeddings, which are made once."""
    try:
        data = load()
    except Exception as error:
        fail(jobs, error, record, known)
        return
    known = replace(known, target_data=data.fingerprint)
    for job in jobs:
        if job.protocol in MODEL_PROTOCOLS:
            protocol = MODEL_PROTOCOLS[job.protocol]()
            _score(job, partial(protocol.score, fitted, data.split, seed=job.seed, steps=job.steps), known, record)
    embedded = [job for job in jobs if job.protocol not in MODEL_PROTOCOLS]
    if not embedded:
        return
    try:
        started = time.perf_counter()
        train, test = _embeddings(fitted.model, data)
    except Exception as error:
        fail(embedded, error, record, known)
        return
    score(Embedded(tuple(embedded), train, test, replace(known, embed_seconds=time.perf_counter() - started)))


def score_embedded(given: Embedded, record: Record) -> None:
    """Every job by its protocol, on the authors' subset where labels are few (D-40)."""
    for job in given.jobs:
        protocol = PROTOCOLS[job.protocol]().as_published()
        _score(job, partial(protocol.score, given.train, given.test, seed=job.seed), given.known, record)


def _embeddings(model: Any, data: Loaded) -> tuple[Features, Features]:
    """Of the labelled cases of both parts."""
    assert data.split.test is not None
    train, test = scored(data.split.train), scored(data.split.test)
    assert train.y is not None and test.y is not None
    return Features(model.transform(train.x), train.y), Features(model.transform(test.x), test.y)


def _score(job: Job, compute: Callable[[], dict[str, float]], known: Result, record: Record) -> None:
    started = time.perf_counter()
    try:
        values = compute()
        if not values or values.keys() - {metric.name for metric in every_protocol()[job.protocol]().metrics}:
            raise ArithmeticError(f"{job.protocol} gave {values} for its metrics")
        if not np.isfinite(list(values.values())).all():
            raise ArithmeticError(f"a value is not finite: {values}")
    except Exception as error:
        fail([job], error, record, known)
        return
    record(job, replace(known, values=values, score_seconds=time.perf_counter() - started))
