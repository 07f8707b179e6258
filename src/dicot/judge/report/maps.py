"""Maps of embeddings as figures, and the file of embeddings that some are drawn from."""

import io
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, MissingDataError
from dicot.core.storage import write_atomic
from dicot.data.npyfile import load_npz
from dicot.judge.protocols import Features
from dicot.judge.protocols.subsets import stratified_cap
from dicot.judge.report.figures import map_panels
from dicot.judge.report.parts import Part
from dicot.use.projection import tsne

Array = NDArray[Any]

LABELS, DATA_SET = "labels", "data_set"
TAKEN = (LABELS, DATA_SET, "file", "allow_pickle")  # the last two are np.savez's own
POINTS = 800  # per panel


def check_features_file(path: Path, contenders: Collection[str]) -> None:
    """Refuse what `write_features` cannot write, before any work is done."""
    if path.suffix != ".npz":
        raise InputError(f"{path}: a file of embeddings ends in .npz; got {path.suffix or 'no suffix'!r}.")
    if clash := sorted(set(TAKEN) & set(contenders)):
        raise InputError(f"{path}: no contender in it may be called {' or '.join(clash)}. Rename the model's folder.")


def write_features(path: Path, data_set: str, labels: Array, embeddings: Mapping[str, Array]) -> None:
    """Write one array (N, F) under each contender's name, `labels` (N,) and the name of the data set."""
    check_features_file(path, embeddings)
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {LABELS: labels, DATA_SET: np.array(data_set), **embeddings}
    np.savez(buffer, **arrays)
    write_atomic(path, buffer.getvalue())


def maps(path: Path) -> Part:
    """Map each contender of a file that `write_features` wrote; one made by hand need not name the data set."""
    if not path.is_file():
        raise MissingDataError(f"There is no file of embeddings at {path}. `dicot evaluate --features` writes one.")
    arrays = load_npz(path)
    labels, data_set = arrays.pop(LABELS, None), str(arrays.pop(DATA_SET, ""))
    if labels is None or not arrays:
        raise InputError(f"{path} must hold `{LABELS}` and one array of embeddings per contender; got {list(arrays)}.")
    given = {name: Features(x, labels) for name, x in arrays.items()}
    flat = {name: tsne(one.x, seed=0, rows=stratified_cap(one.y, POINTS)) for name, one in given.items()}
    panels = {name: (map_.points, labels[map_.rows]) for name, map_ in flat.items()}
    title = f"Maps of the embeddings{f' of {data_set}' if data_set else ''}"
    text = by_title({name: map_.title for name, map_ in flat.items()})
    return Part(title, figures={"maps": partial(map_panels, panels)}, text=f"{text}.")


def by_title(titles: Mapping[str, str]) -> str:
    """Say how the maps came about, once for those that came about alike."""
    alike: dict[str, list[str]] = {}
    for name, title in titles.items():
        alike.setdefault(title, []).append(name)
    return "; ".join(f"{', '.join(names)}: {how}" for how, names in alike.items())
