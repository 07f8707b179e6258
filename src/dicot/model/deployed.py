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
from dicot.data.conversion import Conversion
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
            metadata = self.session.get_modelmeta().custom_metadata_map
            if not has_hash(content, MARK) and metadata.get(SEAL) != CHANGED:
                raise ValueError(f"it has no hash, and its entry {SEAL!r} does not say {CHANGED!r}")
            self.about = check_format(self.path, json.loads(metadata.get(ABOUT, "null")), FORMAT, FORMAT_VERSION)
            self._check_sides()
            self.preparation_ = self._preparation()
        except (ModelFileError, MissingExtraError):
            raise
        except Exception as error:  # onnxruntime has a class of its own for each of many reasons
            raise ModelFileError(f"{path} cannot be loaded ({brief(error)}). Export the model again.") from error
        self.classes = tuple(self.about["classes"])
        self.n_features = self.about["n_features"]
        self._takes_float64 = self.session.get_inputs()[0].type == "tensor(double)"

    def _check_sides(self) -> None:
        """Refuse a file whose inputs and outputs are not those that it says it has."""
        values = (*self.session.get_inputs(), *self.session.get_outputs())
        sides = {value.name: value.shape[1] for value in values}
        told = {
            INPUT: self.about["n_channels"] or ANY_CHANNELS,
            VECTORS: self.about["n_features"],
            PROBABILITIES: len(self.about["classes"]) or None,
        }
        if any(sides.get(name) != size for name, size in told.items()):
            raise ValueError(f"it says {told} and does {sides}")

    def _preparation(self) -> Preparation:
        """Return what is decided case by case; scaling is in the file, which does nothing to cases of the rest."""
        policies = {name: self.about[name] for name in ("layout", "unequal", "missing", "n_times", "rate")}
        channels = self.about["channels"]
        if channels:
            channels = tuple(channels)
        return Preparation(**policies, n_channels=self.about["n_channels"], channels=channels)

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
        n_cases = sum(len(cases) for _, cases in groups)
        targets = [make(n_cases, width) for width in outputs.values()]
        for index, cases in groups:
            self._check_cases(cases)
            exact = replace(cases, dtype=np.float64) if self._takes_float64 else cases
            at_once = max(1, AT_ONCE // (cases.shape[1] * cases.shape[2]))
            for start in range(0, len(cases), at_once):
                rows = slice(start, start + at_once)
                results = self._run(list(outputs), exact[rows])
                is_usable = np.isfinite(results[0]).all(axis=1)
                if not is_usable.all():
                    named = name_cases(index[rows][~is_usable])
                    raise InputError(f"The values of {named} are too large for this model.")
                for target, values in zip(targets, results, strict=True):
                    write_rows(target, index[rows], values)
        return targets

    def _check_cases(self, cases: Conversion) -> None:
        """Warn of what float32 does not hold, and refuse to lengthen windows beyond memory, as a small file can ask."""
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

    def _run(self, outputs: list[str], windows: Array) -> list[Array]:
        try:
            results: list[Array] = self.session.run(outputs, {INPUT: windows})
        except Exception as error:  # a graph that another program changed may fail only now
            raise ModelFileError(
                f"{self.path} cannot be run by onnxruntime ({brief(error)}). Export the model again."
            ) from error
        return results


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
