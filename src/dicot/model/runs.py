"""Pretraining into a folder: a run that can be killed, repeated and resumed by the same call."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch import nn

from dicot.core.errors import InputError, ModelFileError
from dicot.core.storage import LOCK, check_writable, only_writer
from dicot.data import Windows
from dicot.data.cases import Cases
from dicot.data.preparation import Preparation
from dicot.model.estimator import TimeSeriesEmbedder, data_card, method_name
from dicot.model.files import CONFIG, is_registered, plain_json
from dicot.model.presets import PREPARE, entries
from dicot.train.record import Checkpoint
from dicot.train.together import current_place, from_first

CHECKPOINT = "checkpoint.safetensors"
# Settings that are compared by what they come to.
RESOLVED = {"preset", "method", "method_params", "features", "recipe", "steps", "prepare"}


class OtherModelError(InputError):
    """A folder holds a model that this run would not end with."""


def pretrain_into(
    folder: Path,
    model: TimeSeriesEmbedder,
    train: Cases,
    *,
    checkpoint_seconds: float = 10.0,
    minutes: float | None = None,
    overwrite: bool = False,
) -> str:
    """Fit and save the model unless the folder already holds this very run; return a sentence on what happened.

    A run that was killed or interrupted goes on from its checkpoint, one that overwrites another model too. `minutes`
    are those of `fit`. Of several processes the first one looks at the folder and writes; the others, which need not
    see it, take part in the training. A second run into the same folder is refused while this one lasts.
    """
    checkpoint = Checkpoint(folder / CHECKPOINT, checkpoint_seconds, overwrite=overwrite)
    with ExitStack() as held:
        if from_first(lambda: _is_done(folder, model, train, overwrite, held)):
            return f"{folder} already holds this run; nothing to do."
        labels = train.y if isinstance(train, Windows) else None  # a store's are read if the method learns from them
        if not current_place().is_first:
            model.take_part(train, labels, checkpoint=checkpoint)
            return ""
        started = time.perf_counter()
        model.fit(train, labels, checkpoint=checkpoint, minutes=minutes)
        seconds = time.perf_counter() - started
        model.save_pretrained(folder)
        checkpoint.remove()  # only now: until the model is saved the run can still be lost
    history = model.history_
    if not history.loss:
        return f"fitted in {seconds:.1f} s, nothing was trained. Wrote {folder}"
    how = "resumed and finished" if checkpoint.resumed else "trained"
    steps = f"{len(history)} steps, loss {history.loss[0]:.3f} -> {history.loss[-1]:.3f}"
    return f"{how}: {steps}, {history.seconds:.1f} s. Wrote {folder}"


def _is_done(folder: Path, model: TimeSeriesEmbedder, train: Cases, overwrite: bool, lock: ExitStack) -> bool:
    """Tell whether the folder holds this run already; else lock it for the training."""
    is_there = not overwrite and _holds_run(folder, model, train)
    left = any((folder / name).exists() for name in (CHECKPOINT, LOCK))  # by a run that was killed in its last moment
    if not is_there:
        check_writable(folder, folder=True)
    if left or not is_there:
        lock.enter_context(only_writer(folder, folder=True))
        is_there = not overwrite and _holds_run(folder, model, train)  # another process may just have finished it
    if is_there and left:
        Checkpoint(folder / CHECKPOINT).remove()
    return is_there


def _holds_run(folder: Path, model: TimeSeriesEmbedder, train: Cases) -> bool:
    """Tell whether the folder holds what this run would end with; another model, or a damaged one, is an error."""
    if not (folder / CONFIG).exists():
        return False
    given = model.encoder
    module = given if isinstance(given, nn.Module) and not is_registered(given) else None
    try:
        saved = TimeSeriesEmbedder.from_pretrained(folder, encoder=module)
    except ModelFileError as error:
        raise ModelFileError(f"{error} To train it anew in this folder, overwrite it (--overwrite).") from error
    used = model.resolve(len(train), train.n_times)
    # A preset may have had other values when the model was saved.
    there = (saved.method_, saved.method_params_, saved.recipe_.to_dict(), saved.features_, saved.data_)
    card = data_card(used.method, train, train.fingerprint())
    wanted = (method_name(used.method), used.params, used.recipe.to_dict(), used.features, card)
    if _plain(saved, there) != _plain(model, wanted):
        raise OtherModelError(f"{folder} holds another model. Choose another folder, or overwrite it (--overwrite).")
    return True


def _plain(model: TimeSeriesEmbedder, resolved: tuple[Any, ...]) -> dict[str, Any]:
    """Return the settings of a model as a file has them, and what those come to that a preset decides."""
    settings = {name: value for name, value in model._settings().items() if name not in RESOLVED}
    preparation = Preparation(**entries("prepare", model.prepare, PREPARE))
    settings["prepare"] = [getattr(preparation, name) for name in PREPARE]
    settings["precision"] = model._precision
    return plain_json({**settings, "resolved": resolved})
