"""Head: what turns an embedding into the probabilities of classes, and the file that keeps it.

The file is .safetensors, never a pickle. It holds no case: only weights, scales and the names of the classes. Files of
earlier releases may hold a neighbour graph beside them, which still takes part in their probabilities.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save
from scipy.special import log_softmax, softmax
from sklearn.neighbors import NearestNeighbors

from dicot.core.errors import InputError, ModelFileError, brief
from dicot.core.storage import OPEN, check_format, check_hash, check_writable, format_of, with_hash, write_atomic
from dicot.data.cases import Array

FORMAT = "dicot-head"
FORMAT_VERSION = 1
SUFFIX = ".safetensors"
# The hash stands inside the only entry of the metadata: safetensors writes several in any order.
HASH_MARK = rb"\"sha256\": \""
SMALLEST = 1e-12  # probability

REGRESSION = ("mean", "factor", "coef", "intercept")
NEIGHBOURS = ("places", "settled", "directions")
# How far a probability moved along the graph of an earlier release, and how much the regression weighed beside it.
SPREADINGS: dict[str, tuple[float, float]] = {"none": (0.0, 1.0), "guesses": (0.5, 1.0), "labels": (0.8, 0.02)}


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The graph of a file of an earlier release: places (n, d) of its cases, and the probabilities there (n, K)."""

    places: Array
    settled: Array
    directions: Array  # (F, d): scaled features @ directions are a place
    count: int  # of neighbours that a new case asks
    spreading: str

    @cached_property
    def search(self) -> NearestNeighbors:
        return NearestNeighbors(n_neighbors=self.count, algorithm="brute").fit(self.places)

    def blended(self, scaled: Array, guesses: Array) -> Array:
        """Return the logarithms of guesses (N, K) mixed with what the nearest cases of the graph say."""
        reach, weight = SPREADINGS[self.spreading]
        nearest = self.search.kneighbors(scaled @ self.directions, return_distance=False)
        of_nearest = self.settled[nearest].mean(axis=1)
        return logarithm((1 - reach) * weight * guesses + reach * of_nearest)


@dataclass(frozen=True, eq=False)
class Head:
    """Embeddings (N, F) -> probabilities (N, K): standardised, logistic regression, one temperature."""

    classes: tuple[str, ...] | tuple[int, ...] | tuple[float, ...]
    mean: Array  # (F,)
    factor: Array  # (F,)
    coef: Array  # (K, F)
    intercept: Array  # (K,)
    temperature: float = 1.0
    neighbours: Neighbours | None = None  # only of a file of an earlier release
    model: str | None = None  # the hash of the model whose embeddings it takes, where that is known
    source: dict[str, Any] | None = None  # where this model is, and how recordings were cut for it: plain data

    @property
    def n_features(self) -> int:
        return len(self.mean)

    def predict_proba(self, X: Array) -> Array:
        """Return (N, K) probabilities in the order of `classes`."""
        scaled = (X - self.mean) * self.factor
        scores = scaled @ self.coef.T + self.intercept
        if self.neighbours is None:
            logs = log_softmax(scores, axis=1)
        else:
            logs = self.neighbours.blended(scaled, softmax(scores, axis=1))
        probabilities: Array = softmax(logs / self.temperature, axis=1)
        return probabilities

    def save(self, path: str | Path) -> Path:
        """Write the file, whole or not at all."""
        path = Path(path)
        check_head_file(path)
        arrays = {name: getattr(self, name) for name in REGRESSION}
        about: dict[str, Any] = {"classes": self.classes, "temperature": self.temperature, "model": self.model}
        if self.source is not None:
            about["source"] = self.source
        if self.neighbours is not None:
            arrays |= {name: getattr(self.neighbours, name) for name in NEIGHBOURS}
            about |= {"count": self.neighbours.count, "spreading": self.neighbours.spreading}
        config = {**format_of(FORMAT, FORMAT_VERSION), **about, "sha256": OPEN}
        tensors = {name: np.ascontiguousarray(array, np.float64) for name, array in arrays.items()}
        write_atomic(path, with_hash(save(tensors, {"dicot": json.dumps(config)}), HASH_MARK))
        return path

    @classmethod
    def load(cls, path: str | Path) -> Head:
        """Read what `save` wrote, or raise an error that says why this is not such a file."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"There is no file {path}. `dicot classify VECTORS --save {path}` writes one.")
        try:
            return cls._from_bytes(path, path.read_bytes())
        except ModelFileError:
            raise
        except Exception as error:  # whatever a damaged file leads to
            raise ModelFileError(f"{path} cannot be read ({brief(error)}). Save the classifier again.") from error

    @classmethod
    def _from_bytes(cls, path: Path, content: bytes) -> Head:
        header_length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + header_length])
        config = json.loads(header.get("__metadata__", {}).get("dicot", "null"))
        check_format(path, config, FORMAT, FORMAT_VERSION)
        check_hash(content, HASH_MARK)

        arrays = load(content)
        neighbours = None
        if "places" in arrays:
            graph = {name: arrays[name] for name in NEIGHBOURS}
            neighbours = Neighbours(**graph, count=config["count"], spreading=config["spreading"])
        values: dict[str, Any] = {name: arrays[name] for name in REGRESSION}
        values |= {name: config.get(name) for name in ("temperature", "model", "source")}
        return cls(tuple(config["classes"]), **values, neighbours=neighbours)


def logarithm(probabilities: Array) -> Array:
    logs: Array = np.log(np.maximum(probabilities, SMALLEST))
    return logs


def check_head_file(path: Path) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix != SUFFIX:
        raise InputError(f"{path} has the suffix {path.suffix!r}; a classifier is saved as {SUFFIX}.")
    check_writable(path)
