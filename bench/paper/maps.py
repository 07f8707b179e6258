"""Maps of what every contender makes of one data set: fitted as in the benchmark, projected by t-SNE."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.paper.mapfile import Maps, read_maps, write_maps
from bench.paper.suites import MAPPED_BY
from bench.suites import SuiteOptions, suite_jobs
from dicot.core.device import resolve_device
from dicot.core.errors import InputError
from dicot.core.progress import Bar
from dicot.data.datasets import card, is_path
from dicot.judge.evaluation.jobs import Job, units_of
from dicot.judge.evaluation.labelled import Shelf
from dicot.judge.evaluation.scoring import Fit, Site, embed_labelled, fit_unit
from dicot.use.projection import tsne


def run_maps(
    data_set: str,
    path: Path,
    *,
    seed: int = 1,
    device: str = "auto",
    contenders: Sequence[str] = (),
    steps: int | None = None,
) -> None:
    """Map all test cases of a data set by each contender, into a file that the same call goes on with.

    Each contender is fitted on the training part as in the benchmark; `contenders` narrows them, and controls come
    along. The file is written anew after every map, and one of other data, another seed or other `steps` (a trial) is
    refused. What fails costs no other map: the error comes at the end.
    """
    options = SuiteOptions(contenders=tuple(contenders), sets=(data_set,), seeds=(seed,), steps=steps)
    jobs = suite_jobs([MAPPED_BY], options)
    site, shelf = Site(str(resolve_device(device)), path.with_suffix(".work")), Shelf()
    maps = _nothing_yet(jobs[0], shelf, steps)
    if path.exists():
        fresh, maps = maps, read_maps(path)
        for what in ("data_set", "fingerprint", "seed", "steps"):
            if (old := getattr(maps, what)) != (new := getattr(fresh, what)):
                raise InputError(f"{path} holds maps of {what} {old}, not {new}. Remove that file, or name another.")
    errors: list[str] = []
    missing = units_of([job for job in jobs if job.contender.name not in maps.points])
    with Bar("maps", len(missing)) as bar:
        for done, unit in enumerate(missing):
            bar.update(done, str(unit.first))
            name = unit.first.contender.name
            fit = fit_unit(unit, site, shelf)
            try:
                points, title = _points(fit, shelf, seed)
            except Exception as error:
                errors.append(f"{name}: {type(error).__name__}: {error}")
                continue
            maps = replace(maps, points={**maps.points, name: points}, titles={**maps.titles, name: title})
            write_maps(path, maps)
            if fit.checkpoint is not None:
                fit.checkpoint.remove()
    if errors:
        raise InputError(f"{path} lacks {len(errors)} maps. {'; '.join(errors)}.")


def _points(fit: Fit, shelf: Shelf, seed: int) -> tuple[NDArray[np.float32], str]:
    """The map of a contender's test cases, and what it is called."""
    if isinstance(fit.outcome, Exception):
        raise fit.outcome
    embedded = embed_labelled(fit.outcome.model, shelf.get(fit.unit.first.target).split)
    projection = tsne(embedded.test.x, seed=seed)
    return projection.points.astype(np.float32), projection.title


def _nothing_yet(job: Job, shelf: Shelf, steps: int | None) -> Maps:
    name, data = job.target.name, shelf.get(job.target)
    assert data.split.test is not None and data.split.test.y is not None
    labels = data.split.test.y
    classes = () if is_path(name) else card(name).labels
    named = np.array(classes)[labels] if classes and labels.dtype.kind == "i" else labels
    return Maps(data.split.name or name, data.fingerprint, job.seed, steps or 0, named)
