"""Maps of what every contender makes of one data set: fitted here, projected by t-SNE in processes beside it."""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import numpy as np

import dicot.paper.suites  # noqa: F401  (adds the suite)
from dicot.core.errors import DicotError, InputError, LostWorkerError
from dicot.core.processes.launcher import end_with_parent
from dicot.core.progress import Bar
from dicot.data.collection import labelled_cases
from dicot.data.datasets import card, is_path
from dicot.judge.bench.crossing import SuiteOptions
from dicot.judge.bench.executor import default_workers
from dicot.judge.bench.suites import suite_jobs
from dicot.judge.evaluation.jobs import Job, units_of
from dicot.judge.evaluation.loading import Shelf
from dicot.judge.evaluation.result import Result
from dicot.judge.evaluation.run import Embedded, Site, run_units
from dicot.judge.protocols.base import Labels
from dicot.use.projection import Maps, Projection, read_maps, tsne, write_maps

SUITE = "clustering"  # whose contenders are those of the paper's maps: every method, the supervised one, the controls

Pending = dict[str, "Future[Projection]"]


def run_maps(
    data_set: str,
    path: Path,
    *,
    seed: int = 1,
    device: str = "auto",
    contenders: Sequence[str] = (),
    steps: int | None = None,
    workers: int | None = None,
) -> None:
    """Map all test cases of a data set by each contender, into a file that the same call goes on with.

    Each contender is fitted on the training part as in the benchmark; `contenders` narrows them, and controls come
    along. The file is written anew after every map, and one of other data, another seed or other `steps` (a trial) is
    refused. What fails costs no other map: the error comes at the end.
    """
    from dicot.core.gpu.device import resolve_device

    options = SuiteOptions(contenders=tuple(contenders), sets=(data_set,), seeds=(seed,), steps=steps)
    jobs = suite_jobs([SUITE], options)
    site, shelf = Site(str(resolve_device(device)), path.with_suffix(".work")), Shelf()
    book = _Book(path, _begun(path, _nothing_yet(jobs[0], shelf, steps)))
    missing = [job for job in jobs if job.contender.name not in book.maps.points]
    pool = ProcessPoolExecutor(
        workers or default_workers(), multiprocessing.get_context("spawn"), initializer=end_with_parent
    )
    pending: Pending = {}

    def project(given: Embedded) -> None:
        pending[given.jobs[0].contender.name] = pool.submit(tsne, given.test.x, seed=seed)

    try:
        with Bar("maps", len(missing)) as bar:
            for done, unit in enumerate(units_of(missing)):
                bar.update(done, str(unit.first))
                run_units((unit,), site, shelf, book.failed, score=project)
                book.take(pending, wait=False)
            bar.update(len(missing), "t-SNE")
            book.take(pending, wait=True)
    except BrokenProcessPool as error:
        raise LostWorkerError("A process that computed t-SNE was ended. Where memory is short, use fewer.") from error
    finally:
        pool.shutdown(cancel_futures=True)
    if book.errors:
        raise InputError(f"{path} lacks {len(book.errors)} maps. {'; '.join(book.errors)}.")


class _Book:
    """The file as far as it is written, and what went wrong."""

    def __init__(self, path: Path, maps: Maps) -> None:
        self.path, self.maps = path, maps
        self.errors: list[str] = []

    def failed(self, job: Job, results: Sequence[Result]) -> None:
        """Note why a contender could not be fitted: nothing else is recorded, for nothing is scored."""
        self.errors.append(f"{job.contender.name}: {results[0].error}")

    def take(self, pending: Pending, *, wait: bool) -> None:
        """Write the maps that are ready, one after the other; with `wait` all of them."""
        for name in [name for name, future in pending.items() if wait or future.done()]:
            try:
                made = pending.pop(name).result()
            except DicotError as error:  # of embeddings that cannot be mapped
                self.errors.append(f"{name}: {type(error).__name__}: {error}")
                continue
            points = {**self.maps.points, name: made.points.astype(np.float32)}
            self.maps = replace(self.maps, points=points, titles={**self.maps.titles, name: made.title})
            write_maps(self.path, self.maps)


def _nothing_yet(job: Job, shelf: Shelf, steps: int | None) -> Maps:
    name, data = job.target.name, shelf.get(job.target)
    assert data.split.test is not None
    labels = labelled_cases(data.split.test).y
    assert labels is not None
    classes = () if is_path(name) else card(name).labels
    named: Labels = np.array(classes)[labels] if classes and labels.dtype.kind == "i" else labels
    return Maps(data.split.name or name, data.fingerprint, job.seed, steps or 0, named)


def _begun(path: Path, fresh: Maps) -> Maps:
    """What the file holds already; one of something else is refused."""
    if not path.exists():
        return fresh
    here = read_maps(path)
    for what in ("data_set", "fingerprint", "seed", "steps"):
        if getattr(here, what) != getattr(fresh, what):
            raise InputError(
                f"{path} holds maps with {what} {getattr(here, what)}, not {getattr(fresh, what)}. "
                "Remove that file, or choose another one."
            )
    return here
