"""What the scikit-learn faces of the library share: seeds, column counts, training and embedding with a bar."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dicot.data.conversion import Conversion
from dicot.data.policies import Array, name_cases
from dicot.embedding import Target, embed_into
from dicot.encoders import Encoder
from dicot.errors import InputError, NonFiniteLossError, is_whole
from dicot.gpu.device import PROCESS_WIDE
from dicot.progress import Bar
from dicot.train import History, Step, TrainingRun, carry_out
from dicot.train.draws import weights_seed


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


def train_with_bar(what: str, run: TrainingRun, *, device: str, verbose: bool) -> History:
    """`pretrain`, with loss and speed shown in a terminal."""
    given = [run.on_step] if callable(run.on_step) else run.on_step or ()
    with Bar(what, run.recipe.steps, verbose) as bar:

        def show(step: Step) -> None:
            bar.update(step.number, f"loss {step.loss:.3f}  {step.number / step.seconds:.1f} steps/s")

        return carry_out(replace(run, on_step=[show, *given]), device=device)


def embed_cases(
    encoder: Encoder,
    groups: Sequence[tuple[Array, Conversion]],
    out: Target,
    pooling: str,
    *,
    device: str,
    verbose: bool,
    precision: str = "float32",
) -> None:
    """Write the embedding of each case of a preparation's groups to its row of `out`."""
    with Bar("embed", sum(len(cases) for _, cases in groups), verbose) as bar:
        done = 0
        for index, cases in groups:
            rows = _Rows(out, index, cases)
            tell = partial(_tell, bar, done)
            embed_into(rows, encoder, cases, pooling=pooling, device=device, precision=precision, on_batch=tell)
            done += len(cases)


def _tell(bar: Bar, before: int, done: int) -> None:
    bar.update(before + done)


@dataclass(frozen=True)
class _Rows:
    """The rows of a target that belong to the cases of one group; refuses what is not finite."""

    target: Target
    index: Array
    cases: Conversion

    def __setitem__(self, rows: slice, values: Array) -> None:
        index = self.index[rows]
        refuse_non_finite(values, index, self.cases, rows.start)
        ends = np.flatnonzero(np.diff(index) != 1) + 1  # runs of neighbours
        for run, part in zip(np.split(index, ends), np.split(values, ends), strict=True):
            self.target[run[0] : run[-1] + 1] = part


def refuse_non_finite(values: Array, index: Array, cases: Conversion, start: int = 0) -> None:
    """An error that names the cases, at `index`, whose embeddings hold NaN or inf; they begin at row `start`."""
    bad = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))
    if len(bad):
        x = np.abs(cases[slice(start + bad[0], start + bad[0] + 1)][0])  # (C, T)
        channel = int(x.max(axis=1).argmax())
        raise InputError(
            f"The embedding of {name_cases(index[bad])} is not finite; the largest value of case {index[bad[0]]} is "
            f'{x.max():.3g}, in channel {channel}. Clip it, or fit a model with scale="dataset".'
        )
