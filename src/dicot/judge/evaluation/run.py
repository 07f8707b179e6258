"""A unit of work: a contender is fitted once, each target embedded once, each job scored and recorded at once.

Nothing here asks who the contender is. What fails becomes the result of the jobs that needed it.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.device import describe_device, load_optimisers, peak_memory
from dicot.core.errors import InputError, lookup
from dicot.core.progress import Bar
from dicot.data import Split, Windows
from dicot.data.collection import labelled_cases
from dicot.data.datasets import benchmark_policies, fingerprint, load, paper_subset_seed
from dicot.data.datasets.base import pick_channels
from dicot.data.labels import labelled
from dicot.data.splits import hold_out, with_policies
from dicot.judge.evaluation.contenders import Frozen, named_contenders, with_controls
from dicot.judge.evaluation.jobs import Job, JobData, Unit, units_of
from dicot.judge.protocols import PROTOCOLS, Features, ModelProtocol, Protocol, every_protocol
from dicot.judge.protocols.base import AUTHORS, PAPER_SUBSET_SEED, PER_SEED, SUBSETS, AnyProtocol, SubsetSeed
from dicot.judge.protocols.network import Fitted
from dicot.judge.result import TIDY, Result
from dicot.model.estimator import TimeSeriesEmbedder, fit_many
from dicot.train.record import Checkpoint

IN_MEMORY = 2  # data sets at a time: a source and a target
HELD_OUT = 0.3  # of the cases, where there is no test part: the share that `dicot evaluate` holds out
SUITE = "evaluation"  # of what is in no benchmark
CHECKPOINT_SECONDS = 30.0
KEY = 32  # letters of a fit's key that its checkpoint is called by
LONGEST_ERROR = 1000  # characters that are kept of a message

Data = Split | str | Path | tuple[Windows, Windows]
Facts = Mapping[str, Any]  # what is known of a result before its values
Record = Callable[[Job, Sequence[Result]], None]  # the results of a job, one for each draw of labelled cases
OnFit = Callable[[Unit, Fitted | Exception], None]


@dataclass(frozen=True, eq=False)
class Loaded:
    """A training and a test part with labels, the fingerprint of both, and what was done to get there."""

    split: Split
    fingerprint: str
    note: str = ""


class Shelf:
    """The data sets of a process: those given, which stay, and those that were loaded last."""

    def __init__(self, given: Mapping[str, Loaded] | None = None) -> None:
        self._given, self._load = given or {}, lru_cache(IN_MEMORY)(load_labelled)

    def get(self, wanted: JobData) -> Loaded:
        loaded = self._given.get(wanted.name) or self._load(wanted.name)
        split = pick_channels(loaded.split, wanted.channels)
        split = split if wanted.scale is None else with_policies(split, scale=wanted.scale)
        return replace(loaded, split=replace(split, family=wanted.family or split.family))


def load_labelled(name: str) -> Loaded:
    """Load a data set that can be scored on, or raise an InputError; the archive's missing values are interpolated.

    Of a file without a test part some cases are held out, the same ones every time: whole groups where there are any.
    """
    split = load(name, **benchmark_policies(name))
    note = ""
    if split.test is None:
        split = replace(hold_out(split.train, HELD_OUT), family=split.family, name=split.name)
        assert split.test is not None
        note = (
            f"{name} has no test part: {len(split.test)} of {len(split.train) + len(split.test)} cases are held out, "
            f"{'whole groups' if split.test.group is not None else 'a share of each class'}, as by dicot evaluate"
        )
    check_scorable(split)
    if len(np.unique(np.asarray(labelled_cases(split.train).y))) < 2:
        raise InputError(f"The training cases of {name} have one class, and scoring needs two or more.")
    return Loaded(split, fingerprint(split), note)


def check_scorable(split: Split) -> None:
    """Refuse a split unless both parts are there and have labels."""
    name = split.name or "the data"
    if split.test is None:
        raise InputError(f"There is no test part in {name}. Give one, or hold cases out of the training part.")
    for which, part in (("training", split.train), ("test", split.test)):
        if part.y is None or not labelled(part.y).any():
            raise InputError(
                f"The {which} cases of {name} have no labels, and scoring needs them. Name a label column or pass y."
            )


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
            fit.checkpoint.remove()  # only now: until here it would have to be trained again

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


def score_embedded(given: Embedded, record: Record) -> None:
    """Score every job by its protocol: on all draws of labelled cases, or on one (D-40)."""
    for job in given.jobs:
        protocol = job.scorer()
        assert isinstance(protocol, Protocol)
        chosen = protocol if job.draws else protocol.on_subset(_subset_seed(job))
        _score(job, partial(chosen.score_draws, given.train, given.test, seed=job.seed), given.facts, record)


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
    assert split.test is not None
    train, test = labelled_cases(split.train), labelled_cases(split.test)
    embeddings = [model.transform(cases_for(model, part)) for part in (train, test)]
    return Features(embeddings[0], train.y), Features(embeddings[1], test.y)


def cases_for(model: Any, windows: Windows) -> Any:
    """Return Windows for an embedder, which takes them as they are, and the array for any other transformer."""
    inner = model.model if isinstance(model, Frozen) else model
    return windows if isinstance(inner, TimeSeriesEmbedder) else windows.x


def _score(job: Job, compute: Callable[[], Sequence[Mapping[str, float]]], facts: Facts, record: Record) -> None:
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


def clear_finished(site: Site, fits: Set[str]) -> None:
    """Remove the checkpoints of finished fits, which a run leaves that is killed between its last row and this."""
    finished = {fit[:KEY] for fit in fits}
    for path in site.work.glob("*") if site.work is not None else ():
        if path.name.lstrip(".")[:KEY] in finished:
            path.unlink(missing_ok=True)


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


@dataclass
class Evaluation:
    """All results, failures among them, and what was fitted to get them."""

    results: list[Result] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)  # contenders that are the same for every seed
    same: dict[str, list[str]] = field(default_factory=dict)  # protocols left out, by the one they come to
    models: dict[str, Any] = field(default_factory=dict)  # the first fit of each contender
    embeddings: dict[str, tuple[Features, Features]] = field(default_factory=dict)  # its labelled cases, train and test
    # By contender, protocol and seed, where a protocol classifies embeddings: in what share of the draws each labelled
    # test case was right.
    right: dict[tuple[str, str, int], NDArray[np.float32]] = field(default_factory=dict)

    def frame(self) -> pd.DataFrame:
        """One row for each number, tidy."""
        return pd.DataFrame([row for result in self.results for row in result.tidy()], columns=list(TIDY))

    def error(self, contender: str) -> str | None:
        """Why a contender has no score at all; None where it has one."""
        errors = [one.error for one in self.results if one.contender == contender]
        return errors[0] if errors and all(errors) else None


def evaluate(
    data: Data,
    contenders: Mapping[str, Any] | Sequence[Any],
    protocols: Sequence[str | AnyProtocol] | None = None,
    seeds: Sequence[int] = (1,),
    *,
    controls: bool = True,
    subsets: str = "",
    device: str = "auto",
    verbose: bool = True,
    on_fit: OnFit = lambda unit, fitted: None,
) -> Evaluation:
    """Fit each contender on the training cases with each seed, and score it by every protocol on the labelled ones.

    What is the same for every seed is fitted once. A contender or protocol that fails is a result with its error. The
    Evaluation that is returned has `results`, one for each draw of labelled cases, `frame()`, the same as a tidy pandas
    frame with a row for each number, and `models`, the first fit of each contender.

    Parameters
    ----------
    data : a data set by name or file, a Split, or a pair of labelled Windows (training, test)
    contenders : names of methods, TimeSeriesEmbedder instances or other transformers (cloned for each seed, with
        `random_state` set to it), or Contender objects such as `dicot.judge.evaluation.saved(name, model)`, a fitted
        model as it is; a mapping says what each is called in the results
    protocols : names, or protocols themselves; by default all that score embeddings. Where labelled cases are drawn,
        every draw is a result
    seeds : a fit for each
    controls : add the untrained controls of every encoder that takes part, and the raw features
    subsets : which labelled cases a protocol sees that draws some: by default ten draws by each seed, "per-seed" one by
        each, "authors" theirs, the same for every seed. Fine-tuning has one draw in any case, by default the authors'
    device : of contenders given by name; instances have their own
    verbose : show progress bars in a terminal
    on_fit : is told of each fit before it is scored, and of each that failed
    """
    if subsets:
        lookup(dict.fromkeys(SUBSETS), subsets, "choice of subsets")
    name, loaded = _loaded(data)
    everyone = named_contenders(contenders)
    if controls:
        everyone = with_controls(everyone)
    wanted = list(PROTOCOLS) if protocols is None else protocols
    made = [lookup(every_protocol(), one, "protocol")() if isinstance(one, str) else one for one in wanted]
    chosen, same = distinct(made, loaded.split)
    jobs = []
    for seed, one, protocol in product(seeds, everyone, chosen):
        if not (one.classical and isinstance(protocol, ModelProtocol)):
            how: dict[str, Any] = {"own_protocol": protocol, "subsets": protocol.draw_of(subsets or AUTHORS)}
            how["draws"] = not subsets and isinstance(protocol, Protocol) and protocol.draws_labels
            jobs.append(Job(SUITE, one, JobData(name), JobData(name), protocol.name, seed, **how))
    out = Evaluation(fixed=[one.name for one in everyone if one.fixed], same=same)
    ledger: dict[str, Sequence[Result]] = {}

    def record(job: Job, results: Sequence[Result]) -> None:
        ledger[job.key] = results

    def fitted(unit: Unit, fit: Fitted | Exception) -> None:
        if isinstance(fit, Fitted):
            out.models.setdefault(unit.first.contender.name, fit.model)
        on_fit(unit, fit)

    def score(given: Embedded) -> None:
        out.embeddings.setdefault(given.jobs[0].contender.name, (given.train, given.test))
        with Bar(f"score {given.jobs[0].contender.name}", len(given.jobs), verbose) as bar:
            for done, job in enumerate(given.jobs):
                bar.update(done, job.protocol)
                score_embedded(replace(given, jobs=(job,)), record)

    site, shelf = Site(device, verbose=verbose), Shelf({name: loaded})
    for unit in units_of(jobs):
        run_units([unit], site, shelf, record, score=score, on_fit=fitted)
    for job in jobs:
        results = ledger[job.key]
        out.results += [replace(one, contender=job.contender.name) for one in results]
        if right := [one.right for one in results if one.right is not None]:
            out.right[job.contender.name, job.protocol, job.seed] = np.mean(right, axis=0, dtype=np.float32)
    return out


def distinct(protocols: Sequence[AnyProtocol], split: Split) -> tuple[list[AnyProtocol], dict[str, list[str]]]:
    """Protocols that differ with these training labels, and the names of those that come to one of them."""
    check_scorable(split)
    assert split.train.y is not None
    y = split.train.y[labelled(split.train.y)]
    different: dict[str, AnyProtocol] = {}
    same: dict[str, list[str]] = {}
    for protocol in protocols:
        effective = protocol.without_draws(y) if isinstance(protocol, Protocol) else protocol
        different.setdefault(effective.name, effective)
        if effective.name != protocol.name:
            same.setdefault(effective.name, []).append(protocol.name)
    return list(different.values()), same


def _loaded(data: Data) -> tuple[str, Loaded]:
    """The data as a split that can be scored, and its name."""
    if isinstance(data, str | Path):
        return str(data), load_labelled(str(data))
    if isinstance(data, tuple):
        train, test = data
        data = Split(train, test, name=train.name)
    check_scorable(data)
    return data.name or "data", Loaded(data, fingerprint(data))
