"""Contenders x protocols x seeds on one data set -> results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import lookup
from dicot.data import Split
from dicot.data.labels import labelled
from dicot.judge.evaluation.contenders import Contender, named_contenders, with_controls
from dicot.judge.evaluation.jobs import Job, JobData, Unit, units_of
from dicot.judge.evaluation.labelled import Data, Shelf, check_scorable, loaded_data
from dicot.judge.evaluation.scoring import Embedded, Site, fit_unit, score_fit
from dicot.judge.protocols import PROTOCOLS, ModelProtocol, Protocol, every_protocol
from dicot.judge.protocols.base import AUTHORS, SUBSETS, AnyProtocol
from dicot.judge.protocols.network import Fitted
from dicot.judge.result import TIDY, Result

SUITE = "evaluation"  # of what is in no benchmark

OnFit = Callable[[Unit, Fitted | Exception], None]


@dataclass
class Evaluation:
    """All results, failures among them, and what was fitted to get them."""

    results: list[Result] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)  # contenders that are the same for every seed
    same: dict[str, list[str]] = field(default_factory=dict)  # protocols left out, by the one they come to
    models: dict[str, Any] = field(default_factory=dict)  # the first fit of each contender
    embeddings: dict[str, Embedded] = field(default_factory=dict)  # its labelled cases, train and test
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
    name, loaded = loaded_data(data)
    everyone = named_contenders(contenders)
    if controls:
        everyone = with_controls(everyone)
    names = list(PROTOCOLS) if protocols is None else protocols
    made = [lookup(every_protocol(), one, "protocol")() if isinstance(one, str) else one for one in names]
    different, same = distinct(made, loaded.split)
    jobs = jobs_of(name, everyone, different, seeds, subsets)

    evaluation = Evaluation(fixed=[one.name for one in everyone if one.fixed], same=same)
    recorded: dict[str, Sequence[Result]] = {}

    def record(job: Job, results: Sequence[Result]) -> None:
        recorded[job.key] = results

    site, shelf = Site(device, verbose=verbose), Shelf({name: loaded})
    for unit in units_of(jobs):
        fit = fit_unit(unit, site, shelf)
        on_fit(unit, fit.outcome)
        embeddings = score_fit(fit, site, shelf, record)
        contender = unit.first.contender.name
        if isinstance(fit.outcome, Fitted):
            evaluation.models.setdefault(contender, fit.outcome.model)
        for embedded in embeddings:
            evaluation.embeddings.setdefault(contender, embedded)

    for job in jobs:
        results = [replace(one, contender=job.contender.name) for one in recorded[job.key]]
        evaluation.results += results
        right = [one.right for one in results if one.right is not None]
        if right:
            of_job = job.contender.name, job.protocol, job.seed
            evaluation.right[of_job] = np.mean(right, axis=0, dtype=np.float32)
    return evaluation


def jobs_of(
    data_set: str,
    contenders: Sequence[Contender],
    protocols: Sequence[AnyProtocol],
    seeds: Sequence[int],
    subsets: str,
) -> list[Job]:
    """A job for each seed, contender and protocol; what has no network is scored by its vectors alone."""
    data = JobData(data_set)
    jobs = []
    for seed, contender, protocol in product(seeds, contenders, protocols):
        if contender.classical and isinstance(protocol, ModelProtocol):
            continue
        job = Job(
            SUITE,
            contender,
            data,
            data,
            protocol.name,
            seed,
            own_protocol=protocol,
            subsets=protocol.draw_of(subsets or AUTHORS),
            draws=not subsets and isinstance(protocol, Protocol) and protocol.draws_labels,
        )
        jobs.append(job)
    return jobs


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
