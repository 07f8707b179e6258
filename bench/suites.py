"""Suites of jobs: contenders x data sets x seeds, narrowed or changed by the options of a run.

The suites of the presets are here; those of the paper are added by bench.paper.suites.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from bench.datasets import stand_ins, stands_in_for, transfer_channels
from bench.datasets.names import DEVELOPMENT, LARGE
from bench.datasets.standins import SISFALL
from bench.presets import BEST_2026_11
from dicot.core.errors import InputError, did_you_mean, lookup
from dicot.data.conversion import check_policies
from dicot.data.datasets import DATASETS, family_of, is_path, spelled
from dicot.data.datasets.names import UCR, UEA
from dicot.judge.classical import BEYOND_PAPER, CLASSICAL, RAW_FEATURES
from dicot.judge.evaluation.contenders import Contender
from dicot.judge.evaluation.jobs import Job, JobData
from dicot.judge.protocols import MODEL_PROTOCOLS, every_protocol
from dicot.judge.protocols.base import AUTHORS, PER_SEED, SUBSETS
from dicot.judge.result import PRETRAINED, SUPERVISED
from dicot.methods import METHODS
from dicot.model.controls import CONTROLS
from dicot.model.presets import PRESETS, find_preset
from dicot.train.recipe import FAMILIES, PRECISIONS, SCHEDULES

Pair = tuple[JobData, JobData]  # fitted on, scored on
Entry = tuple[Contender, tuple[str, ...]]  # a contender of a suite, and the protocols that score it there
Exceptions = Mapping[tuple[str, str], Mapping[str, Any]]  # by method and data set: what is set for this pair alone
Seeds = Sequence[int] | Callable[[Contender], Sequence[int]]  # for everybody, or for each its own


@dataclass(frozen=True)
class SuiteOptions:
    """What narrows or changes a suite; what is empty is left to the suite."""

    contenders: tuple[str, ...] = ()  # names or kinds; a trained one brings the controls along
    sets: tuple[str, ...] = ()  # instead of the suite's own
    seeds: tuple[int, ...] = ()
    protocols: tuple[str, ...] = ()  # instead of the suite's own
    schedules: tuple[str, ...] = ("per_step",)
    precision: str = ""  # of every training
    steps: int | None = None  # of everything that is trained: a trial
    scale: str | None = None  # of every data set: the policy of `load`
    family: str = ""  # of the files among the sets: whose recipe and settings they take
    channels: str = ""  # of transfers: "authors" takes the triple of the authors' code where it differs (D-50)
    subsets: str = ""  # which labelled cases are drawn where a protocol draws some: "authors" or "per-seed"


def methods(*protocols: str, labelled: bool = False, without: Sequence[str] = ()) -> list[Entry]:
    """Every method that learns without labels, but for some; with `labelled` also those that need them."""
    chosen = [name for name, kind in METHODS.items() if name not in without and (labelled or not kind.needs_labels)]
    return [(Contender(name, name), protocols) for name in chosen]


def controls(*protocols: str) -> list[Entry]:
    return [(Contender(name, name), protocols) for name in CONTROLS]


def is_control(one: Contender) -> bool:
    """Tell whether it stands beside others to compare them with; what an untrained encoder ends up as does not."""
    return one.kind in CONTROLS and (one.name in CONTROLS or "preset" in one.settings)


def classical(
    *protocols: str, raw: tuple[str, ...] = (), others: tuple[str, ...] = (), without: Sequence[str] = ()
) -> list[Entry]:
    """Every baseline, but for some; raw features and all others may have protocols of their own beside everybody's."""
    chosen = [name for name in CLASSICAL if name not in without]
    return [(Contender(name, name), (*protocols, *(raw if name in RAW_FEATURES else others))) for name in chosen]


def whole(name: str) -> Pair:
    """Fitted and scored on the same set."""
    return JobData(name), JobData(name)


def transfer(source: str, target: str, authors: bool = False) -> Pair:
    """Fitted on the accelerometer of one set and scored on that of another; unknown sets have it in front."""
    first, last = (JobData(name, transfer_channels(name, authors) or (0, 1, 2)) for name in (source, target))
    return first, last


