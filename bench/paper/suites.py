"""The paper's experiments: its variants, data sets and seeds, every table and figure as a suite of jobs, stand-ins."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from bench import suites as who
from bench.datasets import stand_ins, transfer_channels
from bench.datasets.names import LARGE
from bench.suites import SUITES, Entry, Pair, SuiteOptions, suite_jobs, whole
from dicot.data.datasets import DATASETS, card, family_of, is_here, is_path, spelled
from dicot.data.datasets.names import UCR, UEA
from dicot.judge.classical import BEYOND_PAPER
from dicot.judge.evaluation.contenders import Contender
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.protocols import every_protocol
from dicot.judge.protocols.base import AUTHORS
from dicot.model.controls import CONTROLS

PAPER_METHOD = "dicot"
# Whose cost grows with the square of the batch; without chunks, as the authors run it, its memory does too (D-33).
SCALED: dict[str, tuple[str, dict[str, Any]]] = {
    PAPER_METHOD: (PAPER_METHOD, {}),
    "catt": ("catt", {}),
    "catt without chunks": ("catt", {"chunked": False}),
}
BATCH_SIZES = (8, 16, 32, 64, 128, 256, 512)
SCALING_STEPS = 50  # what a step costs does not need a whole run
TIMING = "cost"  # the protocol that measures it

FIVE_SEEDS = (1, 2, 3, 4, 5)
ONE_SEED = (1,)
REPEATED = (PAPER_METHOD, "catt", "ts2vec", *CONTROLS)  # on the archives, where all others have one seed
PRECISION = {"large": "tf32"}  # of trainings by family; float32 on the archives, as the paper's
ONCE = ("ablation", "extended_ablation", "positive_selection")  # on stand-ins with one seed: the archives decide
SMOKE_STEPS = 10
# TNC with its own neighbourhoods (D-18): 24 tests for each channel of a case, on sets with few of them, and short ones.
TESTED, TESTED_CHANNELS, TESTED_TIMES = ("tnc with ADF", "tnc", {"adf": True}), 100, 640
KNN = ("knn_5", "knn_10", "knn_50", "knn_100", "knn_500")

# The paper leaves out the sets with missing values (UCR) and two of the largest (UEA): 124 and 28 remain.
_NOT_UCR = {"DodgerLoopDay", "DodgerLoopGame", "DodgerLoopWeekend", "MelbournePedestrian"}
_NOT_UEA = {"InsectWingbeat", "EigenWorms"}
PAPER_UCR = tuple(name for name in UCR if name not in _NOT_UCR)
PAPER_UEA = tuple(name for name in UEA if name not in _NOT_UEA)
FULL = tuple("ecg-full" if name == "ecg" else name for name in LARGE)  # for neighbours, all windows of a record count
TRANSFERS = (("harth", "pamap2-paper"), ("harth", "wisdm2"), ("wisdm2", "pamap2-paper"), ("wisdm2", "harth"))
SCALING = ("harth",)
MAPPED_BY = "clustering"  # whose contenders are mapped: every method, the supervised one, the controls
MAPPED = ("skoda-paper", "harth", "wisdm2")  # whose embeddings are mapped: the paper's, or else other movements
# Without a download and small: what the library makes itself, and a set that comes with it.
TINY = ("synthetic", "ItalyPowerDemand")

# What the paper sets for one data set, and for what stands in for it, beside what it sets for a family.
EXCEPTIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("catt", name): {"temperature": 0.5} for name in ("ecg", "ecg-fixed", "ecg-full")
}

# The rows of the paper's tables, under its own names.
ABLATION: dict[str, dict[str, Any]] = {
    "dicot": {},
    "w/o Overlap": {"overlap": 0.0},
    "w/o Temperature": {"temperature": 1.0},
    "Uniform Splits Sampling -> Global Fixed Splits": {"k": 10},
    "Preceding Sub-block Contrast -> Next Sub-block Contrast": {"positive": "next"},
    "Preceding Sub-block Contrast -> Shuffled Sub-block Contrast": {"positive": "shuffled"},
    "+ Non-linear Projection": {"projection": True},
    "InceptionTime -> FCN": {"encoder": "fcn"},
    "InceptionTime -> ResNet": {"encoder": "resnet"},
}
EXTENDED: dict[str, dict[str, Any]] = {
    **{f"Temperature \\tau -> {value}": {"temperature": value} for value in (0.07, 0.1, 0.5, 1.0)},
    **{f"Overlap -> {value:.0%}": {"overlap": value} for value in (0.0, 0.25, 0.5, 0.75)},
    **{f"Global Fixed Splits (k) -> {k}": {"k": k} for k in (2, 5, 10, 15)},
    **{f"Uniform Splits Sampling (k_{{max}}) -> {k}": {"k": (2, k)} for k in (5, 10, 15, 20)},
}
POSITIVES: dict[str, dict[str, Any]] = {
    "Preceding Sub-block": {"positive": "previous"},
    "Next Sub-block": {"positive": "next"},
    "Bidirectional (Preceding + Next)": {"positive": "both"},
}

# What the library compares and the paper does not: its tables stay the paper's. What a user registers takes part.
NOT_IN_PAPER = ("across", *BEYOND_PAPER)

cross = partial(who.cross, exceptions=EXCEPTIONS, precisions=PRECISION)


def archive_seeds(one: Contender) -> tuple[int, ...]:
    """Three seeds for those whose differences are small, so that these can be told from chance."""
    return FIVE_SEEDS[:3] if one.name in REPEATED else ONE_SEED


def smoke(options: SuiteOptions) -> list[Job]:
    """Every method and control, the paper's baselines, every protocol: tiny data, ten steps. Shows that code runs."""
    options = replace(options, steps=options.steps or SMOKE_STEPS)
    protocols = tuple(name for name, make in every_protocol().items() if not make().alone)
    baselines = who.classical(*protocols, without=NOT_IN_PAPER)
    everyone = [*who.methods(*protocols, labelled=True), *who.controls(*protocols), *baselines]
    pairs = [whole(name) for name in options.sets or TINY]
    # Once each: a transfer, and a timed run with the schedule of the authors' code.
    first, last = (replace(pairs[end][0], channels=(0,)) for end in (0, -1))
    moved = _variants({PAPER_METHOD: {}}, "linear")
    alone = (name for name in every_protocol() if name not in protocols)
    timed = [(Contender(PAPER_METHOD, PAPER_METHOD), ("linear", *alone))]
    return [
        *cross("smoke", everyone, pairs, ONE_SEED, options),
        *cross("smoke", moved, [(first, last)], ONE_SEED, options),
        *cross("smoke", timed, pairs[:1], ONE_SEED, replace(options, schedules=("per_epoch",))),
    ]


