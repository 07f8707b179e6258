"""The default model: `instant`, fitted on the windows at hand and kept in a folder beside the vectors that it makes.

Later windows are embedded by the model that is kept, so that old and new vectors compare.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError, ModelFileError
from dicot.data import Windows
from dicot.data.cases import Array, Cases
from dicot.data.collection import check_collection
from dicot.data.readers import Content
from dicot.data.stream import RecordingStream
from dicot.model.embedding import ENOUGH_CASES
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.presets import DEFAULT_PRESET
from dicot.model.runs import OtherModelError, pretrain_into

SEED = 1  # that of `dicot pretrain`, so that both fit the same model to the same windows
MOST_WINDOWS = ENOUGH_CASES  # that are drawn where there are more
MOST_BYTES = 2**29  # of their values


def fit_default(
    folder: Path,
    windows: Windows,
    *,
    missing: str | None = None,
    unequal: str = "error",
    device: str = "auto",
    overwrite: bool = False,
) -> str:
    """Fit the default model and keep it in a folder; return a sentence on what happened.

    The model that is there already stays, where it was fitted to the same windows. One that was fitted to others is
    refused unless it may `overwrite`.
    """
    model = TimeSeriesEmbedder(
        preset=DEFAULT_PRESET,
        features={"length": 0} if _are_all_equal(windows) else None,  # nothing tells how to compress their vectors
        random_state=SEED,
        device=device,
        prepare={"missing": missing or "error", "unequal": unequal},
    )
    try:
        return pretrain_into(folder, model, windows)
    except (OtherModelError, ModelFileError) as error:
        if not overwrite:
            raise InputError(
                f"{folder} holds a model that was not fitted to these windows. Choose another name for the vectors "
                "(--out), or replace the model (--overwrite)."
            ) from error
    return pretrain_into(folder, model, windows, overwrite=True)


def _are_all_equal(windows: Windows) -> bool:
    return all(np.array_equal(window, windows.x[0]) for window in windows.x[1:])


def sample_stream(stream: RecordingStream) -> Windows | None:
    """Draw windows of recordings to fit the default model to; None where no recording is as long as a window."""
    return stream.sample(MOST_WINDOWS, MOST_BYTES, SEED)


def sample_corpus(corpus: Cases) -> Windows:
    """Draw windows of a corpus to fit the default model to."""
    rows = _drawn_rows(len(corpus), 4 * corpus.n_channels * corpus.n_times)
    return Windows(np.ascontiguousarray(corpus[rows]), channels=corpus.channels, rate=corpus.rate)


def sample_cases(content: Content, missing: str | None) -> Windows:
    """Draw cases of a file or data set to fit the default model to; shorter ones are padded."""
    X = content.X
    longest = max(case.size for case in X) if isinstance(X, list) else X[0].size
    rows = _drawn_rows(len(X), 4 * longest)
    drawn = [X[row] for row in rows.tolist()] if isinstance(X, list) else X[rows]
    windows = check_collection(drawn, unequal="pad", missing=missing or "error")
    return replace(windows, channels=content.channels)


def _drawn_rows(n: int, n_bytes: int) -> Array:
    """Draw rows of cases that take so many bytes each, in ascending order; all where they are few."""
    most = max(1, min(MOST_WINDOWS, MOST_BYTES // n_bytes))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(SEED).choice(n, most, replace=False))
