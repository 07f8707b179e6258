"""The suites: every table and figure of the paper as a list of jobs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dicot.bench import contenders as who
from dicot.bench.contenders import Entry
from dicot.bench.crossing import Options, Pair, cross
from dicot.bench.jobs import Job
from dicot.bench.model_protocols import every_protocol
from dicot.bench.sets import LARGE, PAPER_UCR, PAPER_UEA, SCALING, TINY, TRANSFERS, family_of, spelled, transfer, whole
from dicot.errors import InputError, did_you_mean, lookup
from dicot.protocols import find_protocol

FIVE_SEEDS = (1, 2, 3, 4, 5)
ONE_SEED = (1,)
SMOKE_STEPS = 10
KNN = ("knn_5", "knn_10", "knn_50", "knn_100", "knn_500")


def smoke(options: Options) -> list[Job]:
    """Every contender and every protocol on tiny data with ten steps: shows that the code runs."""
    options = replace(options, steps=options.steps or SMOKE_STEPS)
    protocols = tuple(name for name in every_protocol() if name != "cost")
    everyone = [*who.methods(*protocols, labelled=True), *who.controls(*protocols), *who.classical(*protocols)]
    pairs = [whole(name) for name in options.sets or TINY]
    # Once each: a transfer, and a timed run with the schedule of the authors' code.
    first, last = (replace(pairs[end][0], channels=(0,)) for end in (0, -1))
    moved = [*who.variants({"dicot": {}}, "linear"), *who.controls("linear")]
    timed, per_epoch = who.variants({"dicot": {}}, "linear", "cost"), replace(options, schedules=("per_epoch",))
    return [
        *cross("smoke", everyone, pairs, ONE_SEED, options),
        *cross("smoke", moved, [(first, last)], ONE_SEED, options),
        *cross("smoke", timed, pairs[:1], ONE_SEED, per_epoch),
    ]


def large(options: Options) -> list[Job]:
    """Linear probes on the six large sets, beside training end to end with all labels."""
    return cross("large", [*_probed(), *who.end_to_end("finetune-100")], _large(options), FIVE_SEEDS, options)


def low_label(options: Options) -> list[Job]:
    """The same with one label in a hundred."""
    entries = [*who.methods("few_1pct"), *who.controls("few_1pct"), *who.classical("few_1pct")]
    return cross("low_label", [*entries, *who.end_to_end("finetune-1")], _large(options), FIVE_SEEDS, options)


def knn(options: Options) -> list[Job]:
    """One nearest neighbour among 5 to 500 labelled cases per class."""
    return cross("knn", [*who.methods(*KNN), *who.controls(*KNN)], _large(options), FIVE_SEEDS, options)


def clustering(options: Options) -> list[Job]:
    """k-means on the embeddings, also those of an encoder that was trained with labels."""
    entries = [*who.methods("clustering", labelled=True), *who.controls("clustering")]
    return cross("clustering", entries, _large(options), FIVE_SEEDS, options)


def transfers(options: Options) -> list[Job]:
    """Fitted on one set's accelerometer, scored on another's."""
    return cross("transfer", [*who.methods("linear"), *who.controls("linear")], _crossed(options), FIVE_SEEDS, options)


def ucr(options: Options) -> list[Job]:
    """Linear probes on the univariate archive."""
    return cross("ucr", _probed(), _archive(options, PAPER_UCR, "uea"), ONE_SEED, options)


def uea(options: Options) -> list[Job]:
    """Linear probes on the multivariate archive."""
    return cross("uea", _probed(), _archive(options, PAPER_UEA, "ucr"), ONE_SEED, options)


def ablation(options: Options) -> list[Job]:
    """Di-COT without one of its parts, or with another one."""
    entries = [*who.variants(who.ABLATION, "linear"), *who.backbones("linear"), *who.controls("linear")]
    return _everywhere("ablation", entries, options)


def extended_ablation(options: Options) -> list[Job]:
    """Di-COT's temperature, overlap and numbers of sub-blocks."""
    return _everywhere("extended_ablation", [*who.variants(who.EXTENDED, "linear"), *who.controls("linear")], options)


