"""The suites by name, and the jobs of those that a user asks for."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product

from dicot.core.errors import InputError, did_you_mean, lookup
from dicot.data.conversion import check_policies
from dicot.data.datasets import is_here, is_path, spelled, stand_ins, stands_in_for
from dicot.judge.bench import best_suite
from dicot.judge.bench.crossing import SuiteOptions
from dicot.judge.evaluation.jobs import Job
from dicot.judge.evaluation.model_protocols import every_protocol
from dicot.judge.evaluation.result import Result
from dicot.judge.protocols import SUBSETS, find_protocol
from dicot.paper import suites as paper

SUITES: dict[str, Callable[[SuiteOptions], list[Job]]] = {
    "smoke": paper.smoke,
    "large": paper.large,
    "low_label": paper.low_label,
    "knn": paper.knn,
    "clustering": paper.clustering,
    "transfer": paper.transfers,
    "ucr": paper.ucr,
    "uea": paper.uea,
    "ablation": paper.ablation,
    "extended_ablation": paper.extended_ablation,
    "positive_selection": paper.positive_selection,
    "batch_scaling": paper.batch_scaling,
    "best": best_suite.best,
    "best_ablation": best_suite.best_ablation,
}


def suite_jobs(suites: Sequence[str], options: SuiteOptions) -> list[Job]:
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


def _check_names(options: SuiteOptions) -> None:
    from dicot.train.recipe import FAMILIES, PRECISIONS, SCHEDULES

    lookup(dict.fromkeys(PRECISIONS), options.precision, "precision")
    if options.family:
        lookup(dict.fromkeys(FAMILIES), options.family, "family")
        if not any(is_path(name) for name in options.sets):
            raise InputError(
                f"A family ({options.family}) is for files, which have none. Give files as sets, or leave it out."
            )
    check_policies("error", options.scale)
    if options.subsets:
        lookup(dict.fromkeys(SUBSETS), options.subsets, "choice of subsets")
    for name in options.schedules:
        lookup(dict.fromkeys(SCHEDULES), name, "schedule")
    for name in options.protocols:
        find_protocol(every_protocol(), name)


def with_stand_ins(suites: Sequence[str], options: SuiteOptions) -> list[Job]:
    """The jobs of these suites, and where one of the paper's sets is not at hand also those on what stands in for it.

    Where the options name data sets, these are the sets and nothing stands in.
    """
    jobs = suite_jobs(suites, options)
    if options.sets:
        return jobs
    more: list[Job] = []
    for suite in suites:
        own = {(job.source.name, job.target.name) for job in jobs if job.suite == suite}
        used = {name: [name] if is_here(name) else stand_ins(name) for place in own for name in place}
        places = {place for source, target in own for place in product(used[source], used[target])} - own
        if places:
            sets = tuple(sorted({name for place in places for name in place}))
            wanted = suite_jobs([suite], replace(options, sets=sets))
            more += [job for job in wanted if (job.source.name, job.target.name) in places]
    return [*jobs, *more]


def outdated(results: Iterable[Result]) -> dict[str, str]:
    """Say by key which rows lack what a row made today has.

    That is what the paper sets for their data set alone, or the recipe of an encoder that a protocol trains.
    """
    out = {}
    for one in results:
        kind = json.loads(one.config or "{}").get("kind", "")
        special = paper.EXCEPTIONS.get((kind, stands_in_for(one.source) or one.source), {})
        recipe = json.loads(one.recipe)
        used = recipe.get("method_params", special)
        wrong = [f"{name} {used.get(name)}, not {value}" for name, value in special.items() if used.get(name) != value]
        if wrong:
            out[one.key] = f"{one.contender} on {one.source} ({', '.join(wrong)}; that command runs it anew)"
        elif one.protocol.startswith("finetune") and not recipe and one.error is None:
            out[one.key] = f"{one.contender} on {one.source} (recipe not recorded)"
    return out


def maps_set() -> str | None:
    """The data set whose embeddings are mapped: the paper's, or one at hand in its place; None without any."""
    found = (one for name in paper.MAPPED for one in ([name] if is_here(name) else stand_ins(name)))
    return next(found, None)
