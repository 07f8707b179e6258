"""Entries x data sets x seeds, narrowed or changed by the options of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from dicot.bench.contenders import Entry, own_params
from dicot.bench.jobs import Contender, DataSet, Job
from dicot.bench.model_protocols import MODEL_PROTOCOLS, TRAINING

Pair = tuple[DataSet, DataSet]  # fitted on, scored on


@dataclass(frozen=True)
class Options:
    """What narrows or changes a suite; what is empty is left to the suite."""

    contenders: tuple[str, ...] = ()  # names or kinds; a trained one brings the controls along
    sets: tuple[str, ...] = ()  # instead of the suite's own
    seeds: tuple[int, ...] = ()
    protocols: tuple[str, ...] = ()  # instead of the suite's own
    schedules: tuple[str, ...] = ("per_step",)
    precision: str = "float32"
    steps: int | None = None  # of everything that is trained: a trial


def cross(
    suite: str, entries: Sequence[Entry], pairs: Sequence[Pair], seeds: Sequence[int], options: Options
) -> list[Job]:
    """A job for every entry, pair, protocol and seed that the options let through."""
    jobs = []
    for entry in _chosen(entries, options):
        protocols = _applicable(entry.contender, options.protocols or entry.protocols)
        for contender, (source, target) in product(_scheduled(entry.contender, options), pairs):
            own = replace(contender, method_params=own_params(contender, source.name))
            for protocol, seed in product(protocols, options.seeds or seeds):
                trains = protocol in TRAINING
                trial = options.steps is not None and (trains or "steps" in contender.settings)
                jobs.append(Job(suite, own, source, target, protocol, seed, options.steps if trains else None, trial))
    return jobs


def _chosen(entries: Sequence[Entry], options: Options) -> Sequence[Entry]:
    """Those that were asked for; no trained contender without its controls."""
    from dicot.controls import CONTROLS
    from dicot.methods import METHODS

    if not options.contenders:
        return entries
    wanted = [entry for entry in entries if {entry.contender.name, entry.contender.kind} & set(options.contenders)]
    trained = any(entry.contender.kind in METHODS for entry in wanted)
    return [entry for entry in entries if entry in wanted or (trained and entry.contender.name in CONTROLS)]


def _scheduled(contender: Contender, options: Options) -> list[Contender]:
    """The contender with the settings of a training, once for each schedule; as it is where it is not trained."""
    from dicot.methods import METHODS

    if contender.kind not in METHODS:
        return [contender]
    steps = {} if options.steps is None else {"steps": options.steps}
    return [
        replace(contender, settings={**contender.settings, "schedule": name, "precision": options.precision, **steps})
        for name in options.schedules
    ]


def _applicable(contender: Contender, protocols: Sequence[str]) -> list[str]:
    """Without those that need a network, for contenders that have none."""
    from dicot.classical import CLASSICAL

    return [name for name in protocols if contender.kind not in CLASSICAL or name not in MODEL_PROTOCOLS]
