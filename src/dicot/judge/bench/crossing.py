"""Contenders x data sets x seeds -> jobs, narrowed or changed by the options of a run."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from dicot.data.datasets import family_of, is_path, stands_in_for, transfer_channels
from dicot.judge.classical import CLASSICAL, RAW_FEATURES
from dicot.judge.evaluation.contenders import Contender
from dicot.judge.evaluation.jobs import Job, JobData
from dicot.judge.evaluation.model_protocols import MODEL_PROTOCOLS, every_protocol
from dicot.model.presets import find_preset

Pair = tuple[JobData, JobData]  # fitted on, scored on
Entry = tuple[Contender, tuple[str, ...]]  # a contender of a suite, and the protocols that score it there
Exceptions = Mapping[tuple[str, str], Mapping[str, Any]]  # by method and data set: what is set for this pair alone


@dataclass(frozen=True)
class SuiteOptions:
    """What narrows or changes a suite; what is empty is left to the suite."""

    contenders: tuple[str, ...] = ()  # names or kinds; a trained one brings the controls along
    sets: tuple[str, ...] = ()  # instead of the suite's own
    seeds: tuple[int, ...] = ()
    protocols: tuple[str, ...] = ()  # instead of the suite's own
    schedules: tuple[str, ...] = ("per_step",)
    precision: str = "float32"
    steps: int | None = None  # of everything that is trained: a trial
    scale: str | None = None  # of every data set: the policy of `load`
    family: str = ""  # of the files among the sets: whose recipe and settings they take
    subsets: str = ""  # which labelled cases are drawn where a protocol draws some: "authors" or "per-seed"


def methods(*protocols: str, labelled: bool = False, without: Sequence[str] = ()) -> list[Entry]:
    """Every method that learns without labels, but for some; with `labelled` also those that need them."""
    from dicot.methods import METHODS

    chosen = [name for name, kind in METHODS.items() if name not in without and (labelled or not kind.needs_labels)]
    return [(Contender(name, name), protocols) for name in chosen]


def controls(*protocols: str) -> list[Entry]:
    from dicot.model.controls import CONTROLS

    return [(Contender(name, name), protocols) for name in CONTROLS]


def classical(*protocols: str, raw: tuple[str, ...] = (), others: tuple[str, ...] = ()) -> list[Entry]:
    """Every baseline; raw features and all others may have protocols of their own beside those of everybody."""
    return [(Contender(name, name), (*protocols, *(raw if name in RAW_FEATURES else others))) for name in CLASSICAL]


def cross(
    suite: str,
    entries: Sequence[Entry],
    pairs: Sequence[Pair],
    seeds: Sequence[int],
    options: SuiteOptions,
    exceptions: Exceptions | None = None,
) -> list[Job]:
    """Make a job for every entry, pair, protocol and seed that the options let through."""
    jobs = []
    for entry, own in _chosen(entries, options):
        protocols = [name for name in options.protocols or own if not (entry.classical and name in MODEL_PROTOCOLS)]
        made = {name: every_protocol()[name]() for name in protocols}
        for contender, pair in product(_scheduled(entry, options), pairs):
            source, target = (
                replace(data, scale=options.scale, family=given_family(data.name, options)) for data in pair
            )
            special = (exceptions or {}).get((contender.kind, stands_in_for(source.name) or source.name), {})
            one = replace(contender, method_params=own_params(contender, source, special))
            for protocol, seed in product(protocols, options.seeds or seeds):
                trains, draw = made[protocol].trains, made[protocol].draw_of(options.subsets)
                steps = options.steps if trains else None
                trial = options.steps is not None and (trains or "steps" in contender.settings)
                jobs.append(Job(suite, one, source, target, protocol, seed, steps, trial, subsets=draw))
    return jobs


def given_family(name: str, options: SuiteOptions) -> str | None:
    """The family that a file was given by the options; None for a data set by name, which has its own."""
    return options.family or None if is_path(name) else None


def own_params(contender: Contender, source: JobData, special: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from what the method would use on this data set anyway: equal settings get equal keys."""
    from dicot.methods import METHODS

    if not contender.trained:
        return {}
    method, family = METHODS[contender.kind], source.family or family_of(source.name)
    usual = {name: parameter.default for name, parameter in inspect.signature(method).parameters.items()}
    by_family = method.paper_params(family)
    # A set of unknown family may turn out to have one when it is loaded: what depends on it stays said.
    usual |= dict.fromkeys(by_family) if family is None else by_family
    if "preset" in contender.settings:
        usual |= find_preset(contender.settings["preset"]).params_of(contender.kind)
    wanted = {**special, **contender.method_params}
    return {name: value for name, value in wanted.items() if usual.get(name) != value}


def whole(name: str) -> Pair:
    """Fitted and scored on the same set."""
    return JobData(name), JobData(name)


def transfer(source: str, target: str) -> Pair:
    """Fitted on the accelerometer of one set and scored on that of another; unknown sets have it in front."""
    first, last = (JobData(name, transfer_channels(name) or (0, 1, 2)) for name in (source, target))
    return first, last


def _chosen(entries: Sequence[Entry], options: SuiteOptions) -> Sequence[Entry]:
    """Those that were asked for; no trained contender without its controls."""
    from dicot.model.controls import CONTROLS

    if not options.contenders:
        return entries
    wanted = [entry for entry in entries if {entry[0].name, entry[0].kind} & set(options.contenders)]
    trained = any(contender.trained for contender, _ in wanted)
    return [entry for entry in entries if entry in wanted or (trained and entry[0].name in CONTROLS)]


def _scheduled(contender: Contender, options: SuiteOptions) -> list[Contender]:
    """The contender with the settings of a training, once for each schedule; as it is where it is not trained."""
    if not contender.trained:
        return [contender]
    steps = {} if options.steps is None else {"steps": options.steps}
    return [
        replace(contender, settings={**contender.settings, "schedule": name, "precision": options.precision, **steps})
        for name in options.schedules
    ]
