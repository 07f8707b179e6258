"""What both estimators share: their arguments, an encoder that is made, trained, saved and used to embed."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from dicot.core.device import PROCESS_WIDE
from dicot.core.errors import InputError, ModelFileError, is_whole
from dicot.core.progress import Bar
from dicot.core.settings import how_to_prepare
from dicot.core.transfer import ThreadedArray
from dicot.data.cases import Array, Cases, name_cases, write_rows
from dicot.data.conversion import Conversion
from dicot.data.preparation import Preparation, warn_of_unheld
from dicot.model import files
from dicot.model.box import in_box
from dicot.model.embedding import Target, embed_into
from dicot.model.presets import PREPARE, USUAL_ENCODER, entries
from dicot.nets.encoders import Encoder, as_encoder, build_encoder, encoder_name
from dicot.train.batches import weights_seed
from dicot.train.loop import TrainingRun, carry_out
from dicot.train.recipe import Recipe, schedule_name
from dicot.train.record import History, Step, callbacks

Groups = Sequence[tuple[Array, Conversion]]  # positions and cases, one group for each length


@dataclass(eq=False, repr=False, kw_only=True)
class EncoderEstimator(BaseEstimator, ABC):
    """An estimator around an encoder; `TimeSeriesEmbedder` says what its arguments and attributes are."""

    encoder: str | nn.Module | None = None
    dim: int | None = None
    encoder_params: Mapping[str, Any] | None = None
    recipe: Recipe | Mapping[str, Any] | None = None
    steps: int | None = None
    prepare: Mapping[str, Any] | None = None
    random_state: int | np.random.RandomState | None = None
    device: str = "auto"
    verbose: bool = True

    encoder_: Encoder = field(init=False)
    history_: History = field(init=False)
    recipe_: Recipe = field(init=False)
    seed_: int = field(init=False)
    preparation_: Preparation = field(init=False)

    def _prepare(self, X: Any, y: Any) -> tuple[Preparation, Cases]:
        return Preparation(**entries("prepare", self.prepare, PREPARE)).fit(X, y)

    def _new_encoder(self, train: Cases, usual: tuple[str, int] = USUAL_ENCODER) -> Encoder:
        """Make the encoder a fit starts from, with new weights; a module that is passed is copied, never changed."""
        usual_name, usual_dim = usual
        encoder = usual_name if self.encoder is None else self.encoder
        params = self.encoder_params
        if isinstance(encoder, str):
            dim = self.dim
            if dim is None:
                dim = usual_dim if encoder == usual_name else USUAL_ENCODER[1]
            return build_encoder(encoder, {"n_channels": train.n_channels, "dim": dim, **(params or {})})
        if not isinstance(encoder, nn.Module) or params:
            raise InputError(
                "encoder must be a name, or a module (an instance, not its class) without encoder_params; got "
                f"{encoder!r} and encoder_params={params!r}."
            )
        if not isinstance(encoder, Encoder):
            encoder = deepcopy(encoder).cpu()  # on a GPU it would draw its weights from a generator of another seed
        wrapped = as_encoder(encoder, train.n_channels, train.n_times)
        wrapped.check_shape((2, train.n_channels, train.n_times))
        return wrapped.fresh()

    def _become(self, fitted: Mapping[str, Any]) -> None:
        """Replace all that an earlier fit left, at the very end: a fit that fails changes nothing."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.__dict__.update(fitted)

    def _groups(self, X: Any, layout: str | None = None) -> Groups:
        """Return cases as the model wants them; other columns than at fit are refused, as scikit-learn does."""
        check_is_fitted(self)
        if _has_columns(X):
            validate_data(self, X, reset=False, skip_check_array=True)
        preparation = self.preparation_ if layout is None else replace(self.preparation_, layout=layout)
        return list(preparation.apply(X))

    def _embed(self, groups: Groups, out: Target, **options: Any) -> None:
        """Write the embedding of each case to its row of `out`; the options are those of `embed_into`."""
        target = ThreadedArray(out) if isinstance(out, np.ndarray) else out
        with Bar("embed", sum(len(cases) for _, cases in groups), self.verbose) as bar:
            done = 0
            for index, cases in groups:
                if self.encoder_.needs_levels:
                    warn_of_unheld(cases, self.preparation_.channels)
                rows = _Rows(target, index, cases)
                shown = lambda n, before=done: bar.update(before + n)  # noqa: E731
                embed_into(rows, self.encoder_, cases, device=self.device, on_batch=shown, **options)
                done += len(cases)

    def _settings(self) -> dict[str, Any]:
        """Return the parameters as a config names them; the device, a matter of the machine, is "auto".

        A function or a module of one's own becomes its name.
        """
        settings = {**self.get_params(deep=False), "device": "auto"}
        recipe = settings["recipe"]
        if isinstance(recipe, Recipe):
            settings["recipe"] = recipe.to_dict()
        elif recipe is not None and callable(recipe.get("schedule")):
            settings["recipe"] = {**recipe, "schedule": schedule_name(recipe["schedule"])}
        if isinstance(self.encoder, Encoder) and files.is_registered(self.encoder):
            shape = dict(self.encoder.config())
            del shape["n_channels"]  # is the data's
            own = {"encoder": encoder_name(self.encoder), "dim": shape.pop("dim")}
            settings |= {**own, "encoder_params": shape or None}
        elif isinstance(self.encoder, nn.Module):
            settings["encoder"] = files.qualified_name(type(self.encoder))
        return settings

    def _save(
        self, directory: str | Path, about: Mapping[str, Any], beside: Mapping[str, Tensor], *, half: bool = False
    ) -> Path:
        """Write a folder; `about` is what this kind of estimator says beside what both do."""
        fitted = {
            "recipe": self.recipe_.to_dict(),
            "seed": self.seed_,
            "preparation": self.preparation_.to_dict(),
            "history": vars(self.history_),
            "n_features_in": getattr(self, "n_features_in_", None),
        }
        settings = {**self._settings(), "random_state": self.seed_}
        about = {"estimator": settings, **about, **fitted}
        return files.save_pretrained(directory, self.encoder_, about, beside, half=half)

    @classmethod
    def _load(
        cls, directory: str | Path, encoder: nn.Module | None, device: str, groups: Sequence[str]
    ) -> tuple[Self, dict[str, Any], dict[str, Tensor]]:
        """Return a fitted estimator, its config, and the tensors beside its encoder; both are of its kind."""
        directory = in_box(directory)
        network, config, beside = files.from_pretrained(directory, encoder)
        with files.reading(directory):
            is_classifier = "classes" in config
            if is_classifier != issubclass(cls, ClassifierMixin):
                kind = "TimeSeriesClassifier" if is_classifier else "TimeSeriesEmbedder"
                raise ModelFileError(f"{directory} holds a {kind}. Load it by {kind}.from_pretrained.")
            settings = {name: value for name, value in config["estimator"].items() if name != "difference"}
            model = cls(**files.grouped({**settings, "device": device}, groups))
            if encoder is not None:
                model.encoder = encoder
            model.encoder_ = network
            model.seed_ = config["seed"]
            model.recipe_ = Recipe(**config["recipe"])
            model.history_ = History(**config["history"])
            model.preparation_ = Preparation.from_dict(config["preparation"])
            _check_preparation(model.preparation_, network.n_channels)
            if config["n_features_in"] is not None:
                model.__dict__["n_features_in_"] = config["n_features_in"]
        return model, config, beside