def positive_selection(options: Options) -> list[Job]:
    """Which neighbour is the positive one, by every protocol of the paper."""
    protocols = ("linear", "few_1pct", "knn_500", "clustering")
    on_large = [*who.variants(who.POSITIVES, *protocols), *who.controls(*protocols)]
    elsewhere = [*who.variants(who.POSITIVES, "linear"), *who.controls("linear")]
    suite = "positive_selection"
    if options.sets:
        return cross(suite, on_large, _large(options), FIVE_SEEDS, options)
    archives = [whole(name) for name in (*PAPER_UCR, *PAPER_UEA)]
    return [
        *cross(suite, on_large, _large(options), FIVE_SEEDS, options),
        *cross(suite, elsewhere, archives, ONE_SEED, options),
        *cross(suite, elsewhere, _crossed(options), FIVE_SEEDS, options),
    ]


def batch_scaling(options: Options) -> list[Job]:
    """What a step costs against the batch size; the controls show what fitting costs without any step."""
    entries = [*who.batch_sizes("cost"), *who.controls("cost")]
    return cross("batch_scaling", entries, [whole(name) for name in options.sets or SCALING], ONE_SEED, options)


SUITES: dict[str, Callable[[Options], list[Job]]] = {
    "smoke": smoke,
    "large": large,
    "low_label": low_label,
    "knn": knn,
    "clustering": clustering,
    "transfer": transfers,
    "ucr": ucr,
    "uea": uea,
    "ablation": ablation,
    "extended_ablation": extended_ablation,
    "positive_selection": positive_selection,
    "batch_scaling": batch_scaling,
}


def suite_jobs(suites: Sequence[str], options: Options) -> list[Job]:
    """The jobs of all these suites."""
    makers = [lookup(SUITES, name, "suite") for name in suites]
    _check_names(options)
    options = replace(options, sets=tuple(spelled(name) for name in options.sets))
    everyone = [job.contender for make in makers for job in make(replace(options, contenders=(), protocols=()))]
    known = {name for contender in everyone for name in (contender.name, contender.kind)}
    for name in options.contenders:
        if name not in known:
            raise InputError(f"No contender {name!r} in {', '.join(suites)}. {did_you_mean(name, known)}")
    jobs = [job for make in makers for job in make(options)]
    if not jobs:
        raise InputError(f"Nothing is left of {', '.join(suites)} with these options. Use fewer of them.")
    return jobs


def _check_names(options: Options) -> None:
    from dicot.train.recipe import PRECISIONS, SCHEDULES

    lookup(dict.fromkeys(PRECISIONS), options.precision, "precision")
    for name in options.schedules:
        lookup(dict.fromkeys(SCHEDULES), name, "schedule")
    for name in options.protocols:
        find_protocol(every_protocol(), name)


def _probed() -> list[Entry]:
    baselines = who.classical("linear", rocket=("ridge",), raw=("forest",))
    return [*who.methods("linear"), *who.controls("linear"), *baselines]


def _archive(options: Options, own: Sequence[str], other: str) -> list[Pair]:
    """What the paper uses of an archive, or the given sets as far as they are not of the other one."""
    return [whole(name) for name in options.sets or own if family_of(name) != other]


def _large(options: Options) -> list[Pair]:
    return [whole(name) for name in options.sets or LARGE]


def _crossed(options: Options) -> list[Pair]:
    """The paper's pairs, or every pair among the given sets."""
    given = [(a, b) for a in options.sets for b in options.sets if a != b]
    return [transfer(source, target) for source, target in (given if options.sets else TRANSFERS)]


def _everywhere(suite: str, entries: list[Entry], options: Options) -> list[Job]:
    if options.sets:
        return cross(suite, entries, _large(options), FIVE_SEEDS, options)
    archives = [whole(name) for name in (*PAPER_UCR, *PAPER_UEA)]
    return [
        *cross(suite, entries, _large(options), FIVE_SEEDS, options),
        *cross(suite, entries, archives, ONE_SEED, options),
    ]
