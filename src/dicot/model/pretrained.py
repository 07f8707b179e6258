"""A trained encoder in a folder: config.json with its provenance, model.safetensors with its weights.

What was fitted beside the encoder, tensors by name, stands in the same file of weights; the config has their shapes.

An encoder that is registered is built from its config. Of any other module the folder holds the class's name and the
state dict; whoever loads it passes the module again.

The config names the hash of the weights and is what makes a folder a model. A model that replaces another one is put
beside it first: its weights as model-HASH.safetensors, then its config in place of the old one, and at last the weights
under their usual name. Whenever this is cut off, the config in place and the weights of its hash are one whole model.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from dicot import __version__
from dicot.core.errors import InputError, ModelFileError, OutputError, lookup
from dicot.core.storage import check_format, write_atomic, writing
from dicot.nets.encoders import ENCODERS, Encoder, ForeignEncoder, as_encoder, build_encoder, encoder_name

T = TypeVar("T")
FORMAT = "dicot-encoder"
FORMAT_VERSION = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
# What a save that was cut off may leave behind; the last letters are mkstemp's.
LEFT = re.compile(r"model-[0-9a-f]{16}\.safetensors|\.(config\.json|model-[0-9a-f]{16}\.safetensors)\.[a-z0-9_]{8}")
LARGEST_CONFIG = 2**26  # bytes, enough for the history of a million steps
MOST_BRACKETS = 1000  # in a config: bounds how deep it is and how much memory its text becomes
LARGEST_HEADER = 2**24  # bytes of a weights file beside the weights
BESIDE = "beside:"  # in front of the names of tensors that are not the encoder's, in the file of weights
TYPES = {str(kind).removeprefix("torch."): kind for kind in (torch.float32, torch.int64, torch.uint8)}  # that they have


def save_pretrained(
    directory: str | Path, encoder: Encoder, provenance: Mapping[str, Any], beside: Mapping[str, Tensor] | None = None
) -> Path:
    """Write the folder, in place of a model that is there; other files in it stay.

    `beside` are tensors that belong to the model and not to its encoder.
    """
    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the name of a folder to save a model in.")
    beside = dict(beside or {})
    weights = _serialised(encoder, beside)
    digest = hashlib.sha256(weights).hexdigest()
    config = plain_json(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "library_version": __version__,
            "encoder": _shape(encoder),
            "weights": {"file": WEIGHTS, "sha256": digest},
            **({"beside": {name: _form(tensor) for name, tensor in beside.items()}} if beside else {}),
            **provenance,
        }
    )
    text = json.dumps({**config, "sha256": _hash(config)}, indent=2) + "\n"
    if len(text) > LARGEST_CONFIG:
        raise InputError(f"The config of this model takes {len(text):,} bytes; {LARGEST_CONFIG:,} can be read again.")
    aside = folder / f"model-{digest[:16]}.safetensors"
    write_atomic(aside, weights)
    try:
        write_atomic(folder / CONFIG, text.encode())
    except OutputError:
        aside.unlink(missing_ok=True)
        raise
    with writing(folder):
        aside.replace(folder / WEIGHTS)
        for path in folder.iterdir():
            if LEFT.fullmatch(path.name):
                path.unlink(missing_ok=True)
    return folder


def weights_hash(encoder: Encoder, beside: Mapping[str, Tensor]) -> str:
    """Return the hash of the weights that `save_pretrained` writes into the config."""
    return hashlib.sha256(_serialised(encoder, beside)).hexdigest()


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
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(values), default=_plain, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"The settings of this model cannot be written as JSON: {error}.") from error
    return plain


def read_config(directory: str | Path) -> dict[str, Any]:
    """Return the config of a saved model, or raise an error that says why this is not one."""
    folder = Path(directory)
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is not a folder. A saved model is a folder with {CONFIG} and {WEIGHTS}.")
    path = folder / CONFIG
    if not path.is_file():
        raise ModelFileError(f"{folder} is not a saved model: it has no {CONFIG}. Make one with save_pretrained.")
    try:
        config = _parse(path)
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged ({error}). Save the model again.") from error
    return check_format(path, config, FORMAT, FORMAT_VERSION)


def from_pretrained(
    directory: str | Path, module: nn.Module | None = None
) -> tuple[Encoder, dict[str, Any], dict[str, Tensor]]:
    """Return the encoder in eval mode on the CPU, its config, and the tensors that were saved beside it.

    A model whose encoder is not registered needs the `module` it was saved with; it is copied, not changed.
    """
    (encoder, beside), config = _consistently(directory, lambda folder, config: _load(folder, config, module))
    return encoder, config, beside


def read_weights(directory: str | Path, wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a saved model, which must have the names and shapes of `wanted`."""
    return _consistently(directory, lambda folder, config: _matching_weights(folder, config, wanted))[0][0]


