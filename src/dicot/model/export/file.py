"""export_onnx: the graph of a whole model, what the file says of itself, and the comparison with torch."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dicot.core import __version__
from dicot.core.errors import ExportError, InputError
from dicot.core.storage import OPEN, check_writable, format_of, with_hash, write_atomic
from dicot.data.cases import Array
from dicot.data.preparation import Preparation
from dicot.model import deployed
from dicot.model.classifier import TimeSeriesClassifier
from dicot.model.deployed import PROBABILITIES, VECTORS
from dicot.model.embedding import embed
from dicot.model.estimator import TimeSeriesEmbedder, method_name
from dicot.model.export.graph import WholeModel, converted, name_sides, set_about
from dicot.model.export.windows import WindowPreparation
from dicot.model.fewlabels import FewLabelClassifier
from dicot.model.files import weights_hash
from dicot.model.head import Head
from dicot.model.vector.module import Composition, Vector
from dicot.model.vector.poolings import pooled_dim
from dicot.nets.encoders import Encoder

TOLERANCE = 1e-4  # difference of two vectors, relative to the length of torch's
BATCHES = (1, 5, 16)  # windows of each length that are compared
PREPARATION = ("n_channels", "n_times", "channels", "rate", "layout", "unequal", "missing", "scale")
LONGEST, MOST_CHANNELS = 600, 12  # of windows that are compared, where the model has none of its own
OFFSET = 1e9  # of every other window that is compared, where windows come in float64
SHORTEST = 9  # time steps of windows that are compared, where the model's own are not shorter


class Exported(NamedTuple):
    """What was written."""

    path: Path
    n_bytes: int
    difference: float  # the largest relative one between onnxruntime and torch
    lengths: tuple[int, ...]  # time steps of the windows that were compared


class _ModelParts(NamedTuple):
    """What a file consists of."""

    preparation: Preparation
    encoder: Encoder
    pooling: str
    composition: Composition
    head: Head | None
    trained: str  # how
    float64: bool = False  # whether windows come in float64


def export_onnx(
    model: TimeSeriesEmbedder | TimeSeriesClassifier,
    path: str | Path,
    *,
    classifier: FewLabelClassifier | Head | None = None,
    float64: bool = False,
    seed: int = 0,
) -> Exported:
    """Write a fitted model as one ONNX file that takes raw windows, float32 (batch, channels, time), of any length.

    With `float64` it takes float64, for channels whose signal stands on an offset that leaves nothing of it in float32.

    The output "embedding" holds what `transform` gives; with a classifier of such embeddings, or for a
    TimeSeriesClassifier, "probabilities" holds what `predict_proba` gives. Missing values, unequal length and scale are
    treated in the file by the model's own policies. What these refuse becomes NaN: a graph cannot raise an error.

    Before the file is put in its place it is compared with torch on random windows that the seed draws, of several
    lengths and batch sizes. Where any vector differs by more than 1e-4 of its length nothing is written.
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise InputError(f"{path} has the suffix {path.suffix!r}; give the name of an .onnx file.")
    check_writable(path)
    parts = _parts_of(model, classifier)._replace(float64=float64)
    data = with_hash(_as_onnx(parts).SerializeToString(), deployed.MARK)
    made = deployed.OnnxEmbedder(path, data=data)
    difference, lengths = _compare(made, parts, seed)
    if not difference <= TOLERANCE:
        raise ExportError(
            f"{path} was not written: onnxruntime and torch differ by {difference:.1e} of a vector's length on random "
            f"windows, more than {TOLERANCE:.0e}. Report this with the versions of both; torch embeds meanwhile."
        )
    write_atomic(path, data)
    return Exported(path, len(data), difference, lengths)


def _parts_of(model: Any, classifier: FewLabelClassifier | Head | None) -> _ModelParts:
    check_is_fitted(model)
    if isinstance(model, TimeSeriesClassifier):
        if classifier is not None:
            raise InputError("A TimeSeriesClassifier has its own classifier. Leave the other one out.")
        weight, bias = (values.detach().double().numpy() for values in (model.head_.weight, model.head_.bias))
        zeros = np.zeros(weight.shape[1])
        head = Head(tuple(model.classes_.tolist()), zeros, zeros + 1, weight, bias)
        return _ModelParts(model.preparation_, model.encoder_, model.pooling_, model.composition_, head, "classifier")
    if isinstance(classifier, FewLabelClassifier):
        check_is_fitted(classifier)
        classifier = classifier.head_
    if classifier is not None and classifier.n_features != model._n_features_out:
        raise InputError(
            f"The classifier takes vectors of {classifier.n_features} numbers; this model makes "
            f"{model._n_features_out}. Train it on vectors of this very model: dicot embed, then dicot classify --save."
        )
    composition, pooling = model.composition_, model.features_["pooling"]
    return _ModelParts(model.preparation_, model.encoder_, pooling, composition, classifier, method_name(model.method_))


