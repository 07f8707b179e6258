"""A pretraining run that lives in a folder: it can be killed, repeated and resumed by the same call."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dicot.errors import InputError, ModelFileError
from dicot.estimator import TimeSeriesEmbedder, data_card
from dicot.pretrained import CONFIG, read_config
from dicot.train import Checkpoint
from dicot.windows import Windows

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Job:
    """What to train, and the folder it lives in."""

    folder: Path
    parameters: Mapping[str, Any]  # of TimeSeriesEmbedder
    checkpoint_seconds: float = 10.0
    overwrite: bool = False


def run_job(job: Job, train: Windows, device: str = "auto") -> str:
    """Train and save unless the folder already holds this very run; the sentence says what happened."""
    model = TimeSeriesEmbedder(**job.parameters, device=device)
    checkpoint = job.folder / CHECKPOINT
    if (job.folder / CONFIG).exists() and not job.overwrite:
        if _same_run(job, model, train):
            checkpoint.unlink(missing_ok=True)
            return f"{job.folder} already holds this run; nothing to do."
        raise InputError(f"{job.folder} holds another model. Choose another folder, or overwrite it (--overwrite).")
    if job.overwrite:
        checkpoint.unlink(missing_ok=True)
    resumed = checkpoint.exists()
    model.fit(train, train.y, checkpoint=Checkpoint(checkpoint, job.checkpoint_seconds))
    model.save_pretrained(job.folder)
    checkpoint.unlink(missing_ok=True)  # only now: until the model is saved the run can still be lost
    history = model.history_
    trained = f"{len(history)} steps, loss {history.loss[0]:.3f} -> {history.loss[-1]:.3f}, " if history.loss else ""
    how = "resumed and finished" if resumed else "trained"
    return f"{how}: {trained}{history.seconds:.1f} s. Wrote {job.folder}"


def _same_run(job: Job, model: TimeSeriesEmbedder, train: Windows) -> bool:
    config = read_config(job.folder)
    try:
        TimeSeriesEmbedder.from_pretrained(job.folder)
    except ModelFileError:  # killed between the weights and the config of an overwriting save
        return False
    wanted = {**model.get_params(), "device": "auto"}
    card = data_card(model.method, train, train.fingerprint())
    return bool(config["data"] == card and config["estimator"] == wanted)