def _consistently(directory: str | Path, read: Callable[[Path, dict[str, Any]], T]) -> tuple[T, dict[str, Any]]:
    """Read a folder by its config, once more where it was replaced meanwhile."""
    folder = Path(directory)
    config = read_config(folder)
    try:
        return read(folder, config), config
    except ModelFileError:
        newer = read_config(folder)
        if newer == config:
            raise
    return read(folder, newer), newer


def check_config(directory: str | Path, config: Mapping[str, Any]) -> None:
    """Refuse a config that is not the one that was saved; those of older versions cannot be told."""
    rest = {name: value for name, value in config.items() if name != "sha256"}
    if config.get("sha256", _hash(rest)) != _hash(rest):
        raise ModelFileError(
            f"{Path(directory) / CONFIG} was changed after it was saved. Copy or save the model again, or, if the "
            'change is intended, remove its entry "sha256".'
        )


def check_types(directory: str | Path, what: str, values: Any, hints: Mapping[str, Any]) -> None:
    """Refuse a part of a config that is not a table of these names, or holds values of other types."""
    where = f"{what!r} in {Path(directory) / CONFIG}"
    if not isinstance(values, dict):
        raise ModelFileError(
            f"{where} must be a table of names and values; got {_shown(values)}. Save the model again."
        )
    wrong = [
        f"{name!r} is not known" if name not in hints else f"{name!r} cannot be {_shown(value)}"
        for name, value in values.items()
        if name not in hints or not _is(value, hints[name])
    ]
    if wrong:
        raise ModelFileError(f"{where} is damaged: {'; '.join(wrong[:3])}. Save the model again.")


def model_hash(directory: str | Path) -> str:
    """Return 64 hex digits that change with whatever a vector of a saved model depends on.

    Where it was saved, how long it trained and which version wrote it do not count.
    """
    config = read_config(directory)
    return _hash({name: config.get(name) for name in ("encoder", "weights", "chosen", "preparation")})


def arguments_of(kind: type) -> dict[str, Any]:
    """Return the arguments that a class is made with, and their types."""
    return {name: hint for name, hint in get_type_hints(kind.__init__).items() if name != "return"}  # type: ignore[misc]


def _parse(path: Path) -> Any:
    if path.stat().st_size > LARGEST_CONFIG:
        raise ValueError(f"{path.stat().st_size:,} bytes are more than a config has")
    data = path.read_bytes()
    if data.count(b"[") + data.count(b"{") > MOST_BRACKETS:
        raise ValueError(f"more than {MOST_BRACKETS} brackets are more than a config has")
    return json.loads(data.decode(), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _load(folder: Path, config: Mapping[str, Any], module: nn.Module | None) -> tuple[Encoder, dict[str, Tensor]]:
    with _unreadable(folder):
        shape = _checked_shape(folder, config.get("encoder"))
        if "class" in shape:
            return _given_encoder(folder, config, shape, module)
        if module is not None:
            raise InputError(f"it holds the registered encoder {shape['name']!r}, which needs no module. Leave it out.")
        encoder = _empty_encoder(folder, shape)
        weights, beside = _matching_weights(folder, config, encoder.state_dict())
        # Without drawing weights that are replaced at once: the caller's random state stays as it is.
        encoder.to_empty(device="cpu").load_state_dict(weights)
    return encoder.eval(), beside


def _serialised(encoder: Encoder, beside: Mapping[str, Tensor]) -> bytes:
    """Return the file of weights."""
    state = {**module_of(encoder).state_dict(), **{BESIDE + name: tensor for name, tensor in beside.items()}}
    # Cloned, because tensors that share memory, as tied weights do, cannot be written.
    return save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()})


