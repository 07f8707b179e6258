"""A trained encoder in a folder: config.json with its provenance, model.safetensors with its weights."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from dicot import __version__
from dicot.encoders import Encoder, build_encoder, encoder_name
from dicot.errors import InputError, ModelFileError
from dicot.storage import write_atomic

FORMAT = "dicot-encoder"
FORMAT_VERSION = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def save_pretrained(directory: str | Path, encoder: Encoder, provenance: Mapping[str, Any]) -> Path:
    """Write the folder; the config comes last and names the weights' hash, so a half-written one is recognised."""
    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the name of a folder to save a model in.")
    weights = save({name: tensor.detach().cpu().contiguous() for name, tensor in encoder.state_dict().items()})
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "encoder": {"name": encoder_name(encoder), **encoder.config()},
        "weights": {"file": WEIGHTS, "sha256": hashlib.sha256(weights).hexdigest()},
        **provenance,
    }
    text = json.dumps(config, indent=2) + "\n"
    write_atomic(folder / WEIGHTS, weights)
    write_atomic(folder / CONFIG, text.encode())
    return folder


def read_config(directory: str | Path) -> dict[str, Any]:
    """The config of a saved model, or an error that says why this is not one."""
    folder = Path(directory)
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is not a folder. A saved model is a folder with {CONFIG} and {WEIGHTS}.")
    path = folder / CONFIG
    if not path.is_file():
        raise ModelFileError(f"{folder} is not a saved model: it has no {CONFIG}. Make one with save_pretrained.")
    try:
        config = json.loads(path.read_text())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{path} is damaged ({error}). Save the model again.") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelFileError(f"{path} was not written by dicot: its format is not {FORMAT!r}.")
    if config.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {config.get('format_version')}; this dicot {__version__} reads "
            f"{FORMAT_VERSION}. Install the version that wrote it, {config.get('library_version')}."
        )
    return config


def from_pretrained(directory: str | Path) -> tuple[Encoder, dict[str, Any]]:
    """The encoder in eval mode on the CPU, and its config."""
    config, path = read_config(directory), Path(directory) / WEIGHTS
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != config["weights"]["sha256"]:
            raise ModelFileError(f"{path} is truncated or does not belong to its {CONFIG}. Copy or save it again.")
        shape = dict(config["encoder"])
        encoder = build_encoder(shape.pop("name"), shape)
        encoder.load_state_dict(load(data))
    except (OSError, KeyError, TypeError, RuntimeError, SafetensorError, InputError) as error:
        raise ModelFileError(f"{Path(directory)} cannot be loaded: {error}") from error
    return encoder.eval(), config