def _check_preparation(preparation: Preparation, n_channels: int) -> None:
    """Refuse a preparation that is not for an encoder of so many channels."""
    scale = preparation.statistics
    shape = np.shape([] if scale is None else [scale.mean, scale.std])
    right_shape = (2, n_channels) if preparation.scale == "dataset" else (0,)
    if shape != right_shape or preparation.n_channels != n_channels:
        raise ValueError(f"its preparation does not fit an encoder of {n_channels} channel(s)")


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


def load_initial(encoder: Encoder, initial: Any) -> dict[str, Tensor]:
    """Give an encoder the weights of `initial`, whatever `TimeSeriesEmbedder.fit` takes as such; return a copy of them.

    A tensor that is missing, superfluous or of another shape is an error that names it.
    """
    module = files.module_of(encoder)
    if isinstance(initial, BaseEstimator):
        check_is_fitted(initial)
        initial = initial.encoder_
    if isinstance(initial, str | Path):
        weights: Mapping[str, Tensor] = files.read_weights(in_box(initial), module.state_dict())
        source = str(initial)
    elif isinstance(initial, nn.Module):
        first = files.module_of(initial)
        weights = first.state_dict()
        source = type(first).__name__
    elif isinstance(initial, Mapping):
        weights = initial
        source = "The state dict given as initial"
    else:
        raise InputError(
            "initial must be a folder of save_pretrained, a fitted estimator, a module or a state dict; "
            f"got {type(initial).__name__}."
        )
    files.check_weights(source, weights, module.state_dict(), error=InputError)
    module.load_state_dict(dict(weights))
    return {name: tensor.clone() for name, tensor in encoder.state_dict().items()}


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


def train_with_bar(what: str, run: TrainingRun, *, device: str, verbose: bool, most: float | None = None) -> History:
    """Carry out a run with loss and speed shown; it ends after `most` seconds at the latest."""
    with Bar(what, run.recipe.steps, verbose, most=most) as bar:

        def show(step: Step) -> None:
            bar.update(step.number, f"loss {step.loss:.3f}  {step.number / step.seconds:.1f} steps/s")

        return carry_out(replace(run, on_step=(show, *callbacks(run.on_step))), device=device)


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
            f"{x.max():.3g}, in channel {channel}. Clip it, or fit a model with {how_to_prepare('scale', 'dataset')}."
        )
