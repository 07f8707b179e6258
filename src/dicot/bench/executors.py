"""How units are carried out: in this process, in a pool of processes, several at once on a GPU."""

import os
from collections.abc import Sequence
from pathlib import Path

from dicot.bench.fits import Site, is_alone
from dicot.bench.jobs import Unit
from dicot.bench.workers import OnJob, Task, run_in_pool, run_in_process
from dicot.datasets import available

GPU_WORKERS = 8  # processes that share a GPU: small runs are bound by the host, one core each
GROUP = 64  # units of a task whose fits share a GPU
ALONE_ON_GPU = ("large",)  # families whose fits fill a GPU


def default_workers(device: str) -> int:
    """A process per core, on a GPU no more than share it well."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, GPU_WORKERS) if device.startswith("cuda") else cores


def site_for(ledger: Path, device: str, workers: int) -> Site:
    """The site of a run; a single process on a GPU fits several units at once, several processes do so together."""
    from dicot.train.many import AT_ONCE

    at_once = max(1, AT_ONCE // workers) if device.startswith("cuda") else 1
    return Site(device, ledger.with_suffix(".work"), at_once)


def execute(units: Sequence[Unit], ledger: Path, site: Site, workers: int, on_job: OnJob) -> None:
    """Run all units; `on_job` is told of every job that was recorded."""
    alone = _run_alone(units, site)
    tasks = _tasks([unit for unit in units if unit.key not in alone], site)
    if workers > 1 and len(tasks) > 1:
        run_in_pool(tasks, workers, ledger, site, on_job)
    else:
        run_in_process(tasks, ledger, site, on_job)
    run_in_process([(unit,) for unit in units if unit.key in alone], ledger, site, on_job)
    if site.work.is_dir() and not any(site.work.iterdir()):
        site.work.rmdir()


def _run_alone(units: Sequence[Unit], site: Site) -> set[str]:
    """Keys of the units beside which nothing else may run."""
    alone = {unit.key for unit in units if is_alone(unit)}
    if site.device.startswith("cuda"):
        families = {card.name: card.family for card in available()}
        alone |= {unit.key for unit in units if families.get(unit.first.source.name) in ALONE_ON_GPU}
    return alone


def _tasks(units: Sequence[Unit], site: Site) -> list[Task]:
    """Each unit for itself; in groups what is trained on a GPU that others would leave idle."""
    from dicot.methods import METHODS

    if site.at_once == 1:
        return [(unit,) for unit in units]
    trained = [unit for unit in units if unit.first.contender.kind in METHODS]
    groups = [tuple(trained[start : start + GROUP]) for start in range(0, len(trained), GROUP)]
    return [*groups, *((unit,) for unit in units if unit.first.contender.kind not in METHODS)]
