"""Saved models, checkpoints that a run is resumed from, and settings typed on the command line."""

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from dicot import TimeSeriesEmbedder
from dicot.cli import app
from dicot.model.files import CONFIG, WEIGHTS
from dicot.train import Checkpoint, History
from tests.survival.kind import Kind
from tests.survival.mutations import JSON, TENSORS

X = np.random.default_rng(4).normal(3, 2, size=(8, 2, 16)).astype(np.float32)
SETTINGS = ["k=[2, 5]", "temperature=0.1", "overlap=0.25", 'positive="next"', "projection=true"]


class KilledError(BaseException):
    """Stands for a power cut."""


def _embedder(**more: Any) -> TimeSeriesEmbedder:
    settings = {
        "preset": "paper",
        "dim": 8,
        "steps": 4,
        "recipe": {"batch_size": 4},
        "prepare": {"scale": "dataset"},
        "random_state": 1,
        "device": "cpu",
    }
    return TimeSeriesEmbedder(**settings | more)


@cache
def _model() -> TimeSeriesEmbedder:
    return _embedder(steps=1).fit(X)


def _save_model(folder: Path) -> None:
    _model().history_.seconds = 1.5  # the only thing that differs from run to run
    _model().save_pretrained(folder / "model")


def _read_model(folder: Path) -> np.ndarray:
    return TimeSeriesEmbedder.from_pretrained(folder / "model", device="cpu").transform(X)


def _seal_model(folder: Path) -> None:
    """The weights' hash put right and the config's left out, as its error says it may be."""
    path = folder / "model" / CONFIG
    try:
        config = json.loads(path.read_text())
        config["weights"]["sha256"] = hashlib.sha256((folder / "model" / WEIGHTS).read_bytes()).hexdigest()
        config.pop("sha256", None)
        path.write_text(json.dumps(config))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return


def _seal_checkpoint(folder: Path) -> None:
    """The hash of the whole file, taken with zeros in its place, put right."""
    path = folder / "run.safetensors"
    data = path.read_bytes()
    found = re.search(rb'"sha256": ?"([0-9a-f]{64})"', data)
    if found is not None:
        bare = data[: found.start()] + b'"sha256":"' + b"0" * 64 + b'"' + data[found.end() :]
        path.write_bytes(bare.replace(b"0" * 64, hashlib.sha256(bare).hexdigest().encode(), 1))


def same_bits(folder: Path, result: np.ndarray, sound: np.ndarray) -> str:
    return "" if np.array_equal(result, sound) else "it is taken, and gives other embeddings"


def sane(folder: Path, result: np.ndarray, sound: np.ndarray) -> str:
    """Other weights may come out of a forged file, but numbers they must be."""
    if result.ndim != 2 or len(result) != len(sound) or result.dtype != sound.dtype:
        return f"embeddings are {result.dtype} of shape {result.shape} instead of {sound.dtype} {sound.shape}"
    return "" if np.isfinite(result).all() else "NaN or inf among the embeddings"


def _save_checkpoint(folder: Path) -> None:
    """What a run of four steps leaves when it dies after the second."""
    checkpoint, written = Checkpoint(folder / "run.safetensors", 0), []
    write = checkpoint.write

    def write_and_die(*args: Any, **more: Any) -> None:
        next(part for part in args if isinstance(part, History)).seconds = 1.5
        write(*args, **more)
        while not _in_order(checkpoint.path):
            write(*args, **more)
        written.append(args)
        if len(written) == 2:
            raise KilledError

    checkpoint.write = write_and_die  # type: ignore[method-assign]
    try:
        _embedder().fit(X, checkpoint=checkpoint)
    except KilledError:
        return
    raise AssertionError("the run did not die")


def _in_order(path: Path) -> bool:
    """safetensors writes what it is told about a file in any order, another one each time."""
    data = path.read_bytes()
    about = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    return list(about) == sorted(about)


def _resume(folder: Path) -> np.ndarray:
    return _embedder().fit(X, checkpoint=Checkpoint(folder / "run.safetensors", 1000)).transform(X)


def _save_settings(folder: Path) -> None:
    np.savez(folder / "a.npz", X=X)
    (folder / "settings.txt").write_text("\n".join(SETTINGS))


def _pretrain(folder: Path) -> np.ndarray:
    text = (folder / "settings.txt").read_bytes().decode("utf-8", "replace")
    words = [word for line in text.split("\n") for word in ("--set", line)]
    usual = [
        "--method",
        "dicot",
        "--steps",
        "1",
        "--dim",
        "8",
        "--batch-size",
        "4",
        "--device",
        "cpu",
        "--out",
        str(folder / "model"),
    ]
    result = CliRunner().invoke(app, ["pretrain", str(folder / "a.npz"), *usual, *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return TimeSeriesEmbedder.from_pretrained(folder / "model", device="cpu").transform(X)


MODEL = {f"model/{CONFIG}": JSON, f"model/{WEIGHTS}": TENSORS}

KINDS = [
    Kind("model", _save_model, MODEL, _read_model, same_bits, heavy=True),
    Kind("model-forged", _save_model, MODEL, _read_model, sane, seal=_seal_model, heavy=True),
    Kind(
        "checkpoint", _save_checkpoint, {"run.safetensors": TENSORS}, _resume, same_bits, only_reads=False, heavy=True
    ),
    Kind(
        "checkpoint-forged",
        _save_checkpoint,
        {"run.safetensors": TENSORS},
        _resume,
        sane,
        seal=_seal_checkpoint,
        only_reads=False,
        heavy=True,
    ),
    Kind("settings", _save_settings, {"settings.txt": JSON}, _pretrain, sane, heavy=True),
]
