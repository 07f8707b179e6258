"""TimeSeriesEmbedder: the library as one scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dicot.controls import CONTROLS
from dicot.data import Windows
from dicot.data.cases import LAYOUTS
from dicot.data.conversion import Conversion
from dicot.data.policies import MISSING, UNEQUAL, Array
from dicot.data.preparation import Preparation
from dicot.embedding import EMBED_PRECISIONS, POOLINGS, Target, embed, pooled_dim
from dicot.encoders import ENCODERS, Encoder, build_encoder
from dicot.errors import InputError, ModelFileError, lookup
from dicot.fitting import (
    become,
    check_columns,
    check_finite,
    columns_of,
    embed_cases,
    refuse_non_finite,
    seed_from,
    seeded_weights,
    train_with_bar,
)
from dicot.methods import METHODS, build_method
from dicot.pretrained import arguments_of, check_config, check_types, from_pretrained, save_pretrained
from dicot.train import Checkpoint, History, Recipe, TrainingRun, paper_recipe, pretrain_many
from dicot.train.many import AT_ONCE

T = TypeVar("T", bound=Target)
PRESETS = ("paper",)
RECIPE_PARAMETERS = ("steps", "batch_size", "lr", "schedule", "precision")

FITTED = {"seed": int, "data": Mapping[str, Any], "method_params": Mapping[str, Any], "n_features_in": int | None}


class _Fit(NamedTuple):
    """A fit that is under way."""

    learned: dict[str, Any]  # attributes that do not wait for the training
    encoder: Encoder
    run: TrainingRun | None  # the training; a control has none


class TimeSeriesEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn from unlabelled cases in `fit`, turn cases into vectors in `transform`.

    X is (cases, channels, time), (cases, time) or a list of (channels, time) arrays. For 2-D input the number
    of time steps is fixed at fit, otherwise it may change; the number of channels may not.

    Parameters
    ----------
    method : a name of `dicot list methods`, or a control: "random", "calibrated"
    preset : "paper" takes steps, batch size and temperature from the paper's rule for `family`
    family : "ucr", "uea", "large", or None for your own data (the uea rule)
    encoder : "inception_time", "fcn" or "resnet"
    dim : features of the encoder
    method_params : arguments of the method, for example {"temperature": 0.1, "k": (2, 5)}
    encoder_params : arguments of the encoder beside dim, for example {"original": True} for "resnet"
    steps, batch_size, lr, schedule, precision : the recipe; None leaves each to the preset
    pooling : "mean", "max" or "mean+max+std" over time
    embed_precision : of `transform` on a GPU: "float32", or faster with fewer digits "tf32" (three), "bf16" (two)
    layout : "nct" (cases, channels, time) or "ntc" for 3-D input and lists
    unequal : "error", "pad", "crop" or "resample" for cases of unequal length
    missing : "error", "interpolate" or "zero" for NaN
    scale : None, "dataset" (z-score per channel with the training set's statistics) or "case"
    random_state : an int fixes the result, in threads too, where fits wait for each other; None draws a fresh seed;
        numpy's global state is never touched
    device : "auto", "cpu", "cuda" or "cuda:N"
    verbose : show a progress bar in a terminal when something takes longer than two seconds

    Attributes
    ----------
    encoder_ : the trained encoder, on the CPU
    history_ : loss and learning rate of every step
    recipe_, method_params_, seed_ : what was used, defaults resolved
    preparation_ : how input becomes cases, with what was learned of the training set
    n_features_in_ : number of time steps, for 2-D input
    """

    encoder_: Encoder
    history_: History
    recipe_: Recipe
    method_params_: dict[str, Any]
    seed_: int
    preparation_: Preparation
    data_: dict[str, Any]

    def __init__(
        self,
        method: str = "dicot",
        *,
        preset: str = "paper",
        family: str | None = None,
        encoder: str = "inception_time",
        dim: int = 256,
        method_params: Mapping[str, Any] | None = None,
        encoder_params: Mapping[str, Any] | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        schedule: str | None = None,
        precision: str | None = None,
        pooling: str = "mean",
        embed_precision: str = "float32",
        layout: str = "nct",
        unequal: str = "error",
        missing: str = "error",
        scale: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = True,
    ) -> None:
        self.method = method
        self.preset = preset
        self.family = family
        self.encoder = encoder
        self.dim = dim
        self.method_params = method_params
        self.encoder_params = encoder_params
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.schedule = schedule
        self.precision = precision
        self.pooling = pooling
        self.embed_precision = embed_precision
        self.layout = layout
        self.unequal = unequal
        self.missing = missing
        self.scale = scale
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, checkpoint: Checkpoint | str | Path | None = None) -> TimeSeriesEmbedder:
        """Train the encoder; labels are used by methods that need them and ignored by all others.

        With a `checkpoint`, or a path for one, the run is kept on disk, and a run found there is continued.
        """
        fit = self._start(X, y, checkpoint)
        history = History()
        if fit.run is not None:
            history = train_with_bar(f"pretrain {self.method}", fit.run, device=self.device, verbose=self.verbose)
        self._finish(fit, history)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """(N, F) embeddings; a case's row does not depend on the other cases.

        X is read piece by piece, so that a memory map need not fit into memory.
        """
        groups = self._groups(X)
        out = np.empty((sum(len(cases) for _, cases in groups), self._n_features_out), np.float32)
        self._embed(groups, out)
        return out

    def transform_into(self, X: Any, make: Callable[[int, int], T]) -> T:
        """The same into what `make(N, F)` gives, `target[rows] = ...`: embeddings that do not fit into memory."""
        groups = self._groups(X)
        target = make(sum(len(cases) for _, cases in groups), self._n_features_out)
        self._embed(groups, target)
        return target

    def transform_time_steps(self, X: Any) -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Features per time step, (N, F, T), or a list of (F, T_i) where the lengths differ."""
        rows: dict[int, NDArray[np.float32]] = {}
        groups = self._groups(X)
        for index, cases in groups:
            block = embed(self.encoder_, cases, pooling=None, device=self.device, precision=self.embed_precision)
            refuse_non_finite(block, index, cases)
            if len(groups) == 1:
                return block
            rows |= dict(zip(index.tolist(), block, strict=True))
        return [rows[i] for i in sorted(rows)]

    def save_pretrained(self, directory: str | Path) -> Path:
        """Write config.json and model.safetensors into a folder; no pickle."""
        check_is_fitted(self)
        parameters = {**self.get_params(), "random_state": self.seed_, "device": "auto"}
        return save_pretrained(
            directory,
            self.encoder_,
            {
                "estimator": parameters,
                "method_params": self.method_params_,
                "recipe": self.recipe_.to_dict(),
                "seed": self.seed_,
                "preparation": self.preparation_.to_dict(),
                "data": self.data_,
                "history": {"loss": self.history_.loss, "lr": self.history_.lr, "seconds": self.history_.seconds},
                "n_features_in": getattr(self, "n_features_in_", None),
            },
        )

    @classmethod
    def from_pretrained(cls, directory: str | Path, *, device: str = "auto") -> TimeSeriesEmbedder:
        """The fitted embedder that `save_pretrained` wrote."""
        encoder, config = from_pretrained(directory)
        try:
            hints = {**arguments_of(Recipe), "temperature": float}  # which was part of it in older versions
            check_types(directory, "recipe", config["recipe"], hints)
            for part, kind in (("estimator", cls), ("history", History)):
                check_types(directory, part, config[part], arguments_of(kind))
            fitted = {name: config[name] for name in ("seed", "data", "method_params", "n_features_in")}
            check_types(directory, "what was fitted", fitted, FITTED)
            model = cls(**{**config["estimator"], "device": device})
            model._check_names()
            model.encoder_, model.seed_, model.data_ = encoder, config["seed"], config["data"]
            model.method_params_ = config["method_params"]
            recipe = {**config["recipe"], "betas": tuple(config["recipe"]["betas"])}
            recipe.pop("temperature", None)
            model.recipe_, model.history_ = Recipe(**recipe), History(**config["history"])
            if len(model.history_.loss) != len(model.history_.lr):
                raise InputError("its history has not as many rates as losses")
            model.preparation_ = Preparation.from_dict(config["preparation"])
            _check_preparation(model.preparation_, encoder)
            if config["n_features_in"] is not None:
                model.n_features_in_ = config["n_features_in"]
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            if isinstance(error, ModelFileError):
                raise
            what = f"lacks {error}" if isinstance(error, KeyError) else f"is damaged ({error})"
            raise ModelFileError(f"The config of {directory} {what}. Save the model again.") from error
        check_config(directory, config)
        model._n_features_out = pooled_dim(encoder, model.pooling)
        return model

    def _start(self, X: Any, y: Any, checkpoint: Checkpoint | str | Path | None) -> _Fit:
        """All of a fit but the training. The estimator itself stays as it is until the end."""
        self._check_names()
        columns = columns_of(X)
        preparation, train = Preparation(self.layout, self.unequal, self.missing, self.scale).fit(X, y)
        seed, recipe = seed_from(self.random_state), self._recipe(train)
        params: dict[str, Any] = {}
        run = None
        with seeded_weights(seed):
            shape = {"n_channels": train.n_channels, "dim": self.dim, **(self.encoder_params or {})}
            encoder = build_encoder(self.encoder, shape)
            if self.method in CONTROLS:
                recipe = replace(recipe, steps=0)
                CONTROLS[self.method](encoder, train, self.device)
            else:
                paper = METHODS[self.method].paper_params(self.family)
                params = paper | dict(self.method_params or {})
                run = TrainingRun(
                    build_method(self.method, encoder, params), train, recipe, seed, Checkpoint.of(checkpoint)
                )
        learned = {
            "preparation_": preparation,
            "data_": data_card(self.method, train, preparation.fingerprint),
            "seed_": seed,
            "recipe_": recipe,
            "method_params_": params,
            **columns,
        }
        return _Fit(learned, encoder, run)

    def _finish(self, fit: _Fit, history: History) -> None:
        trained = fit.encoder if fit.run is None else fit.run.method.trained_encoder()
        encoder = trained.cpu().float().eval()
        check_finite(encoder)
        become(self, {**fit.learned, "encoder_": encoder, "history_": history})
        self._n_features_out = pooled_dim(encoder, self.pooling)

    def _groups(self, X: Any) -> list[tuple[Array, Conversion]]:
        check_is_fitted(self)
        check_columns(self, X)
        return list(self.preparation_.apply(X))

    def _embed(self, groups: list[tuple[Array, Conversion]], target: Target) -> None:
        embed_cases(
            self.encoder_,
            groups,
            target,
            self.pooling,
            device=self.device,
            verbose=self.verbose,
            precision=self.embed_precision,
        )

    def _recipe(self, train: Windows) -> Recipe:
        given = {name: getattr(self, name) for name in RECIPE_PARAMETERS if getattr(self, name) is not None}
        return replace(paper_recipe(self.family, len(train), train.n_times), **given)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # embeddings are float32 whatever X is
        return tags

    def _check_names(self) -> None:
        lookup({**METHODS, **CONTROLS}, self.method, "method")
        lookup(ENCODERS, self.encoder, "encoder")
        lookup(POOLINGS, self.pooling, "pooling")
        lookup(dict.fromkeys(EMBED_PRECISIONS), self.embed_precision, "precision")
        lookup(dict.fromkeys(PRESETS), self.preset, "preset")


def _check_preparation(found: Preparation, encoder: Encoder) -> None:
    """What a config says about the input must be something that a fit can have learned."""
    lookup(dict.fromkeys(LAYOUTS), found.layout, "layout")
    lookup(UNEQUAL, found.unequal, "policy for unequal length")
    lookup(MISSING, found.missing, "policy for missing values")
    if found.scale not in (None, "dataset", "case"):
        raise InputError(f"Unknown scale {found.scale!r}")
    if found.n_channels != encoder.n_channels or type(found.n_times) is not int or found.n_times < 1:
        raise InputError(f"{found.n_channels} channels and {found.n_times} time steps do not fit the encoder")
    if (found.scale == "dataset") != (found.statistics is not None):
        raise InputError(f"scale is {found.scale!r}, statistics are {found.statistics}")
    if found.statistics is not None:
        mean, std = found.statistics.mean, found.statistics.std
        shaped = mean.dtype.kind == std.dtype.kind == "f" and mean.shape == std.shape == (encoder.n_channels,)
        if not shaped or not np.isfinite([mean, std]).all() or not (std > 0).all():
            raise InputError("the statistics of the channels are not finite numbers, one for each channel")


def data_card(method: str, train: Windows, fingerprint: str) -> dict[str, Any]:
    """What a model remembers of its training set; labels count only where the method learns from them."""
    labels = train.label_fingerprint() if method in METHODS and METHODS[method].needs_labels else ""
    return {"name": train.name, "fingerprint": fingerprint, "labels": labels, "n_cases": len(train)}


def fit_many(
    models: Sequence[TimeSeriesEmbedder],
    data: Sequence[tuple[Any, Any]],
    *,
    checkpoints: Sequence[Checkpoint | None] | None = None,
    at_once: int = AT_ONCE,
    on_fit: Callable[[int], None] = lambda number: None,
    on_error: Callable[[int, Exception], None] | None = None,
) -> None:
    """Fit each model on its (X, y) as its own `fit` would, on a GPU several of them `at_once`.

    `on_fit` is told the number of a model as soon as it is fitted, `on_error` that of a model whose fit failed, and
    why; the others go on. Without it the first failure is raised. The seconds of a history are the model's own share.
    """
    if len({model.device for model in models}) > 1:
        raise InputError(f"All models must be for one device; got {sorted({model.device for model in models})}.")
    fits: dict[int, _Fit] = {}
    runs: list[TrainingRun] = []
    for number, (model, (X, y)) in enumerate(zip(models, data, strict=True)):
        try:
            fit = model._start(X, y, checkpoints[number] if checkpoints else None)
        except Exception as error:
            if on_error is None:
                raise
            on_error(number, error)
            continue
        if fit.run is None:
            model._finish(fit, History())
            on_fit(number)
        else:
            fits[number] = fit
            runs.append(fit.run)
    numbers = list(fits)

    def finish(place: int, history: History) -> None:
        models[numbers[place]]._finish(fits[numbers[place]], history)
        on_fit(numbers[place])

    pretrain_many(
        runs,
        device=models[0].device if models else "cpu",
        at_once=at_once,
        on_run=finish,
        on_error=None if on_error is None else lambda place, error: on_error(numbers[place], error),
    )
