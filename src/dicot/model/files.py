"""A fitted model in a folder: config.json with its provenance, model.safetensors with its weights; never pickle.

What was fitted beside the encoder, tensors by name, stands in the same file of weights; the config has their shapes.

An encoder that is registered is built from its config. Of any other module the folder holds the class's name and the
state dict; whoever loads it passes the module again.

The config names the hash of the weights and is what makes a folder a model. A model that replaces another one is put
beside it first: its weights as model-HASH.safetensors, then its config in place of the old one, and at last the weights
under their usual name. Whenever this is cut off, the config in place and the weights of its hash are one whole model.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from dicot.core.errors import InputError, ModelFileError, OutputError, brief, lookup
from dicot.core.storage import check_format, format_of, write_atomic, writing
from dicot.model.presets import FEATURES, PREPARE
from dicot.nets.encoders import ENCODERS, Encoder, ForeignEncoder, as_encoder, build_encoder, encoder_name
from dicot.train.recipe import Recipe

FORMAT, FORMAT_VERSION = "dicot-encoder", 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
# What a save that was cut off may leave behind; eight letters behind a dot are `atomic_file`'s.
LEFT = re.compile(r"model-[0-9a-f]{16}\.safetensors|\.model-[0-9a-f]{16}\.safetensors\.[0-9a-f]{8}")
LARGEST_HEADER = 2**24  # bytes of a weights file beside the weights
BESIDE = "beside:"  # in front of the names of tensors that are not the encoder's, in the file of weights
TYPES = {str(kind).removeprefix("torch."): kind for kind in (torch.float32, torch.int64, torch.uint8)}  # that they have


def save_pretrained(
    directory: str | Path,
    encoder: Encoder,
    provenance: Mapping[str, Any],
    beside: Mapping[str, Tensor],
    *,
    half: bool = False,
) -> Path:
    """Write the folder, in place of a model that is there; other files in it stay.

    `beside` are tensors that belong to the model and not to its encoder. `half` keeps 16 bits of each number.
    """
    folder = Path(directory)
    weights = _serialised(encoder, beside, half)
    digest = hashlib.sha256(weights).hexdigest()
    forms = {name: {"shape": list(t.shape), "type": str(t.dtype).removeprefix("torch.")} for name, t in beside.items()}
    config = plain_json(
        {
            **format_of(FORMAT, FORMAT_VERSION),
            "encoder": _shape(encoder),
            "weights": {"file": WEIGHTS, "sha256": digest},
            **({"beside": forms} if forms else {}),
            **provenance,
        }
    )
    aside = folder / f"model-{digest[:16]}.safetensors"
    write_atomic(aside, weights)
    try:
        write_atomic(folder / CONFIG, (json.dumps({**config, "sha256": _hash(config)}, indent=2) + "\n").encode())
    except OutputError:
        aside.unlink(missing_ok=True)
        raise
    with writing(folder):
        aside.replace(folder / WEIGHTS)
        for path in folder.iterdir():
            if LEFT.fullmatch(path.name):
                path.unlink(missing_ok=True)
    return folder


def from_pretrained(
    directory: str | Path, module: nn.Module | None = None
) -> tuple[Encoder, dict[str, Any], dict[str, Tensor]]:
    """Return the encoder in eval mode on the CPU, its config, and the tensors that were saved beside it.

    A model whose encoder is not registered needs the `module` it was saved with; it is copied, not changed.
    """
    folder, config = Path(directory), read_config(directory)
    with reading(folder):
        encoder = _empty_encoder(folder, dict(config["encoder"]), module)
        weights, beside = _tensors(folder, config, module_of(encoder).state_dict())
        if module is None:  # without drawing weights that are replaced at once: the caller's random state stays
            encoder.to_empty(device="cpu")
        module_of(encoder).load_state_dict(weights)
    return encoder.eval(), config, beside


def read_weights(directory: str | Path, wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a saved model, which must have the names and shapes of `wanted`."""
    with reading(directory):
        return _tensors(Path(directory), read_config(directory), wanted)[0]


