"""Suites of jobs: contenders x data sets x seeds, narrowed or changed by the options of a run.

The suites of the preset "best" are here; those of the paper are added by dicot.paper.suites.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from dicot.core.errors import InputError, did_you_mean, lookup
from dicot.data.conversion import check_policies
from dicot.data.datasets import DATASETS, family_of, is_path, spelled, stand_ins, stands_in_for, transfer_channels
from dicot.data.datasets.names import DEVELOPMENT, LARGE, UCR, UEA
from dicot.judge.classical import BEYOND_PAPER, CLASSICAL, RAW_FEATURES
from dicot.judge.evaluation.contenders import Contender
from dicot.judge.evaluation.jobs import Job, JobData
from dicot.judge.protocols import MODEL_PROTOCOLS, every_protocol
from dicot.judge.protocols.base import PER_SEED, SUBSETS
from dicot.methods import METHODS
from dicot.model.controls import CONTROLS
from dicot.model.presets import find_preset
from dicot.train.recipe import FAMILIES, PRECISIONS, SCHEDULES

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
    chosen = [name for name, kind in METHODS.items() if name not in without and (labelled or not kind.needs_labels)]
    return [(Contender(name, name), protocols) for name in chosen]


def controls(*protocols: str) -> list[Entry]:
    return [(Contender(name, name), protocols) for name in CONTROLS]


def classical(
    *protocols: str, raw: tuple[str, ...] = (), others: tuple[str, ...] = (), without: Sequence[str] = ()
) -> list[Entry]:
    """Every baseline, but for some; raw features and all others may have protocols of their own beside everybody's."""
    chosen = [name for name in CLASSICAL if name not in without]
    return [(Contender(name, name), (*protocols, *(raw if name in RAW_FEATURES else others))) for name in chosen]


def whole(name: str) -> Pair:
    """Fitted and scored on the same set."""
    return JobData(name), JobData(name)


def transfer(source: str, target: str) -> Pair:
    """Fitted on the accelerometer of one set and scored on that of another; unknown sets have it in front."""
    first, last = (JobData(name, transfer_channels(name) or (0, 1, 2)) for name in (source, target))
    return first, last


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
            one = replace(contender, method_params=_own_params(contender, source, special))
            for protocol, seed in product(protocols, options.seeds or seeds):
                trains, draw = made[protocol].trains, made[protocol].draw_of(options.subsets)
                steps = options.steps if trains else None
                trial = options.steps is not None and (trains or "steps" in contender.settings)
                jobs.append(Job(suite, one, source, target, protocol, seed, steps, trial, subsets=draw))
    return jobs


def given_family(name: str, options: SuiteOptions) -> str | None:
    """The family that a file was given by the options; None for a data set by name, which has its own."""
    return options.family or None if is_path(name) else None


def _chosen(entries: Sequence[Entry], options: SuiteOptions) -> Sequence[Entry]:
    """Those that were asked for; no trained contender without its controls."""
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
METHOD = "across"  # the preset's own
SCORED = ("ridge", "linear", "few_1pct", "few_5", "few_10", "semi_1pct", "semi_5", "semi_10", "knn_all", "clustering")
COST = "cost"  # the protocol that measures a fit
RIVALS = ("dicot", "tstcc", "cost", "tnc", "minirocket", *BEYOND_PAPER)

PARTS_SCORED = ("ridge", "linear", "few_5", "semi_5", "clustering")
VIEWS = ("noise", "scale", "offset", "mask", "crop", "channel_drop")
BARE: dict[str, Any] = {"pooling": "mean", "calibrate": False, "bank": 0, "n_components": 0}


def _best(name: str, params: dict[str, Any] | None = None, method: str = METHOD, **settings: Any) -> Contender:
    return Contender(name, method, params or {}, {"preset": "best", **settings})


# From the paper's method to the preset, then the preset with a part less, and with another one. No name has a comma,
# so that --only takes it.
VARIANTS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender("dicot", "dicot"),
        Contender("best method alone", METHOD),  # the paper's recipe and pooling
        _best("best without rich features", **BARE),
        _best("best by dicot", method="dicot"),  # the paper's method, everything else is the preset's
        _best("best untrained", method="calibrated"),
        _best("best"),
        *(_best(f"best without {view}", {view: 0.0}) for view in VIEWS),
        _best("best at tau 0.1", {"temperature": 0.1}),
        _best("best at tau 0.5", {"temperature": 0.5}),
        _best("best by batches of 32", batch_size=32),
        _best("best by the mean", pooling="mean"),
        _best("best without bank", bank=0),
        _best("best with a bank of 2016", bank=2016),
        _best("best without compression", n_components=0),
        _best("best with calibration", calibrate=True),
    )
}


def at_hand() -> list[str]:
    """Every archive set on this machine, and the paper's large sets or what stands in for them."""
    here = {one.name for one in DATASETS.values() if one.is_here()}
    large = [found for name in LARGE for found in ([name] if name in here else stand_ins(name))]
    return [*(name for name in (*UCR, *UEA) if name in here), *large]


def best(options: SuiteOptions) -> list[Job]:
    """The preset "best" beside Di-COT, rivals, controls and baselines on all sets at hand, by ten protocols.

    What the preset and Di-COT cost is measured by fits of their own, with one seed.
    """
    options = replace(options, subsets=options.subsets or PER_SEED)  # the spread then shows the labelled cases too
    entries: list[Entry] = [(_best("best"), SCORED), *((Contender(name, name), SCORED) for name in RIVALS)]
    pairs = [whole(name) for name in options.sets or at_hand()]
    measured: list[Entry] = [(_best("best"), (COST,)), (Contender("dicot", "dicot"), (COST,))]
    return [
        *cross("best", [*entries, *controls(*SCORED)], pairs, SEEDS, options),
        *cross("best", measured, pairs, SEEDS[:1], options),
    ]


def best_ablation(options: SuiteOptions) -> list[Job]:
    """The preset "best" without one of its parts or with another one, on the sets that may be chosen on."""
    entries: list[Entry] = [(variant, PARTS_SCORED) for variant in VARIANTS.values()]
    entries += [*controls(*PARTS_SCORED), (Contender("minirocket", "minirocket"), PARTS_SCORED)]
    pairs = [whole(name) for name in options.sets or DEVELOPMENT]
    return cross("best_ablation", entries, pairs, SEEDS, replace(options, subsets=options.subsets or PER_SEED))


SUITES: dict[str, Callable[[SuiteOptions], list[Job]]] = {"best": best, "best_ablation": best_ablation}


def suite_jobs(suites: Sequence[str], options: SuiteOptions) -> list[Job]:
    """The jobs of all these suites."""
    makers = [lookup(SUITES, name, "suite") for name in suites]
    for names, known, what in (
        ((options.precision,), PRECISIONS, "precision"),
        (options.schedules, SCHEDULES, "schedule"),
        (options.protocols, every_protocol(), "protocol"),
        (filter(None, (options.family,)), FAMILIES, "family"),
        (filter(None, (options.subsets,)), SUBSETS, "choice of subsets"),
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