def cross(
    suite: str,
    entries: Sequence[Entry],
    pairs: Sequence[Pair],
    seeds: Seeds,
    options: SuiteOptions,
    exceptions: Exceptions | None = None,
    precisions: Mapping[str, str] | None = None,
) -> list[Job]:
    """Make a job for every entry, pair, protocol and seed that the options let through.

    `precisions` has those of families of data sets whose trainings are not in float32.
    """
    jobs: list[Job] = []
    for entry, usual_protocols in _chosen(entries, options):
        protocols = list(options.protocols or usual_protocols)
        if entry.classical:
            protocols = [name for name in protocols if name not in MODEL_PROTOCOLS]
        entry_seeds = options.seeds or (seeds(entry) if callable(seeds) else seeds)
        schedules = options.schedules if entry.trained else ("",)

        for schedule, (source, target) in product(schedules, pairs):
            source, target = _as_asked(source, options), _as_asked(target, options)
            contender = entry
            if entry.trained:
                family = source.family or family_of(source.name) or ""
                precision = options.precision or (precisions or {}).get(family, "float32")
                contender = _trained(entry, schedule, precision, options)
            special = (exceptions or {}).get((contender.kind, stands_in_for(source.name) or source.name), {})
            contender = replace(contender, method_params=_own_params(contender, source, special))
            for name, seed in product(protocols, entry_seeds):
                jobs.append(_job(Job(suite, contender, source, target, name, seed), options))
    return jobs


def _as_asked(data: JobData, options: SuiteOptions) -> JobData:
    return replace(data, scale=options.scale, family=given_family(data.name, options))


def _job(job: Job, options: SuiteOptions) -> Job:
    """Add what the options say of steps and labelled cases, as far as the job's protocol has them."""
    protocol = every_protocol()[job.protocol]()
    is_trial = options.steps is not None and (protocol.trains or "steps" in job.contender.settings)
    steps = options.steps if protocol.trains else None
    return replace(job, steps=steps, trial=is_trial, subsets=protocol.draw_of(options.subsets))


def given_family(name: str, options: SuiteOptions) -> str | None:
    """The family that a file was given by the options; None for a data set by name, which has its own."""
    return options.family or None if is_path(name) else None


def _chosen(entries: Sequence[Entry], options: SuiteOptions) -> Sequence[Entry]:
    """Those that were asked for; no pretrained contender without the controls, and those of its preset."""
    if not options.contenders:
        return entries
    wanted = [entry for entry in entries if {entry[0].name, entry[0].kind} & set(options.contenders)]
    trained = any(contender.role in (PRETRAINED, SUPERVISED) for contender, _ in wanted)
    presets = {None, *(contender.settings.get("preset") for contender, _ in wanted)} if trained else set()
    return [
        entry
        for entry in entries
        if entry in wanted or (is_control(entry[0]) and entry[0].settings.get("preset") in presets)
    ]


def _trained(contender: Contender, schedule: str, precision: str, options: SuiteOptions) -> Contender:
    """The contender with the settings of a training."""
    steps = {} if options.steps is None else {"steps": options.steps}
    return replace(contender, settings={**contender.settings, "schedule": schedule, "precision": precision, **steps})


