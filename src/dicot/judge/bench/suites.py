"""The suites by name, and the jobs of those that a user asks for."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dicot.core.errors import InputError, did_you_mean, lookup
from dicot.data.conversion import check_policies
from dicot.data.datasets import is_path, spelled
from dicot.judge.bench import best_suite
from dicot.judge.bench.crossing import SuiteOptions
from dicot.judge.evaluation.jobs import Job
from dicot.judge.evaluation.model_protocols import every_protocol
from dicot.judge.protocols import SUBSETS
from dicot.train.recipe import FAMILIES, PRECISIONS, SCHEDULES

# The suites of the paper are added by dicot.paper.suites.
SUITES: dict[str, Callable[[SuiteOptions], list[Job]]] = {
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
        lookup(every_protocol(), name, "protocol")
