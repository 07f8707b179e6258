"""What the scikit-learn faces of the library share: seeds, column counts, training and embedding with a bar."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dicot.device import PROCESS_WIDE
from dicot.embedding import embed
from dicot.encoders import Encoder
from dicot.errors import InputError, NonFiniteLossError
from dicot.progress import Bar
from dicot.train import History, Run, pretrain
from dicot.train.draws import weights_seed
from dicot.windows.conversion import Conversion
from dicot.windows.policies import Array, name_cases
from dicot.windows.preparation import Preparation

Embeddings = NDArray[np.float32]


def seed_from(random_state: int | np.random.RandomState | None) -> int:
    """The seed of a run; None draws a fresh one without touching numpy's global state."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if random_state < 0:
        raise InputError(f"random_state must be 0 or above; got {random_state}.")
    return int(random_state)


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Networks made inside start from the weights of this seed; the caller's random state is left as it was."""
    with PROCESS_WIDE, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(weights_seed(seed))
        yield


def check_columns(estimator: BaseEstimator, X: Any) -> None:
    """Refuse other columns than at fit, as scikit-learn does; only 2-D input has columns."""
    if _has_columns(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)


def columns_of(X: Any) -> dict[str, Any]:
    """scikit-learn's attributes that say what columns 2-D input has: n_features_in_ and perhaps feature_names_in_."""
    probe = BaseEstimator()
    if _has_columns(X):
        validate_data(probe, X, reset=True, skip_check_array=True)
    return dict(vars(probe))


def _has_columns(X: Any) -> bool:
    """Whether X is (cases, time), also as a list of equally long lists; a list of arrays is one of cases."""
    if isinstance(X, list):
        rows = all(isinstance(row, list) and not any(map(np.ndim, row)) for row in X)
        return rows and len({len(row) for row in X}) == 1
    return getattr(X, "ndim", None) == 2


def become(estimator: BaseEstimator, fitted: Mapping[str, Any]) -> None:
    """Replace all that an earlier fit left by these attributes, at the very end: a fit that fails changes nothing."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, name)
    vars(estimator).update(fitted)


def check_finite(encoder: Encoder) -> None:
    """Refuse an encoder that can give nothing but NaN, whatever its loss was."""
    bad = [name for name, tensor in encoder.state_dict().items() if not tensor.isfinite().all()]
    if bad:
        raise NonFiniteLossError(
            f"After training {len(bad)} of the encoder's tensors hold NaN or inf, {bad[0]} among them. "
            "Scale the data (scale='dataset') or lower lr."
        )


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
    for index, cases in preparation.apply(X):
        with Bar("embed", len(cases), verbose) as bar:
            rows = embed(encoder, cases, pooling=pooling, device=device, precision=precision, on_batch=bar.update)
        _refuse_non_finite(rows, index, cases)
        yield index, rows


def _refuse_non_finite(rows: Embeddings, index: Array, cases: Conversion) -> None:
    bad = np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
    if len(bad):
        x = np.abs(cases[slice(bad[0], bad[0] + 1)][0])  # (C, T)
        channel = int(x.max(axis=1).argmax())
        raise InputError(
            f"The embedding of {name_cases(index[bad])} is not finite; the largest value of case {index[bad[0]]} is "
            f'{x.max():.3g}, in channel {channel}. Clip it, or fit a model with scale="dataset".'
        )


def in_order(groups: Iterable[tuple[Array, Embeddings]]) -> Embeddings:
    """(N, F): the rows of all groups, each at its position."""
    found = list(groups)
    out = np.empty((sum(len(index) for index, _ in found), found[0][1].shape[1]), np.float32)
    for index, rows in found:
        out[index] = rows
    return out