def _own_params(contender: Contender, source: JobData, special: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from what the method would use on this data set anyway: equal settings get equal keys."""
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


SEEDS = (1, 2, 3)
SCORED = ("ridge", "linear", "few_1pct", "few_5", "few_10", "semi_1pct", "semi_5", "semi_10", "knn_all", "clustering")
COST = "cost"  # the protocol that measures a fit
JUDGED = ("instant", "best", BEST_2026_11.name)
RIVALS = ("dicot", "tstcc", "cost", "tnc", "minirocket", *BEYOND_PAPER)
PARTS_SCORED = ("ridge", "few_5", "semi_5", "knn_all", "clustering")


def preset_contender(name: str, **settings: Any) -> Contender:
    """A preset by its own method."""
    return Contender(name, PRESETS[name].method, {}, {"preset": name, **settings})


# The controls of the box: the same encoder, features and vectors, and weights that nothing was learned by.
OF_THE_BOX = (
    Contender("instant untrained", "random", {}, {"preset": "instant"}),
    Contender("instant calibrated", "calibrated", {}, {"preset": "instant"}),
)
# "instant" with a part less or with another one. No name has a comma, so that --only takes it.
CHANGES: dict[str, dict[str, Any]] = {
    "encoder alone": {"bank": 0, "levels": False},
    "without bank": {"bank": 0},
    "without contests": {"bank": 2016},
    "without levels": {"levels": False},
    "uncompressed": {"length": 0},
    "of 128 numbers": {"length": 128},
}
VARIANTS: dict[str, Contender] = {
    one.name: one
    for one in (
        Contender("dicot", "dicot"),
        *(preset_contender(name) for name in JUDGED),
        *OF_THE_BOX,
        *(replace(preset_contender("instant", **own), name=f"instant {what}") for what, own in CHANGES.items()),
    )
}


def at_hand() -> list[str]:
    """Every archive set on this machine, the paper's large sets or what stands in for them, and SisFall."""
    here = {one.name for one in DATASETS.values() if one.is_here()}
    large = [found for name in LARGE for found in ([name] if name in here else stand_ins(name))]
    return [*(name for name in (*UCR, *UEA) if name in here), *large, *({SISFALL.name} & here)]


def best(options: SuiteOptions) -> list[Job]:
    """The presets "instant", "best" and "best-2026.11" beside methods, rivals and controls, on all sets at hand.

    What the presets and Di-COT cost is measured by fits of their own, with one seed.
    """
    options = replace(options, subsets=options.subsets or PER_SEED)  # the spread then shows the labelled cases too
    presets, others = [preset_contender(name) for name in JUDGED], [Contender(name, name) for name in RIVALS]
    entries: list[Entry] = [*((one, SCORED) for one in (*presets, *others, *OF_THE_BOX)), *controls(*SCORED)]
    pairs = [whole(name) for name in options.sets or at_hand()]
    measured: list[Entry] = [(one, (COST,)) for one in (*presets, Contender("dicot", "dicot"))]
    return [*cross("best", entries, pairs, SEEDS, options), *cross("best", measured, pairs, SEEDS[:1], options)]


def best_ablation(options: SuiteOptions) -> list[Job]:
    """The preset "instant" without one of its parts or with another one, on the sets that may be chosen on."""
    entries: list[Entry] = [(variant, PARTS_SCORED) for variant in VARIANTS.values()]
    entries += [*controls(*PARTS_SCORED), (Contender("minirocket", "minirocket"), PARTS_SCORED)]
    pairs = [whole(name) for name in options.sets or DEVELOPMENT]
    return cross("best_ablation", entries, pairs, SEEDS, replace(options, subsets=options.subsets or PER_SEED))


SUITES: dict[str, Callable[[SuiteOptions], list[Job]]] = {"best": best, "best_ablation": best_ablation}


def suite_jobs(suites: Sequence[str], options: SuiteOptions) -> list[Job]:
    makers = [lookup(SUITES, name, "suite") for name in suites]
    for names, known, what in (
        (filter(None, (options.precision,)), PRECISIONS, "precision"),
        (options.schedules, SCHEDULES, "schedule"),
        (options.protocols, every_protocol(), "protocol"),
        (filter(None, (options.family,)), FAMILIES, "family"),
        (filter(None, (options.subsets,)), SUBSETS, "choice of subsets"),
        (filter(None, (options.channels,)), (AUTHORS,), "choice of channels"),
    ):
        for name in names:
            lookup(dict.fromkeys(known), name, what)
    check_policies("error", options.scale)
    if options.family and not any(map(is_path, options.sets)):
        raise InputError(
            f"A family ({options.family}) is for files, which have none. Give files as sets, or leave it out."
        )
    options = replace(options, sets=tuple(map(spelled, options.sets)))
    everyone = [job.contender for make in makers for job in make(replace(options, contenders=(), protocols=()))]
    known_names = {name for contender in everyone for name in (contender.name, contender.kind)}
    for name in options.contenders:
        if name not in known_names:
            raise InputError(f"No contender {name!r} in {', '.join(suites)}. {did_you_mean(name, known_names)}")
    jobs = [job for make in makers for job in make(options)]
    if not jobs:
        raise InputError(f"Nothing is left of {', '.join(suites)} with these options. Use fewer of them.")
    return jobs