def read_config(directory: str | Path) -> dict[str, Any]:
    """Return the config of a saved model, or raise an error that says why this is not one."""
    path = Path(directory) / CONFIG
    if not path.is_file():
        raise ModelFileError(
            f"{directory} is not a saved model, a folder with {CONFIG} and {WEIGHTS}. Make one with save_pretrained."
        )
    try:
        config = check_format(path, json.loads(path.read_bytes().decode()), FORMAT, FORMAT_VERSION)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} is damaged ({brief(error)}). Save the model again.") from error
    rest = {name: value for name, value in config.items() if name != "sha256"}
    if config.get("sha256", _hash(rest)) != _hash(rest):
        raise ModelFileError(
            f"{path} was changed after it was saved. Copy or save the model again, or, if the change is intended, "
            'remove its entry "sha256".'
        )
    return config


# Until November 2026 a model was saved with its settings flat: a name there -> its group, and its name in that.
FLAT: dict[str, tuple[str, str]] = {
    **{name: ("features", name) for name in FEATURES},
    "embed_precision": ("features", "precision"),
    **{name: ("prepare", name) for name in PREPARE},
    **{name: ("recipe", name) for name in ("batch_size", "lr", "schedule", "precision")},
}
FLAT_USUAL = {"embed_precision": "float32", "layout": "nct", "unequal": "error", "missing": "error"}  # others: None


def grouped(settings: Mapping[str, Any], groups: Collection[str] = ("features", "prepare", "recipe")) -> dict[str, Any]:
    """Return flat settings as arguments of an estimator that has these groups; what is usual is left out."""
    places = {name: place for name, place in FLAT.items() if name in settings and place[0] in groups}
    arguments = {name: value for name, value in settings.items() if name not in places}
    for name, (group, inner_name) in places.items():
        if settings[name] == FLAT_USUAL.get(name):
            continue
        entries = arguments.get(group) or {}
        if isinstance(entries, Recipe):
            entries = vars(entries)
        arguments[group] = {**entries, inner_name: settings[name]}
    return arguments


def model_hash(directory: str | Path) -> str:
    """Return 64 hex digits that change with whatever a vector of a saved model depends on.

    Where it was saved, how long it trained and which version wrote it do not count.
    """
    config = read_config(directory)
    return _hash({name: config.get(name) for name in ("encoder", "weights", "chosen", "preparation")})


def weights_hash(encoder: Encoder, beside: Mapping[str, Tensor]) -> str:
    """Return the hash of the weights that `save_pretrained` writes into the config."""
    return hashlib.sha256(_serialised(encoder, beside)).hexdigest()


