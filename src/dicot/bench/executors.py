"""How units are carried out: in this process, in a pool of processes, or several at once on a GPU."""

import os
from collections.abc import Sequence
from pathlib import Path

from dicot.bench.fits import Site, is_alone
from dicot.bench.jobs import Unit
from dicot.bench.loading import family
from dicot.bench.workers import OnJob, Task, run_in_pool, run_in_process

GROUP = 64  # units that are trained by one call on a GPU
FILLS_A_GPU = ("large",)  # families whose runs gain nothing from others beside them


def default_workers() -> int:
    """A process per core."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def site_for(ledger: Path, device: str) -> Site:
    """The site of a run; a GPU fits several units at once."""
    from dicot.train.many import AT_ONCE

    return Site(device, ledger.with_suffix(".work"), AT_ONCE if device.startswith("cuda") else 1)


def execute(units: Sequence[Unit], ledger: Path, site: Site, workers: int, on_job: OnJob) -> None:
    """Run all units; `on_job` is told of every job that was recorded."""
    alone = [unit for unit in units if is_alone(unit)]
    others = [unit for unit in units if not is_alone(unit)]
    if site.at_once > 1:
        fit_here_score_beside(others, ledger, site, workers, on_job)
    elif workers > 1 and len(others) > 1:
        run_in_pool([(unit,) for unit in others], workers, ledger, site, on_job)
    else:
        run_in_process([(unit,) for unit in others], ledger, site, on_job)
    run_in_process([(unit,) for unit in alone], ledger, site, on_job)
    if site.work.is_dir() and not any(site.work.iterdir()):
        site.work.rmdir()


def fit_here_score_beside(units: Sequence[Unit], ledger: Path, site: Site, workers: int, on_job: OnJob) -> None:
    """This process trains and embeds, several units at once; processes beside it score, and fit what needs no GPU."""
    from dicot.bench.scorers import Scorers
    from dicot.classical import CLASSICAL
    from dicot.gpu.device import host_threads

    with Scorers(workers, ledger, site, on_job) as scorers, host_threads(max(1, default_workers() - workers)):
        for unit in units:
            if unit.first.contender.kind in CLASSICAL:
                scorers.submit(unit)
        here = [unit for unit in units if unit.first.contender.kind not in CLASSICAL]
        run_in_process(_groups(here), ledger, site, on_job, scorers.submit, scorers.take)


def _groups(units: Sequence[Unit]) -> list[Task]:
    """What is trained at once: small runs together, everything else for itself."""
    from dicot.methods import METHODS

    families = {name: family(name) for name in {unit.first.source.name for unit in units}}

    def is_small(unit: Unit) -> bool:
        job = unit.first
        return job.contender.kind in METHODS and families[job.source.name] not in FILLS_A_GPU

    small = [unit for unit in units if is_small(unit)]
    groups = [tuple(small[start : start + GROUP]) for start in range(0, len(small), GROUP)]
    return [*groups, *((unit,) for unit in units if not is_small(unit))]