def large(options: SuiteOptions) -> list[Job]:
    """Linear probes on the six large sets, beside training end to end with all labels."""
    return cross("large", [*_probed(), *_end_to_end("finetune-100")], _large(options), FIVE_SEEDS, options)


def low_label(options: SuiteOptions) -> list[Job]:
    """The same with one label in a hundred; the paper's forest, which scores its MiniRocket too, has as many."""
    baselines = who.classical("few_1pct", "forest_1pct", without=NOT_IN_PAPER)
    entries = [*_compared("few_1pct"), *baselines, *_end_to_end("finetune-1")]
    return cross("low_label", entries, _large(options), FIVE_SEEDS, options)


def knn(options: SuiteOptions) -> list[Job]:
    """One nearest neighbour among 5 to 500 labelled cases per class."""
    return cross("knn", _compared(*KNN), _large(options, FULL), FIVE_SEEDS, options)


def clustering(options: SuiteOptions) -> list[Job]:
    """k-means on the embeddings, also those of an encoder that was trained with labels."""
    return cross("clustering", _compared("clustering", labelled=True), _large(options), FIVE_SEEDS, options)


def transfer(options: SuiteOptions) -> list[Job]:
    """Fitted on one set's accelerometer, scored on another's."""
    return cross("transfer", _compared("linear"), _crossed(options), FIVE_SEEDS, options)


def ucr(options: SuiteOptions) -> list[Job]:
    """Linear probes on the univariate archive."""
    return _on_archive("ucr", _archive(options, PAPER_UCR, "uea"), options)


def uea(options: SuiteOptions) -> list[Job]:
    """Linear probes on the multivariate archive."""
    return _on_archive("uea", _archive(options, PAPER_UEA, "ucr"), options)


def ablation(options: SuiteOptions) -> list[Job]:
    """Di-COT without one of its parts, or with another one."""
    return _everywhere("ablation", _variants(ABLATION, "linear"), options)


def extended_ablation(options: SuiteOptions) -> list[Job]:
    """Di-COT's temperature, overlap and numbers of sub-blocks."""
    return _everywhere("extended_ablation", _variants(EXTENDED, "linear"), options)


def positive_selection(options: SuiteOptions) -> list[Job]:
    """Which neighbour is the positive one, by every protocol of the paper."""
    on_large = _variants(POSITIVES, "linear", "few_1pct", "knn_500", "clustering")
    elsewhere = _variants(POSITIVES, "linear")
    jobs = _everywhere("positive_selection", on_large, options, elsewhere)
    moved = [pair for pair in _crossed(options) if all(transfer_channels(data.name) for data in pair)]
    return [*jobs, *cross("positive_selection", elsewhere, moved, FIVE_SEEDS, options)]


def batch_scaling(options: SuiteOptions) -> list[Job]:
    """Time and memory of a step against the batch size; the controls show what fitting takes without any step."""
    entries = [
        (Contender(name, kind, params, {"batch_size": size, "steps": SCALING_STEPS}), (TIMING,))
        for name, (kind, params) in SCALED.items()
        for size in BATCH_SIZES
    ]
    return cross("batch_scaling", [*entries, *who.controls(TIMING)], _large(options, SCALING), ONE_SEED, options)


def _compared(*protocols: str, labelled: bool = False) -> list[Entry]:
    """The paper's methods and what a user registered, beside the controls."""
    return [*who.methods(*protocols, labelled=labelled, without=NOT_IN_PAPER), *who.controls(*protocols)]


