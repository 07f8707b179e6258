"""OnnxEmbedder: embeddings from an exported file, with onnxruntime and without torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dicot.core.errors import InputError, MissingExtraError, ModelFileError, brief, need_extra
from dicot.core.memory import free_memory, refuse_beyond_half
from dicot.core.storage import check_format, check_hash, has_hash
from dicot.data.cases import Array, name_cases, write_rows
from dicot.data.preparation import Preparation, warn_of_unheld
from dicot.model.box import in_box

if TYPE_CHECKING:
    from dicot.model.estimator import TimeSeriesEmbedder

FORMAT, FORMAT_VERSION = "dicot-onnx", 1
INPUT, VECTORS, PROBABILITIES = "window", "embedding", "probabilities"
ANY_CHANNELS = "channels"  # the input's second side where a model takes any number of them
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
    about : what the file says of itself: channels, rate, n_times, policies, the vector, the hash of the model;
        n_channels is 0 where it takes any number
    classes : the labels that `predict_proba` has a column for; empty where the file has no classifier
    n_features : the length of a vector
    """

    def __init__(self, path: str | Path, *, threads: int | None = None, data: bytes | None = None) -> None:
        self.path = Path(path)
        if data is None and not self.path.is_file():
            raise ModelFileError(f"There is no file {path}. `dicot export MODEL --onnx {path}` writes one.")
        try:
            content = _checked(self.path.read_bytes()) if data is None else data
            self.session = _session(threads, content)
            self._takes_float64 = self.session.get_inputs()[0].type == "tensor(double)"
            metadata = self.session.get_modelmeta().custom_metadata_map
            if not has_hash(content, MARK) and metadata.get(SEAL) != CHANGED:
                raise ValueError(f"it has no hash, and its entry {SEAL!r} does not say {CHANGED!r}")
            self.about = check_format(self.path, json.loads(metadata.get(ABOUT, "null")), FORMAT, FORMAT_VERSION)
            made = {one.name: one.shape[1] for one in (*self.session.get_inputs(), *self.session.get_outputs())}
            n_classes = len(self.about["classes"]) or None
            said = {
                INPUT: self.about["n_channels"] or ANY_CHANNELS,
                VECTORS: self.about["n_features"],
                PROBABILITIES: n_classes,
            }
            if any(made.get(name) != number for name, number in said.items()):
                raise ValueError(f"it says {said} and does {made}")
            # Scaling is in the file; all else is decided case by case, and the file does nothing to such cases.
            known = {name: self.about[name] for name in ("layout", "unequal", "missing", "n_times", "rate")}
            names, n_channels = self.about["channels"], self.about["n_channels"]
            self.preparation_ = Preparation(**known, n_channels=n_channels, channels=names and tuple(names))
        except (ModelFileError, MissingExtraError):
            raise
        except Exception as error:  # onnxruntime has a class of its own for each of many reasons
            raise ModelFileError(f"{path} cannot be loaded ({brief(error)}). Export the model again.") from error
        self.classes = tuple(self.about["classes"])
        self.n_features = self.about["n_features"]

    def transform(self, X: Any, *, layout: str | None = None) -> Array:
        """Return (N, F) embeddings in float32; `layout` is "nct" or "ntc", by default the model's."""
        return self.transform_into(X, new_rows, layout=layout)

    def transform_into(self, X: Any, make: Callable[[int, int], T], *, layout: str | None = None) -> T:
        """Write embeddings, some rows at a time, into what `make(N, F)` returns, as `TimeSeriesEmbedder` does."""
        return self._through(X, {VECTORS: self.n_features}, make, layout)[0]

    def predict_proba(self, X: Any, *, layout: str | None = None) -> Array:
        """Return (N, K) probabilities in the order of `classes`."""
        return self._through(X, {PROBABILITIES: self._n_classes}, new_rows, layout)[0]

    def transform_and_predict(self, X: Any, *, layout: str | None = None) -> Sequence[Array]:
        """Return embeddings (N, F) and probabilities (N, K) by one pass."""
        return self._through(X, {VECTORS: self.n_features, PROBABILITIES: self._n_classes}, new_rows, layout)

    @property
    def _n_classes(self) -> int:
        if not self.classes:
            raise InputError(f"{self.path} has no classifier. Export it with one: dicot export ... --classifier FILE.")
        return len(self.classes)

    def _through(
        self, X: Any, outputs: dict[str, int], make: Callable[[int, int], T], layout: str | None
    ) -> Sequence[T]:
        preparation = self.preparation_ if layout is None else replace(self.preparation_, layout=layout)
        groups = list(preparation.apply(X))
        targets = [make(sum(len(cases) for _, cases in groups), width) for width in outputs.values()]
        for index, cases in groups:
            if not self._takes_float64:
                remedy = "Export the model again, with --float64, or float64=True in Python."
                warn_of_unheld(cases, self.about["channels"], f"in which {self.path} takes windows,", remedy)
            if cases.length > cases.lengths[cases.index].max():
                refuse_beyond_half(
                    free_memory(),
                    cases.length * PER_TIME_STEP,
                    f"Lengthening windows to n_times={cases.length}, as {self.path} says,",
                    "If its model was not trained on such windows, export the model again.",
                )
            exact = replace(cases, dtype=np.float64) if self._takes_float64 else cases
            at_once = max(1, AT_ONCE // (cases.shape[1] * cases.shape[2]))
            for start in range(0, len(cases), at_once):
                rows = slice(start, start + at_once)
                try:
                    made = self.session.run(list(outputs), {INPUT: exact[rows]})
                except Exception as error:  # a graph that another program changed may fail only now
                    said = f"{self.path} cannot be run by onnxruntime ({brief(error)})."
                    raise ModelFileError(f"{said} Export the model again.") from error
                bad = np.flatnonzero(~np.isfinite(made[0]).all(axis=1))
                if len(bad):
                    raise InputError(f"The values of {name_cases(index[rows][bad])} are too large for this model.")
                for target, values in zip(targets, made, strict=True):
                    write_rows(target, index[rows], values)
        return targets


def new_rows(n: int, width: int) -> Array:
    return np.empty((n, width), np.float32)


def open_model(model: str | Path) -> TimeSeriesEmbedder | OnnxEmbedder:
    """Load a folder or a name in the box, which takes torch, or an .onnx file, which does not."""
    if Path(model).suffix == ".onnx":
        return OnnxEmbedder(model)
    from dicot.model.estimator import TimeSeriesEmbedder

    return TimeSeriesEmbedder.from_pretrained(model)


def hash_of(model: str | Path) -> str:
    """Tell models apart. An .onnx file is not the model that it was made of: their vectors differ in rounding."""
    if Path(model).suffix == ".onnx":
        return hashlib.sha256(Path(model).read_bytes()).hexdigest()

    from dicot.model.files import model_hash

    return model_hash(in_box(model))


def _session(threads: int | None, data: bytes) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise need_extra("onnxruntime", "onnx", "An ONNX file") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _checked(data: bytes) -> bytes:
    """Return the content of a file, whose hash must be right where it has one."""
    if has_hash(data, MARK):
        try:
            check_hash(data, MARK)
        except ValueError as error:
            said = f"{error}: it is damaged, or was changed by another program; if that is intended"
            raise ValueError(f"{said}, set the entry {SEAL!r} of its metadata to {CHANGED!r}") from error
    return data