@contextmanager
def reading(folder: str | Path) -> Iterator[None]:
    """Turn whatever a damaged folder leads to into an error that names it."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:
        what = f"its config lacks {error}" if isinstance(error, KeyError) else brief(error)
        raise ModelFileError(f"{folder} cannot be loaded: {what}") from error


def is_registered(encoder: nn.Module) -> bool:
    """Tell whether an encoder can be built again from its config alone."""
    return type(encoder) in ENCODERS.values()


def module_of(encoder: nn.Module) -> nn.Module:
    """Return the module a user passed as encoder, without what was put around it."""
    return encoder.module if isinstance(encoder, ForeignEncoder) else encoder


def qualified_name(thing: object) -> str:
    """Return module and name of a class or function, or those of an object's class; a partial is its function."""
    thing = getattr(thing, "func", thing)
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def plain_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as they come back from a file; functions and classes become their names."""

    def plain(value: object) -> object:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        if callable(value):
            return qualified_name(value)
        raise TypeError(f"{value!r} is neither a number, text, list nor table")

    try:
        written: dict[str, Any] = json.loads(json.dumps(dict(values), default=plain, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"The settings of this model cannot be written as JSON: {error}.") from error
    return written


def check_weights(
    source: str,
    weights: Mapping[str, Tensor],
    wanted: Mapping[str, Tensor],
    *,
    error: type[ModelFileError | InputError] = ModelFileError,
) -> None:
    """Refuse weights that lack or add a tensor, have one of another shape or type, or hold NaN, by name."""

    def form(tensor: Tensor | None) -> str:
        if tensor is None:
            return "absent"
        return f"{'' if tensor.is_floating_point() else 'whole numbers '}{tuple(tensor.shape)}"

    both = {name: (form(weights.get(name)), form(wanted.get(name))) for name in sorted({**weights, **wanted})}
    wrong = [f"{name} is {there} instead of {right}" for name, (there, right) in both.items() if there != right]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise error(f"{source} does not hold the weights of this encoder: {'; '.join(wrong[:3])}{more}.")
    if lost := sorted(name for name, tensor in weights.items() if not tensor.isfinite().all()):
        raise error(f"{source} holds NaN or inf in {', '.join(lost[:3])}. Train and save it again.")


def _serialised(encoder: Encoder, beside: Mapping[str, Tensor], half: bool = False) -> bytes:
    state = {**module_of(encoder).state_dict(), **{BESIDE + name: tensor for name, tensor in beside.items()}}
    if half:
        state = {name: _halved(tensor) for name, tensor in state.items()}
    # Cloned, because tensors that share memory, as tied weights do, cannot be written.
    return save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()})


def _halved(tensor: Tensor) -> Tensor:
    """Keep 16 bits where they are fine and wide enough for every row; what is no matrix takes little room as it is."""
    if not tensor.is_floating_point() or tensor.ndim < 2:
        return tensor
    halved, rows = tensor.half(), tensor.flatten(1)
    error = (halved.flatten(1).to(tensor.dtype) - rows).abs().amax(dim=1)
    return halved if (error <= 2**-10 * rows.abs().amax(dim=1)).all() else tensor


def _shape(encoder: Encoder) -> dict[str, Any]:
    if is_registered(encoder):
        return {"name": encoder_name(encoder), **encoder.config()}
    known = {"class": encoder.describe(), "n_channels": encoder.n_channels}
    return {**known, "n_times": encoder.n_times} if isinstance(encoder, ForeignEncoder) else known


def _empty_encoder(folder: Path, shape: dict[str, Any], module: nn.Module | None) -> Encoder:
    """Return the encoder of this shape, or one around a copy of the module.

    A registered one has no memory for its weights yet, however large they are said to be.
    """
    if "name" not in shape:
        if not isinstance(module, nn.Module):
            raise ModelFileError(
                f"{folder} holds the weights of a {shape['class']}, a class that dicot does not know. Pass such a "
                "module again: TimeSeriesEmbedder.from_pretrained(folder, encoder=module)."
            )
        return as_encoder(deepcopy(module).cpu(), shape["n_channels"], shape.get("n_times", 1))
    name = shape.pop("name")
    if module is not None:
        raise InputError(f"it holds the registered encoder {name!r}, which needs no module. Leave it out.")
    with torch.device("meta"):
        encoder = build_encoder(name, shape)
    if unsaved := {buffer for buffer, _ in encoder.named_buffers()} - encoder.state_dict().keys():
        raise InputError(f"{', '.join(sorted(unsaved))} of the encoder {name!r} are not saved with its weights.")
    return encoder


def _tensors(
    folder: Path, config: Mapping[str, Any], wanted: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the encoder's weights and the tensors beside it, both as the config has them."""
    beside = {
        BESIDE + name: torch.empty(form["shape"], dtype=lookup(TYPES, form["type"], "type"), device="meta")
        for name, form in config.get("beside", {}).items()
    }
    everything = {**wanted, **beside}
    size = sum(tensor.numel() * tensor.itemsize for tensor in everything.values())
    tensors = load(_weights(folder, str(config["weights"]["sha256"]), most=2 * size + LARGEST_HEADER))
    check_weights(str(folder / WEIGHTS), tensors, everything)
    tensors = {name: tensor.to(everything[name].dtype) for name, tensor in tensors.items()}  # 16 bits become 32
    return {name: tensors[name] for name in wanted}, {name.removeprefix(BESIDE): tensors[name] for name in beside}


def _weights(folder: Path, digest: str, most: int) -> bytes:
    """Read the file with this hash; a save that was cut off leaves it under the name it had beside the old one."""
    usual = folder / WEIGHTS
    for path in (usual, folder / f"model-{digest[:16]}.safetensors", usual):  # renamed meanwhile, perhaps
        if path.is_file() and path.stat().st_size <= most:
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() == digest:
                return data
    raise ModelFileError(f"{usual} is missing, truncated or does not belong to its {CONFIG}. Copy or save it again.")


def _hash(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
