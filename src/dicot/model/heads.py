"""A trained few-label classifier on disk: one .safetensors file, never pickle.

It holds what turns an embedding into probabilities. The cases of the fit are in it only where labels spread over the
neighbour graph, as places in that graph.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save
from scipy.special import log_softmax, softmax
from sklearn.neighbors import NearestNeighbors

from dicot import __version__
from dicot.core.errors import InputError, ModelFileError, brief
from dicot.core.storage import check_format, check_writable, write_atomic
from dicot.core.storage.seals import OPEN, check_seal, sealed
from dicot.data.cases import Array

FORMAT, FORMAT_VERSION = "dicot-head", 1
SUFFIX = ".safetensors"
# Of the hash, inside the only entry of the metadata: safetensors writes several in any order, another one each time.
MARK = rb"\"sha256\": \""
# How far a probability moves along the graph, and how much the logistic regression's guess of an unlabelled case
# weighs beside a label. Chosen on development sets, see docs/log.md.
SPREADINGS: dict[str, tuple[float, float]] = {"none": (0.0, 1.0), "guesses": (0.5, 1.0), "labels": (0.8, 0.02)}
SMALLEST = 1e-12  # probability
REGRESSION, NEIGHBOURS = ("mean", "factor", "coef", "intercept"), ("places", "settled", "directions")


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The neighbour graph as a new case needs it: places (n, d) of its cases, and the probabilities there (n, K)."""

    places: Array
    settled: Array
    directions: Array | None  # (F, d): scaled features @ directions are a place; None: they are one themselves
    count: int  # of neighbours that a new case asks
    spreading: str

    @cached_property
    def search(self) -> NearestNeighbors:
        """What finds the nearest places."""
        return NearestNeighbors(n_neighbors=self.count, algorithm="brute").fit(self.places)


@dataclass(frozen=True, eq=False)
class Head:
    """Embeddings (N, F) -> probabilities (N, K): standardised, logistic regression, neighbours, one temperature."""

    classes: tuple[str, ...] | tuple[int, ...] | tuple[float, ...]
    mean: Array  # (F,)
    factor: Array  # (F,)
    coef: Array  # (K, F)
    intercept: Array  # (K,)
    temperature: float = 1.0
    neighbours: Neighbours | None = None
    model: str | None = None  # the hash of the model whose embeddings it takes, where that is known

    @property
    def n_features(self) -> int:
        return len(self.mean)

    def predict_proba(self, X: Array) -> Array:
        """Return (N, K) probabilities in the order of `classes`."""
        scaled = (X - self.mean) * self.factor
        scores = scaled @ self.coef.T + self.intercept
        if self.neighbours is None:
            return tempered(log_softmax(scores, axis=1), self.temperature)
        own = scaled if self.neighbours.directions is None else scaled @ self.neighbours.directions
        near = self.neighbours.search.kneighbors(own, return_distance=False)
        reach, weight = SPREADINGS[self.neighbours.spreading]
        found = self.neighbours.settled[near].mean(axis=1)
        return tempered(logarithm((1 - reach) * weight * softmax(scores, axis=1) + reach * found), self.temperature)

    def save(self, path: str | Path) -> Path:
        """Write the file, whole or not at all."""
        path = Path(path)
        check_head_file(path)
        arrays = {name: getattr(self, name) for name in REGRESSION}
        about: dict[str, Any] = {"classes": self.classes, "temperature": self.temperature, "model": self.model}
        if self.neighbours is not None:
            arrays |= {name: getattr(self.neighbours, name) for name in NEIGHBOURS}
            arrays["directions"] = np.eye(self.n_features) if arrays["directions"] is None else arrays["directions"]
            about |= {"count": self.neighbours.count, "spreading": self.neighbours.spreading}
        config = {"format": FORMAT, "format_version": FORMAT_VERSION, "library_version": __version__, **about}
        config["sha256"] = OPEN
        plain = {name: np.ascontiguousarray(array, np.float64) for name, array in arrays.items()}
        write_atomic(path, sealed(save(plain, {"dicot": json.dumps(config)}), MARK))
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Head":
        """Read what `save` wrote, or raise an error that says why this is not such a file."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"There is no file {path}. `dicot classify VECTORS --save {path}` writes one.")
        try:
            data = path.read_bytes()
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            config = json.loads(header.get("__metadata__", {}).get("dicot", "null"))
            check_format(path, config, FORMAT, FORMAT_VERSION)
            check_seal(data, MARK)
            arrays = load(data)
            neighbours = None
            if "places" in arrays:
                own = {name: arrays[name] for name in NEIGHBOURS}
                neighbours = Neighbours(**own, count=config["count"], spreading=config["spreading"])
            own, known = {name: arrays[name] for name in REGRESSION}, tuple(config["classes"])
            head = cls(
                known, **own, temperature=config["temperature"], neighbours=neighbours, model=config.get("model")
            )
        except ModelFileError:
            raise
        except Exception as error:  # whatever a damaged file leads to
            raise ModelFileError(f"{path} cannot be read ({brief(error)}). Save the classifier again.") from error
        return head


def logarithm(probabilities: Array) -> Array:
    logs: Array = np.log(np.maximum(probabilities, SMALLEST))
    return logs


def tempered(logs: Array, temperature: float) -> Array:
    """Return the probabilities of these logarithms at a temperature."""
    probabilities: Array = softmax(logs / temperature, axis=1)
    return probabilities


def check_head_file(path: Path) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix != SUFFIX:
        raise InputError(f"{path} has the suffix {path.suffix!r}; a classifier is saved as {SUFFIX}.")
    check_writable(path)
