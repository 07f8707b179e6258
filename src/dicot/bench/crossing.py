"""Entries x data sets x seeds, narrowed or changed by the options of a run."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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
    suite: str, entries: Iterable[Entry], pairs: Sequence[Pair], seeds: Sequence[int], options: Options
) -> list[Job]:
    """A job for every entry, pair, protocol and seed that the options let through."""
    return [
        Job(suite, own, source, target, protocol, seed, steps, trial)
        for entry in _chosen(list(entries), options)
        for contender, trained in _scheduled(entry.contender, options)
        for source, target in pairs
        for own in [replace(contender, method_params=own_params(contender, source.name))]
        for protocol in _applicable(contender, options.protocols or entry.protocols)
        for steps in [options.steps if protocol in TRAINING else None]
        for trial in [options.steps is not None and (trained or protocol in TRAINING)]
        for seed in options.seeds or seeds
    ]


def _chosen(entries: list[Entry], options: Options) -> list[Entry]:
    """Those that were asked for; no trained contender without its controls."""
    from dicot.controls import CONTROLS
    from dicot.methods import METHODS

    if not options.contenders:
        return entries
    wanted = [entry for entry in entries if {entry.contender.name, entry.contender.kind} & set(options.contenders)]
    trained = any(entry.contender.kind in METHODS for entry in wanted)
    return [entry for entry in entries if entry in wanted or (trained and entry.contender.name in CONTROLS)]


def _scheduled(contender: Contender, options: Options) -> Iterator[tuple[Contender, bool]]:
    """The contender with the settings of a training, once for each schedule, and whether it is trained at all."""
    from dicot.methods import METHODS

    if contender.kind not in METHODS:
        yield contender, False
        return
    steps = {} if options.steps is None else {"steps": options.steps}
    for schedule in options.schedules:
        more = {"schedule": schedule, "precision": options.precision, **steps}
        yield replace(contender, settings={**contender.settings, **more}), True


def _applicable(contender: Contender, protocols: Sequence[str]) -> list[str]:
    """Without those that need a network, for contenders that have none."""
    from dicot.classical import CLASSICAL

    return [name for name in protocols if contender.kind not in CLASSICAL or name not in MODEL_PROTOCOLS]
