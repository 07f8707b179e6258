"""What `dicot paper --run` runs: the jobs of its suites, on stand-ins where a set is not at hand, cheapest first."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

from dicot.data.datasets import card, is_here, is_path, stand_ins, stands_in_for
from dicot.judge.bench.suites import SuiteOptions, suite_jobs
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.result import Result
from dicot.paper.suites import EXCEPTIONS, MAPPED


def cheapest_first(units: Iterable[Unit]) -> list[Unit]:
    """Order units by the size of their data set, so that much is there early; a data set is still loaded once."""

    def cost(unit: Unit) -> tuple[int, str]:
        name = unit.first.source.name
        facts = None if is_path(name) else card(name)
        return (0 if facts is None else facts.n_train * (facts.n_times or 1)), name

    return sorted(units, key=cost)


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
        special = EXCEPTIONS.get((kind, stands_in_for(one.source) or one.source), {})
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
    found = (one for name in MAPPED for one in ([name] if is_here(name) else stand_ins(name)))
    return next(found, None)
