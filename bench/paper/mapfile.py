"""The file of maps: every test case of a data set in two dimensions, by contender."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.core.storage import write_atomic
from dicot.data.npyfile import load_npz

FACTS = ("labels", "data_set", "fingerprint", "seed", "steps", "titles")  # any other array is a map


@dataclass(frozen=True, eq=False)
class Maps:
    """Every test case of a data set in two dimensions, by contender, and what these maps depend on."""

    data_set: str
    fingerprint: str  # of the data
    seed: int
    steps: int  # of every training in a trial; 0: as many as the recipe says
    labels: NDArray[Any]  # (N,)
    points: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # (N, 2)
    titles: Mapping[str, str] = field(default_factory=dict)  # how the points came about


def write_maps(path: Path, maps: Maps) -> None:
    """Write the maps whole or not at all: one array (N, 2) under each contender's name, and the facts beside them."""
    titles = [maps.titles[name] for name in maps.points]
    facts = (maps.labels, maps.data_set, maps.fingerprint, maps.seed, maps.steps, titles)
    arrays: dict[str, Any] = {name: np.array(fact) for name, fact in zip(FACTS, facts, strict=True)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **(arrays | dict(maps.points)))
    write_atomic(path, buffer.getvalue())


def read_maps(path: Path) -> Maps:
    """Read what `write_maps` wrote, checked."""
    arrays = load_npz(path)
    missing = [name for name in FACTS if name not in arrays]
    if missing:
        raise InputError(
            f"{path} is no file of maps: {', '.join(missing)} is missing. `python -m bench paper` makes one."
        )
    labels, data_set, fingerprint, seed, steps, titles = (arrays.pop(name) for name in FACTS)
    try:
        _check_points(arrays, labels, titles)
        title_of = dict(zip(arrays, map(str, titles), strict=True))
        return Maps(str(data_set), str(fingerprint), int(seed), int(steps), labels, arrays, title_of)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged: {error}. Remove it and make it again.") from error


def _check_points(arrays: Mapping[str, Any], labels: NDArray[Any], titles: NDArray[Any]) -> None:
    """Raise a ValueError unless each map has a point for every label, and a title."""
    has_shapes = all(points.shape == (*labels.shape, 2) for points in arrays.values())
    has_numbers = all(points.dtype == np.float32 and np.isfinite(points).all() for points in arrays.values())
    has_titles = titles.shape == (len(arrays),)
    if not (has_shapes and has_numbers and has_titles and labels.ndim == 1):
        raise ValueError("its maps and labels do not fit together")
