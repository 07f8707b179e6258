"""Fitting the contenders of units, one by one or several at once, and going on where a fit was interrupted."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dicot.bench.fitted import Fitted
from dicot.bench.jobs import Unit
from dicot.bench.loading import Loaded
from dicot.bench.model_protocols import ALONE
from dicot.data.collection import known_layout

if TYPE_CHECKING:
    from dicot.train import Checkpoint

CHECKPOINT_SECONDS = 30.0

OnFit = Callable[[Unit, Fitted], None]
OnError = Callable[[Unit, Exception], None]


@dataclass(frozen=True)
class Site:
    """Where units are run: a device, and a folder for fits that may be interrupted."""

    device: str
    work: Path
    at_once: int = 1  # fits that share the device

    def checkpoint(self, unit: Unit, source: Loaded) -> "Checkpoint | None":
        """None for what is not trained, and for a fit that is measured."""
        from dicot.methods import METHODS
        from dicot.train import Checkpoint

        if unit.first.contender.kind not in METHODS or is_alone(unit):
            return None
        path = self.work / f"{unit.key[:32]}-{source.fingerprint}.safetensors"
        return Checkpoint(path, CHECKPOINT_SECONDS, overwrite=True)  # one of another version is no failure of the fit


def is_alone(unit: Unit) -> bool:
    """Whether something is measured that others would disturb."""
    return any(job.protocol in ALONE for job in unit.jobs)


def fit_units(
    units: Sequence[Unit], sources: Mapping[str, Loaded], site: Site, on_fit: OnFit, on_error: OnError
) -> None:
    """`on_fit` is given each unit's contender as soon as it is fitted, `on_error` told of those that cannot be."""
    from dicot.gpu.device import load_optimisers
    from dicot.methods import METHODS

    if any(unit.first.contender.kind in METHODS for unit in units):
        load_optimisers()
    models = []
    for unit in units:
        try:
            models.append((unit, _model(unit, sources[unit.key], site)))
        except Exception as error:
            on_error(unit, error)
    if len(models) > 1:
        _together(models, sources, site, on_fit, on_error)
    else:
        _alone(models, sources, site, on_fit, on_error)


def _model(unit: Unit, source: Loaded, site: Site) -> Any:
    from dicot.evaluation import contender

    who = unit.first.contender
    settings = {"family": source.split.family, "device": site.device, "verbose": False, **who.settings}
    return contender(who.kind, method_params=dict(who.method_params), **settings).make(unit.first.seed)


@known_layout()
def _alone(
    models: Sequence[tuple[Unit, Any]], sources: Mapping[str, Loaded], site: Site, on_fit: OnFit, on_error: OnError
) -> None:
    from dicot.gpu.device import peak_memory

    for unit, model in models:
        source = sources[unit.key]
        train, checkpoint = source.split.train, site.checkpoint(unit, source)
        resumed = checkpoint is not None and checkpoint.path.exists()
        try:
            with peak_memory(site.device) as peak:
                started = time.perf_counter()
                model.fit(train.x, train.y, **({"checkpoint": checkpoint} if checkpoint else {}))
                seconds = time.perf_counter() - started
                memory = peak()
        except Exception as error:
            on_error(unit, error)
        else:
            on_fit(unit, Fitted(model, math.nan if resumed else seconds, memory))


@known_layout()
def _together(
    models: Sequence[tuple[Unit, Any]], sources: Mapping[str, Loaded], site: Site, on_fit: OnFit, on_error: OnError
) -> None:
    """The seconds of each are its own share; whose the memory is cannot be told."""
    from dicot.estimator import fit_many

    open_ones = set(range(len(models)))

    def fitted(number: int) -> None:
        open_ones.discard(number)
        unit, model = models[number]
        on_fit(unit, Fitted(model, math.nan if resumed[number] else model.history_.seconds))

    def failed(number: int, error: Exception) -> None:
        open_ones.discard(number)
        on_error(models[number][0], error)

    trains = [sources[unit.key].split.train for unit, _ in models]
    checkpoints = [site.checkpoint(unit, sources[unit.key]) for unit, _ in models]
    resumed = [checkpoint is not None and checkpoint.path.exists() for checkpoint in checkpoints]
    try:
        fit_many(
            [model for _, model in models],
            [(train.x, train.y) for train in trains],
            checkpoints=checkpoints,
            at_once=site.at_once,
            on_fit=fitted,
            on_error=failed,
        )
    except Exception as error:  # of the device, not of one of the fits
        for number in sorted(open_ones):
            failed(number, error)
