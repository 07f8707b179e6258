"""What both estimators share: seeds, columns, the first encoder, the recipe, training and embedding with a bar."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from dicot.core.errors import InputError, NonFiniteLossError, is_whole
from dicot.core.gpu.device import PROCESS_WIDE
from dicot.core.gpu.transfer import ThreadedArray
from dicot.core.progress import Bar
from dicot.data.conversion import Conversion
from dicot.data.pieces import Cases, write_rows
from dicot.data.policies import Array, name_cases
from dicot.model.composition import Composition
from dicot.model.embedding import Target, embed_into
from dicot.model.files import check_weights, module_of, read_weights
from dicot.nets.encoders import Encoder, as_encoder, build_encoder
from dicot.train import History, Step, TrainingRun, carry_out
from dicot.train.draws import weights_seed


def seed_from(random_state: int | np.random.RandomState | None) -> int:
    """Return the seed of a run; None draws a fresh one without touching numpy's global state."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if not is_whole(random_state, 0):
        raise InputError(f"random_state must be a whole number, 0 or more; got {random_state!r}.")
    return int(random_state)


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Start the networks made inside from the weights of this seed; the caller's random state is left as it was."""
    with PROCESS_WIDE, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(weights_seed(seed))
        yield


def new_encoder(
    encoder: str | nn.Module, train: Cases, *, dim: int, encoder_params: Mapping[str, Any] | None
) -> Encoder:
    """Make the encoder a fit starts from, with new weights; a module that is passed is copied, never changed."""
    if isinstance(encoder, str):
        return build_encoder(encoder, {"n_channels": train.n_channels, "dim": dim, **(encoder_params or {})})
    if not isinstance(encoder, nn.Module):
        raise InputError(
            f"encoder must be a name, an Encoder or another nn.Module (an instance, not its class); got {encoder!r}."
        )
    if encoder_params:
        raise InputError(
            f"encoder_params belong to an encoder given by name; {type(encoder).__name__} is a module. Leave them out."
        )
    if not isinstance(encoder, Encoder):
        encoder = deepcopy(encoder).cpu()  # on a GPU it would draw its weights from a generator that has another seed
    wrapped = as_encoder(encoder, train.n_channels, train.n_times)
    wrapped.check_shape((2, train.n_channels, train.n_times))
    return wrapped.fresh()


def load_initial(encoder: Encoder, initial: Any) -> dict[str, Tensor]:
    """Give an encoder the weights of `initial`, whatever `TimeSeriesEmbedder.fit` takes as such; return a copy of them.

    A tensor that is missing, superfluous or of another shape is an error that names it.
    """
    module = module_of(encoder)
    wanted = module.state_dict()
    if isinstance(initial, BaseEstimator):
        check_is_fitted(initial)
        initial = initial.encoder_
    weights: Mapping[str, Tensor]
    if isinstance(initial, str | Path):
        weights, source = read_weights(initial, wanted), str(initial)
    elif isinstance(initial, nn.Module):
        weights, source = module_of(initial).state_dict(), type(module_of(initial)).__name__
    elif isinstance(initial, Mapping) and all(isinstance(value, Tensor) for value in initial.values()):
        weights, source = initial, "The state dict given as initial"
    else:
        raise InputError(
            "initial must be a folder of save_pretrained, a fitted estimator, a module or a state dict; "
            f"got {type(initial).__name__}."
        )
    check_weights(source, weights, wanted, error=InputError)
    module.load_state_dict(dict(weights))
    return {name: tensor.clone() for name, tensor in encoder.state_dict().items()}


def check_columns(estimator: BaseEstimator, X: Any) -> None:
    """Refuse other columns than at fit, as scikit-learn does; only 2-D input has columns."""
    if _has_columns(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)


def columns_of(X: Any) -> dict[str, Any]:
    """Return scikit-learn's attributes for the columns of 2-D input: n_features_in_ and perhaps feature_names_in_."""
    probe = BaseEstimator()
    if _has_columns(X):
        validate_data(probe, X, reset=True, skip_check_array=True)
    return dict(vars(probe))


def _has_columns(X: Any) -> bool:
    """Tell whether X is (cases, time), also as a list of equally long lists; a list of arrays is one of cases."""
    if isinstance(X, list):
        rows = all(isinstance(row, list) and not any(map(np.ndim, row)) for row in X)
        return rows and len({len(row) for row in X}) == 1
    return getattr(X, "ndim", None) == 2


def become(estimator: BaseEstimator, fitted: Mapping[str, Any]) -> None:
    """Replace all that an earlier fit left by these attributes, at the very end: a fit that fails changes nothing."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, name)
    vars(estimator).update(fitted)


def finished(encoder: Encoder) -> Encoder:
    """Return a trained encoder on the CPU in eval mode; refuse one that can give nothing but NaN."""
    encoder = encoder.cpu().float().eval()
    bad = [name for name, tensor in encoder.state_dict().items() if not tensor.isfinite().all()]
    if bad:
        raise NonFiniteLossError(
            f"After training {len(bad)} of the encoder's tensors hold NaN or inf, {bad[0]} among them. "
            "Scale the data (prepare={'scale': 'dataset'}) or lower lr."
        )
    return encoder


def train_with_bar(what: str, run: TrainingRun, *, device: str, verbose: bool) -> History:
    """Carry out a run with loss and speed shown in a terminal."""
    with Bar(what, run.recipe.steps, verbose) as bar:

        def show(step: Step) -> None:
            bar.update(step.number, f"loss {step.loss:.3f}  {step.number / step.seconds:.1f} steps/s")

        users = (run.on_step,) if callable(run.on_step) else run.on_step or ()
        return carry_out(replace(run, on_step=(show, *users)), device=device)


def embed_cases(
    encoder: Encoder,
    groups: Sequence[tuple[Array, Conversion]],
    out: Target,
    pooling: str,
    *,
    composer: Composition | None = None,
    device: str,
    verbose: bool,
    precision: str = "float32",
) -> None:
    """Write the embedding of each case of a preparation's groups to its row of `out`."""
    settings: dict[str, Any] = {"composer": composer, "device": device, "precision": precision}
    target = ThreadedArray(out) if isinstance(out, np.ndarray) else out
    with Bar("embed", sum(len(cases) for _, cases in groups), verbose) as bar:
        done = 0
        for index, cases in groups:
            rows = _Rows(target, index, cases)
            embed_into(rows, encoder, cases, pooling=pooling, on_batch=partial(_tell, bar, done), **settings)
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
        write_rows(self.target, index, values)


def refuse_non_finite(values: Array, index: Array, cases: Conversion, start: int = 0) -> None:
    """Raise an error that names the cases, at `index`, whose embeddings hold NaN or inf; they begin at row `start`."""
    if np.isfinite(np.vdot(values, values)):  # in one pass; it may also be too large for a number
        return
    bad = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))
    if len(bad):
        x = np.abs(cases[slice(start + bad[0], start + bad[0] + 1)][0])  # (C, T)
        channel = int(x.max(axis=1).argmax())
        raise InputError(
            f"The embedding of {name_cases(index[bad])} is not finite; the largest value of case {index[bad[0]]} is "
            f'{x.max():.3g}, in channel {channel}. Clip it, or fit a model with prepare={{"scale": "dataset"}}.'
        )