def _as_onnx(parts: _ModelParts) -> Any:
    """Return the model as an ONNX one, with names, sides that are free, and what it says of itself."""
    about = _about(parts)
    n_channels = about["n_channels"] or deployed.ANY_CHANNELS
    outputs = {VECTORS: about["n_features"]}
    if parts.head is not None:
        outputs[PROBABILITIES] = len(about["classes"])
    preparation = WindowPreparation(parts.preparation, is_double=parts.float64)
    vector = Vector(parts.encoder, parts.pooling, parts.composition)
    module = WholeModel(preparation, vector, parts.head)
    model = converted(module, parts.preparation.n_channels, parts.float64, list(outputs))

    model.producer_name, model.producer_version = "dicot", __version__
    model.doc_string = f"{about['vector']} Input {deployed.INPUT!r}: raw windows (batch, {n_channels}, time)."
    name_sides(model, {deployed.INPUT: ("batch", n_channels, "time")})
    name_sides(model, {name: ("batch", width) for name, width in outputs.items()})
    set_about(model, {deployed.ABOUT: json.dumps(about), deployed.SEAL: OPEN})
    return model


def _about(parts: _ModelParts) -> dict[str, Any]:
    preparation, composition = parts.preparation, parts.composition
    beside = {
        "the vector of the encoder in the box": composition.box,
        "a bank of dilated kernels": composition.bank,
        "contests between kernels": composition.contests,
        "levels of the channels": composition.levels,
        "principal components of it all": composition.compression,
    }
    named = [name for name, part in beside.items() if part is not None]
    encoder = f"{type(parts.encoder).__name__} ({parts.trained}), pooled by {parts.pooling}"
    return {
        **format_of(deployed.FORMAT, deployed.FORMAT_VERSION),
        "vector": f"{', '.join([encoder, *named])}.",
        "n_features": composition.dim(pooled_dim(parts.encoder, parts.pooling)),
        "classes": [] if parts.head is None else list(parts.head.classes),
        # n_times are those of the training windows; others are taken too.
        **{name: getattr(preparation, name) for name in PREPARATION},
        "sha256": weights_hash(parts.encoder, composition.tensors()),
    }


def _compare(made: deployed.OnnxEmbedder, parts: _ModelParts, seed: int) -> tuple[float, tuple[int, ...]]:
    """Return the largest relative difference from torch over random windows, and their lengths."""
    preparation = replace(parts.preparation, layout="nct")
    differences, lengths = [], []
    for x in _random_windows(preparation, seed):
        if parts.float64:
            is_offset = (np.arange(len(x)) % 2 == 1) & (preparation.scale is None)
            x = x + np.where(is_offset, OFFSET, 0.0)[:, None, None]
        ((_, cases),) = preparation.apply(x)
        right = {VECTORS: embed(parts.encoder, cases, pooling=parts.pooling, composer=parts.composition, device="cpu")}
        if parts.head is not None:
            right[PROBABILITIES] = parts.head.predict_proba(right[VECTORS])
        for values, got in zip(right.values(), made.session.run(list(right), {deployed.INPUT: x}), strict=True):
            apart, size = (np.linalg.norm(rows, axis=1) for rows in (got - values, values))
            differences.append(np.max(apart / np.maximum(size, np.finfo(np.float32).tiny)))
        lengths.append(x.shape[2])
    return float(np.max(differences)), tuple(lengths)


def _random_windows(preparation: Preparation, seed: int) -> Iterator[Array]:
    """Yield windows (B, C, T): noise around waves, constant in places, of the training windows' length and of others.

    Where the model knows the mean and deviation of its channels, they have the same. One that takes any number of
    channels gets some.
    """
    rng, n_times = np.random.default_rng(seed), preparation.n_times or LONGEST
    others = rng.integers(min(SHORTEST, n_times), 2 * n_times + 1, size=len(BATCHES) - 1)
    for n, length in zip(BATCHES, (n_times, *others.tolist()), strict=True):
        shape = (n, preparation.n_channels or int(rng.integers(1, MOST_CHANNELS)), length)
        turns = rng.uniform(0, 20, size=(*shape[:2], 1)) * np.linspace(0, 1, length)
        x = np.sin(2 * np.pi * turns) + rng.normal(scale=0.3, size=shape)
        x[n // 2, :, length // 2 :] = x[n // 2, :, length // 2, None]
        if preparation.statistics is not None:
            x = x * preparation.statistics.std[:, None] + preparation.statistics.mean[:, None]
        yield x.astype(np.float32)