@contextmanager
def _unreadable(folder: Path) -> Iterator[None]:
    """Turn whatever a damaged folder leads to into an error that names it."""
    try:
        yield
    except (OSError, LookupError, TypeError, ValueError, ArithmeticError, RuntimeError, SafetensorError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{folder} cannot be loaded: {error}") from error


def _shape(encoder: Encoder) -> dict[str, Any]:
    """Say in plain values which encoder it is."""
    if is_registered(encoder):
        return {"name": encoder_name(encoder), **encoder.config()}
    known = {"class": encoder.describe(), "n_channels": encoder.n_channels}
    return {**known, "n_times": encoder.n_times} if isinstance(encoder, ForeignEncoder) else known


def _checked_shape(folder: Path, shape: Any) -> dict[str, Any]:
    if not isinstance(shape, dict) or not isinstance(shape.get("name", shape.get("class")), str):
        raise ModelFileError(f"{folder / CONFIG} does not say which encoder it is. Save the model again.")
    if "class" in shape:
        check_types(folder, "encoder", shape, {"class": str, "n_channels": int, "n_times": int})
    return shape


def _given_encoder(
    folder: Path, config: Mapping[str, Any], shape: Mapping[str, Any], module: nn.Module | None
) -> tuple[Encoder, dict[str, Tensor]]:
    """Return a copy of the module with the saved weights, as an encoder for cases of the saved shape."""
    if module is None:
        raise ModelFileError(
            f"{folder} holds the weights of a {shape['class']}, a class that dicot does not know. Pass the module "
            "again: TimeSeriesEmbedder.from_pretrained(folder, encoder=module)."
        )
    if not isinstance(module, nn.Module):
        raise InputError(f"encoder must be a module, an instance of {shape['class']}; got {module!r}.")
    module = deepcopy(module).cpu()
    weights, beside = _matching_weights(folder, config, module.state_dict())
    module.load_state_dict(weights)
    return as_encoder(module, shape["n_channels"], shape.get("n_times", 1)).eval(), beside


def _matching_weights(
    folder: Path, config: Mapping[str, Any], wanted: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the encoder's weights and the tensors beside it, both as the config has them."""
    with _unreadable(folder):
        check_types(folder, "weights", config.get("weights"), {"file": str, "sha256": str})
        everything = {**wanted, **_wanted_beside(folder, config.get("beside", {}))}
        tensors = load(_weights(folder, config["weights"]["sha256"], most=2 * _size(everything) + LARGEST_HEADER))
        check_weights(str(folder / WEIGHTS), tensors, everything)
    weights = {name: tensors[name] for name in wanted}
    return weights, {name.removeprefix(BESIDE): tensors[name] for name in tensors.keys() - wanted.keys()}


def _form(tensor: Tensor) -> dict[str, Any]:
    return {"shape": list(tensor.shape), "type": str(tensor.dtype).removeprefix("torch.")}


def _wanted_beside(folder: Path, forms: Any) -> dict[str, Tensor]:
    """Return tensors without memory for what the config says to be beside the encoder."""
    check_types(folder, "beside", forms, dict.fromkeys(forms if isinstance(forms, dict) else (), Mapping[str, Any]))
    wanted = {}
    for name, form in forms.items():
        check_types(folder, f"beside {name}", form, {"shape": Sequence[int], "type": str})
        shape, kind = form["shape"], lookup(TYPES, form["type"], "type of numbers")
        if min(shape, default=0) < 0:
            raise ModelFileError(f"{folder / CONFIG} is damaged: {name!r} has the shape {shape}. Save the model again.")
        wanted[BESIDE + name] = torch.empty(shape, dtype=kind, device="meta")
    return wanted


def _empty_encoder(folder: Path, shape: Mapping[str, Any]) -> Encoder:
    """Build the encoder of this shape without memory for its weights, however large they are said to be."""
    arguments = {name: value for name, value in shape.items() if name != "name"}
    check_types(folder, "encoder", arguments, arguments_of(lookup(ENCODERS, shape["name"], "encoder")))
    with torch.device("meta"):
        encoder = build_encoder(shape["name"], arguments)
    unsaved = {name for name, _ in encoder.named_buffers()} - encoder.state_dict().keys()
    if unsaved:
        raise InputError(
            f"{', '.join(sorted(unsaved))} of the encoder {shape['name']!r} are not saved with its weights."
        )
    return encoder


def _weights(folder: Path, digest: str, most: int) -> bytes:
    """Read the file with this hash; a save that was cut off leaves it under the name it had beside the old one."""
    usual = folder / WEIGHTS
    for path in (usual, folder / f"model-{digest[:16]}.safetensors", usual):  # renamed meanwhile, perhaps
        if path.is_file() and path.stat().st_size <= most:
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() == digest:
                return data
    if not usual.is_file():
        raise ModelFileError(f"{folder} cannot be loaded: it has no {WEIGHTS}. Copy or save it again.")
    raise ModelFileError(f"{usual} is truncated or does not belong to its {CONFIG}. Copy or save it again.")


def _size(weights: Mapping[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.itemsize for tensor in weights.values())


def check_weights(
    source: str,
    weights: Mapping[str, Tensor],
    wanted: Mapping[str, Tensor],
    *,
    error: type[ModelFileError | InputError] = ModelFileError,
) -> None:
    """Refuse weights that lack or add a tensor, have one of another shape, or hold NaN; the error names them."""
    wrong = [
        f"{name} {_difference(weights.get(name), wanted.get(name))}"
        for name in sorted(weights.keys() | wanted.keys())
        if _difference(weights.get(name), wanted.get(name))
    ]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise error(f"{source} does not hold the weights of this encoder: {'; '.join(wrong[:3])}{more}.")
    if lost := sorted(name for name, tensor in weights.items() if not tensor.isfinite().all()):
        raise error(f"{source} holds NaN or inf in {', '.join(lost[:3])}. Train and save it again.")


def _difference(there: Tensor | None, wanted: Tensor | None) -> str:
    """Say how two tensors of one name differ; empty where one may stand for the other."""
    if there is None:
        return "is missing"
    if wanted is None:
        return "is not part of it"
    if there.shape != wanted.shape:
        return f"has shape {tuple(there.shape)} instead of {tuple(wanted.shape)}"
    if there.is_floating_point() != wanted.is_floating_point():
        return f"is {there.dtype} instead of {wanted.dtype}"
    return ""


def _hash(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _plain(value: object) -> object:
    """Turn what settings may hold beside JSON's values into these."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if callable(value):
        return qualified_name(value)
    raise TypeError(f"{value!r} is neither a number, text, list nor table")


def _is(value: Any, hint: Any) -> bool:
    """Tell whether a value that was read from JSON may stand for one of this type."""
    if hint is Any:
        return True
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is(value, one) for one in arguments)
    if origin is tuple and isinstance(value, list) and Ellipsis not in arguments:
        return len(value) == len(arguments) and all(map(_is, value, arguments))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, list) and all(_is(part, arguments[0]) for part in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)
    if hint in (int, bool, str, NoneType):
        return type(value) is hint
    return False


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond float64
        return False


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