def _variants(rows: Mapping[str, Mapping[str, Any]], *protocols: str) -> list[Entry]:
    """Di-COT with other parameters or another encoder, beside the controls."""
    own = []
    for name, row in rows.items():
        encoder, params = ({key: row[key] for key in row if (key == "encoder") == wanted} for wanted in (True, False))
        own.append((Contender(name, PAPER_METHOD, params, encoder), protocols))
    return [*own, *who.controls(*protocols)]


def _end_to_end(protocol: str) -> list[Entry]:
    """Fine-tuning an encoder that nothing was done to is training it from scratch with labels."""
    return [(Contender("end-to-end", "random"), (protocol,))]


def _probed() -> list[Entry]:
    baselines = who.classical("linear", raw=("forest",), others=("ridge",), without=NOT_IN_PAPER)
    return [*_compared("linear"), *baselines]


def _on_archive(suite: str, pairs: list[Pair], options: SuiteOptions) -> list[Job]:
    """Everybody on these sets, and TNC as its authors run it where its tests end within minutes."""
    sizes = ((pair, known.sizes) for pair in pairs if (known := DATASETS.registered(pair[0].name)) is not None)
    short = [(pair, own) for pair, own in sizes if own and (own.n_times or 0) <= TESTED_TIMES]
    few = [pair for pair, own in short if (own.n_train or math.inf) * (own.n_channels or 1) <= TESTED_CHANNELS]
    jobs = cross(suite, _probed(), pairs, archive_seeds, options)
    return [*jobs, *cross(suite, [(Contender(*TESTED), ("linear",))], few, ONE_SEED, options)]


def _archive(options: SuiteOptions, own: Sequence[str], other: str) -> list[Pair]:
    """What the paper uses of an archive, or the given sets as far as they are not of the other one."""
    return [
        whole(name) for name in options.sets or own if (who.given_family(name, options) or family_of(name)) != other
    ]


def _large(options: SuiteOptions, names: Sequence[str] = LARGE) -> list[Pair]:
    return [whole(name) for name in options.sets or names]


def _crossed(options: SuiteOptions) -> list[Pair]:
    """The paper's pairs, or every pair among the given sets."""
    pairs = [(a, b) for a in options.sets for b in options.sets if a != b]
    authors = options.channels == AUTHORS
    return [who.transfer(source, target, authors) for source, target in (pairs if options.sets else TRANSFERS)]


def _everywhere(
    suite: str, entries: list[Entry], options: SuiteOptions, on_archives: list[Entry] | None = None
) -> list[Job]:
    """On the large sets, and where no others were asked for on both archives, perhaps with other entries."""
    archives = [] if options.sets else [whole(name) for name in (*PAPER_UCR, *PAPER_UEA)]
    jobs = cross(suite, entries, _large(options), FIVE_SEEDS, options)
    return [*jobs, *cross(suite, on_archives or entries, archives, ONE_SEED, options)]


_ALL = (smoke, large, low_label, knn, clustering, transfer, ucr, uea, ablation, extended_ablation)
SUITES |= {jobs.__name__: jobs for jobs in (*_ALL, positive_selection, batch_scaling)}


def cheapest_first(units: Iterable[Unit]) -> list[Unit]:
    """Order units by the size of their data set, so that much is there early; a data set is still loaded once."""

    def cost(unit: Unit) -> tuple[int, str]:
        name = unit.first.source.name
        facts = None if is_path(name) else card(name)
        return (0 if facts is None else facts.n_train * (facts.n_times or 1)), name

    return sorted(units, key=cost)


def with_stand_ins(suites: Sequence[str], options: SuiteOptions) -> list[Job]:
    """The jobs of these suites, and where one of the paper's sets is not at hand also those on what stands in for it.

    Where the options name data sets, only the jobs on these; of those that have none, what every suite makes of them.
    """
    named, jobs = set(map(spelled, options.sets)), suite_jobs(suites, replace(options, sets=()))
    for suite in suites:
        own = {(job.source.name, job.target.name) for job in jobs if job.suite == suite}
        used = {name: [name] if is_here(name) else stand_ins(name) for place in own for name in place}
        places = {place for source, target in own for place in product(used[source], used[target])} - own
        if places:
            sets = tuple(sorted({name for place in places for name in place}))
            seeds = options.seeds or (ONE_SEED if suite in ONCE else ())
            more = suite_jobs([suite], replace(options, sets=sets, seeds=seeds))
            jobs += [job for job in more if (job.source.name, job.target.name) in places]
    if not named:
        return jobs
    jobs = [job for job in jobs if {job.source.name, job.target.name} <= named]
    others = named - {name for job in jobs for name in (job.source.name, job.target.name)}
    return [*jobs, *(suite_jobs(suites, replace(options, sets=tuple(sorted(others)))) if others else [])]


def maps_set() -> str | None:
    """The data set whose embeddings are mapped: the paper's, or one at hand in its place; None without any."""
    found = (one for name in MAPPED for one in ([name] if is_here(name) else stand_ins(name)))
    return next(found, None)
