"""Maps of embeddings side by side, from a file of embeddings."""

from pathlib import Path

import numpy as np

from dicot.errors import InputError, MissingDataError
from dicot.report.parts import Part
from dicot.report.projection import tsne
from dicot.report.scatter import map_panels

LABELS = "labels"
POINTS = 800  # per panel


def maps(path: Path) -> list[Part]:
    """A panel per contender. The .npz file holds `labels` (N,) and, under each contender's name, embeddings (N, F)."""
    if not path.is_file():
        raise MissingDataError(f"There is no file of embeddings at {path}.")
    with np.load(path, allow_pickle=False) as held:
        arrays = dict(held)
    labels = arrays.pop(LABELS, None)
    if labels is None or not arrays:
        raise InputError(f"{path} must hold `{LABELS}` and one array of embeddings per contender; got {list(arrays)}.")
    flat = {name: tsne(x, labels, seed=0, limit=POINTS) for name, x in arrays.items()}
    panels = {name: (map_.points, labels[map_.rows]) for name, map_ in flat.items()}
    text = "; ".join(f"{name}: {map_.title}" for name, map_ in flat.items())
    return [Part("Maps of the embeddings", figures={"maps": map_panels(panels)}, text=f"{text}.")]
