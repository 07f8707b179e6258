"""A pretraining run that lives in a folder: it can be killed, repeated and resumed by the same call."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dicot.data import Windows
from dicot.errors import InputError, ModelFileError
from dicot.estimator import TimeSeriesEmbedder, data_card
from dicot.pretrained import CONFIG, plain_json, read_config
from dicot.storage import check_writable, remove_leftovers, writing
from dicot.train import Checkpoint

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Job:
    """What to train, and the folder it lives in."""

    folder: Path
    parameters: Mapping[str, Any]  # of TimeSeriesEmbedder
    checkpoint_seconds: float = 10.0
    overwrite: bool = False


def run_job(job: Job, train: Windows, device: str = "auto") -> str:
    """Train and save unless the folder already holds this very run; the sentence says what happened.

    A run that was killed or interrupted goes on from its checkpoint, one that overwrites another model too.
    """
    model = TimeSeriesEmbedder(**job.parameters, device=device)
    checkpoint = Checkpoint(job.folder / CHECKPOINT, job.checkpoint_seconds, overwrite=job.overwrite)
    if (job.folder / CONFIG).exists() and not job.overwrite:
        if not _same_run(job, model, train):
            raise InputError(f"{job.folder} holds another model. Choose another folder, or overwrite it (--overwrite).")
        _remove(checkpoint.path)
        return f"{job.folder} already holds this run; nothing to do."
    check_writable(job.folder)
    model.fit(train, train.y, checkpoint=checkpoint)
    model.save_pretrained(job.folder)
    _remove(checkpoint.path)  # only now: until the model is saved the run can still be lost
    history = model.history_
    trained = f"{len(history)} steps, loss {history.loss[0]:.3f} -> {history.loss[-1]:.3f}, " if history.loss else ""
    how = "resumed and finished" if checkpoint.resumed else "trained"
    return f"{how}: {trained}{history.seconds:.1f} s. Wrote {job.folder}"


def _same_run(job: Job, model: TimeSeriesEmbedder, train: Windows) -> bool:
    """Whether the folder holds what this job would end with; a damaged model is an error that says so."""
    try:
        TimeSeriesEmbedder.from_pretrained(job.folder)
    except ModelFileError as error:
        raise ModelFileError(f"{error} To train it anew in this folder, overwrite it (--overwrite).") from error
    config = read_config(job.folder)
    wanted = plain_json({**model.get_params(), "device": "auto"})
    card = data_card(model.method, train, train.fingerprint())
    return bool(config["data"] == card and config["estimator"] == wanted)


def _remove(checkpoint: Path) -> None:
    with writing(checkpoint):
        remove_leftovers(checkpoint)
        checkpoint.unlink(missing_ok=True)
