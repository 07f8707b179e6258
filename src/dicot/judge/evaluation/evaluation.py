"""evaluate: the benchmark on one data set, with its results in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import lookup
from dicot.core.progress import Bar
from dicot.data import Split, Windows
from dicot.data.datasets import fingerprint
from dicot.data.labels import labelled
from dicot.judge.evaluation.contenders import named_contenders, with_controls
from dicot.judge.evaluation.jobs import Job, JobData, Unit, units_of
from dicot.judge.evaluation.loading import Loaded, Shelf, check_scorable, load_labelled
from dicot.judge.evaluation.run import Embedded, OnFit, Site, run_units, score_embedded
from dicot.judge.protocols import PROTOCOLS, Features, ModelProtocol, Protocol, every_protocol
from dicot.judge.protocols.base import AUTHORS, SUBSETS, AnyProtocol, CaseScores
from dicot.judge.protocols.network import Fitted
from dicot.judge.result import TIDY, Result

if TYPE_CHECKING:
    import pandas

SUITE = "evaluation"

Data = Split | str | Path | tuple[Windows, Windows]


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

    def frame(self) -> "pandas.DataFrame":
        """One row for each number, tidy."""
        import pandas

        return pandas.DataFrame([row for result in self.results for row in result.tidy()], columns=list(TIDY))

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
    known = every_protocol()
    made = [lookup(known, one, "protocol")() if isinstance(one, str) else one for one in wanted]
    chosen, same = distinct(made, loaded.split)
    source = JobData(name)
    jobs = [
        Job(
            SUITE,
            one,
            source,
            source,
            protocol.name,
            seed,
            draws=not subsets and isinstance(protocol, Protocol) and protocol.draws_labels,
            subsets=protocol.draw_of(subsets or AUTHORS),
            own_protocol=protocol,
        )
        for seed in seeds
        for one in everyone
        for protocol in chosen
        if not (one.classical and isinstance(protocol, ModelProtocol))
    ]
    out = Evaluation(fixed=[one.name for one in everyone if one.fixed], same=same)
    ledger: dict[str, Sequence[Result]] = {}
    right: dict[str, NDArray[np.float32]] = {}

    def record(job: Job, results: Sequence[Result]) -> None:
        ledger[job.key] = results

    def keep(job: Job, draws: Sequence[Mapping[str, float]]) -> None:
        cases = [draw.right for draw in draws if isinstance(draw, CaseScores)]
        if len(cases) == len(draws):
            right[job.key] = np.mean(cases, axis=0, dtype=np.float32)

    def fitted(unit: Unit, fit: Fitted | Exception) -> None:
        if isinstance(fit, Fitted):
            out.models.setdefault(unit.first.contender.name, fit.model)
        on_fit(unit, fit)

    def score(given: Embedded) -> None:
        out.embeddings.setdefault(given.jobs[0].contender.name, (given.train, given.test))
        with Bar(f"score {given.jobs[0].contender.name}", len(given.jobs), verbose) as bar:
            for done, job in enumerate(given.jobs):
                bar.update(done, job.protocol)
                score_embedded(replace(given, jobs=(job,)), record, keep)

    site, shelf = Site(device, verbose=verbose), Shelf({name: loaded})
    for unit in units_of(jobs):
        run_units([unit], site, shelf, record, score=score, on_fit=fitted)
    out.results = [replace(one, contender=job.contender.name) for job in jobs for one in ledger[job.key]]
    out.right = {(j.contender.name, j.protocol, j.seed): right[j.key] for j in jobs if j.key in right}
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
