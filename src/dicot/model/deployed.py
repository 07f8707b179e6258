"""OnnxEmbedder: embeddings from an exported file, with onnxruntime and without torch."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dicot.core.errors import InputError, ModelFileError, brief, is_whole, need_extra
from dicot.core.processes.budget import memory_of, refuse_beyond
from dicot.core.storage import check_format
from dicot.core.storage.seals import check_seal, has_seal
from dicot.data.collection import check_rate
from dicot.data.conversion import Conversion, swallows
from dicot.data.pieces import write_rows
from dicot.data.policies import MISSING, UNEQUAL, Array, name_cases
from dicot.data.preparation import Preparation

FORMAT, FORMAT_VERSION = "dicot-onnx", 1
INPUT, VECTORS, PROBABILITIES = "window", "embedding", "probabilities"
ABOUT = "dicot"  # the entry of the file's metadata that holds everything, as JSON
SEAL = "dicot.sha256"  # the entry with the hash of the file
CHANGED = "changed"  # what stands there instead once another program has changed the file on purpose
MARK = f"{SEAL}\x12@".encode()  # that entry in the file's bytes: its name, and then text of 64 characters
PER_TIME_STEP = 4096  # bytes that a window takes in a graph of an encoder as large as the default's, at least
AT_ONCE = 2**17  # values of windows that go through together: what is made of them is some thousand times as much
T = TypeVar("T", bound=Any)


class OnnxEmbedder:
    """What `dicot export` wrote, with the checks of the model that it came from.

    X is whatever `TimeSeriesEmbedder.transform` takes, in float32: channels of `Windows` are put in order, another
    number of channels or another rate is refused, and so is what the model's policies refuse.

    Parameters
    ----------
    path : an .onnx file
    threads : that onnxruntime uses; None leaves it to onnxruntime
    data : the content of the file, where that is at hand

    Attributes
    ----------
    about : what the file says of itself: channels, rate, n_times, policies, the vector, the hash of the model
    classes : the labels that `predict_proba` has a column for; empty where the file has no classifier
    n_features : the length of a vector
    """

    def __init__(self, path: str | Path, *, threads: int | None = None, data: bytes | None = None) -> None:
        self.path = Path(path)
        content = _content(self.path) if data is None else data
        self.session = _session(self.path, threads, content)
        try:
            metadata = self.session.get_modelmeta().custom_metadata_map
        except UnicodeDecodeError as error:
            raise ModelFileError(f"{self.path} is damaged ({brief(error)}). Export the model again.") from error
        self.about = _about(self.path, metadata)
        try:
            _refuse_unsealed(content, metadata)
            _refuse_forged(self.about, self.session)
            # Scaling is in the file; all else is decided case by case, and the file does nothing to such cases.
            known = {name: self.about[name] for name in ("unequal", "missing", "n_channels", "n_times", "rate")}
            names = self.about["channels"]
            self.preparation_ = Preparation(**known, channels=names and tuple(names))
            self.classes = tuple(self.about["classes"])
            self.n_features = int(self.about["n_features"])
        except (LookupError, TypeError, ValueError) as error:
            raise ModelFileError(f"{self.path} is damaged ({brief(error)}). Export the model again.") from error

    def transform(self, X: Any, *, layout: str | None = None) -> Array:
        """Return (N, F) embeddings in float32; `layout` is "nct" or "ntc", by default the model's."""
        return self.transform_into(X, lambda n, width: np.empty((n, width), np.float32), layout=layout)

    def transform_into(self, X: Any, make: Callable[[int, int], T], *, layout: str | None = None) -> T:
        """Write embeddings, some rows at a time, into what `make(N, F)` returns, as `TimeSeriesEmbedder` does."""
        return self._through(X, VECTORS, self.n_features, make, layout)

    def predict_proba(self, X: Any, *, layout: str | None = None) -> Array:
        """Return (N, K) probabilities in the order of `classes`."""
        if not self.classes:
            raise InputError(f"{self.path} has no classifier. Export it with one: dicot export ... --classifier FILE.")
        width = len(self.classes)
        return self._through(X, PROBABILITIES, width, lambda n, k: np.empty((n, k), np.float32), layout)

    def _through(self, X: Any, output: str, width: int, make: Callable[[int, int], T], layout: str | None) -> T:
        preparation = replace(self.preparation_, layout=layout or self.about["layout"])
        groups = list(preparation.apply(X))
        target = make(sum(len(cases) for _, cases in groups), width)
        for index, cases in groups:
            self._refuse_rounding(cases)
            if cases.length > cases.lengths[cases.index].max():
                refuse_beyond(
                    memory_of(None),
                    cases.length * PER_TIME_STEP,
                    f"Lengthening windows to n_times={cases.length}, as {self.path} says,",
                    "If its model was trained on windows of that length, use it where there is more memory. If not, "
                    "the file was made to do harm: export the model again.",
                    "half of what is free",
                )
            at_once = max(1, AT_ONCE // (cases.shape[1] * cases.shape[2]))
            for start in range(0, len(cases), at_once):
                rows = slice(start, start + at_once)
                values = self._run(output, cases[rows])
                bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
                if len(bad):
                    raise InputError(f"The values of {name_cases(index[rows][bad])} are too large for this model.")
                write_rows(target, index[rows], values)
        return target

    def _run(self, output: str, cases: Any) -> Array:
        try:
            values: Array = self.session.run([output], {INPUT: cases})[0]
        except Exception as error:  # as in _session: a graph that another program changed may fail only now
            raise ModelFileError(
                f"{self.path} cannot be run by onnxruntime ({brief(error)}). Export the model again."
            ) from error
        return values

    def _refuse_rounding(self, cases: Conversion) -> None:
        """The model scales in float64; its file is given float32, which must tell the values apart."""
        if self.about["scale"] is not None and swallows(cases):
            raise InputError(
                f"The values of a channel differ by less than float32 can tell apart at their size, and {self.path} "
                "takes float32. Subtract what they have in common before you fit and export a model."
            )


def _session(path: Path, threads: int | None, data: bytes) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise need_extra("onnxruntime", "onnx", "An ONNX file") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class of its own for each of many reasons
        raise ModelFileError(
            f"{path} cannot be loaded by onnxruntime ({brief(error)}). Export the model again."
        ) from error


def _content(path: Path) -> bytes:
    """Return the content of a file, whose hash must be right where it has one."""
    if not path.is_file():
        raise ModelFileError(f"There is no file {path}. `dicot export MODEL --onnx {path}` writes one.")
    try:
        data = path.read_bytes()
        if has_seal(data, MARK):
            check_seal(data, MARK)
    except (OSError, ValueError) as error:
        raise ModelFileError(
            f"{path} is damaged, or was changed by another program ({error}). Export the model again; where the change "
            f"is intended, set the entry {SEAL!r} of its metadata to {CHANGED!r}."
        ) from error
    return data


def _refuse_unsealed(data: bytes, metadata: Mapping[str, str]) -> None:
    if not has_seal(data, MARK) and metadata.get(SEAL) != CHANGED:
        raise ValueError(f"it has no hash, and its entry {SEAL!r} does not say {CHANGED!r}")


def _about(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    try:
        config = json.loads(metadata.get(ABOUT, "null"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged ({brief(error)}). Export the model again.") from error
    return check_format(path, config, FORMAT, FORMAT_VERSION)


def _refuse_forged(about: Mapping[str, Any], session: Any) -> None:
    """Refuse what no export says, or what its own graph does not do."""
    for name, known in {"layout": ("nct", "ntc"), "unequal": tuple(UNEQUAL), "missing": tuple(MISSING)}.items():
        if about[name] not in known:
            raise ValueError(f"{name!r} is {about[name]!r}")
    if about["scale"] not in (None, "dataset", "case"):
        raise ValueError(f"'scale' is {about['scale']!r}")
    if about["rate"] is not None:
        check_rate(about["rate"])
    for name in ("n_features", "n_channels", "n_times"):
        if not is_whole(about[name], 1):
            raise ValueError(f"{name!r} is {about[name]!r}")
    for name, kinds in {"channels": (str,), "classes": (str, int, float)}.items():
        values = about[name]
        if not (values is None and name == "channels") and not (
            isinstance(values, list) and all(isinstance(value, kinds) for value in values)
        ):
            raise ValueError(f"{name!r} is {values!r}")
    made = {one.name: one.shape[1] for one in (*session.get_inputs(), *session.get_outputs())}
    said = {INPUT: about["n_channels"], VECTORS: about["n_features"], PROBABILITIES: len(about["classes"]) or None}
    if any(made.get(name) != number for name, number in said.items()):
        raise ValueError(f"it says {said} and does {made}")
    if about["channels"] is not None and len(about["channels"]) != about["n_channels"]:
        raise ValueError(f"it names {len(about['channels'])} of {about['n_channels']} channels")
