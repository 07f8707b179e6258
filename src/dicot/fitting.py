"""What the scikit-learn faces of the library share: seeds, column counts, training and embedding with a bar."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dicot.embedding import embed
from dicot.encoders import Encoder
from dicot.errors import InputError, is_whole
from dicot.progress import Bar
from dicot.train import History, Run, pretrain
from dicot.train.draws import weights_seed
from dicot.windows.policies import Array
from dicot.windows.preparation import Preparation

Embeddings = NDArray[np.float32]


def seed_from(random_state: int | np.random.RandomState | None) -> int:
    """The seed of a run; None draws a fresh one without touching numpy's global state."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if not is_whole(random_state, 0):
        raise InputError(f"random_state must be a whole number, 0 or more; got {random_state!r}.")
    return int(random_state)


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Networks made inside start from the weights of this seed; the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(weights_seed(seed))
        yield


def check_columns(estimator: BaseEstimator, X: Any, *, reset: bool) -> None:
    """scikit-learn's bookkeeping of column names and counts, which only 2-D input has."""
    if getattr(X, "ndim", None) == 2:
        validate_data(estimator, X, reset=reset, skip_check_array=True)


def train_with_bar(what: str, run: Run, *, device: str, verbose: bool) -> History:
    """`pretrain`, with loss and speed shown in a terminal."""
    with Bar(what, run.recipe.steps, verbose) as bar:
        return pretrain(
            run.method,
            run.train,
            run.recipe,
            seed=run.seed,
            device=device,
            on_step=lambda h: bar.update(len(h), f"loss {h.loss[-1]:.3f}  {len(h) / h.seconds:.1f} steps/s"),
            checkpoint=run.checkpoint,
        )


def embed_groups(
    encoder: Encoder,
    preparation: Preparation,
    X: Any,
    pooling: str | None,
    *,
    device: str,
    verbose: bool,
    precision: str = "float32",
) -> Iterator[tuple[Array, Embeddings]]:
    """Positions and embeddings of the cases of X, one group per length."""
    for index, windows in preparation.apply(X):
        with Bar("embed", len(windows), verbose) as bar:
            rows = embed(encoder, windows.x, pooling=pooling, device=device, precision=precision, on_batch=bar.update)
            yield index, rows


def in_order(groups: Iterable[tuple[Array, Embeddings]]) -> Embeddings:
    """(N, F): the rows of all groups, each at its position."""
    found = list(groups)
    out = np.empty((sum(len(index) for index, _ in found), found[0][1].shape[1]), np.float32)
    for index, rows in found:
        out[index] = rows
    return out
