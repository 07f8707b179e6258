"""TimeSeriesEmbedder: the library as one scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dicot.controls import CONTROLS
from dicot.embedding import POOLINGS, PRECISIONS, pooled_dim
from dicot.encoders import ENCODERS, Encoder, build_encoder
from dicot.errors import InputError, ModelFileError, lookup
from dicot.fitting import check_columns, embed_groups, in_order, seed_from, seeded_weights, train_with_bar
from dicot.methods import METHODS, build_method
from dicot.pretrained import from_pretrained, save_pretrained
from dicot.train import Checkpoint, History, Recipe, Run, paper_recipe, pretrain_many
from dicot.train.many import AT_ONCE
from dicot.windows import Windows
from dicot.windows.policies import Array
from dicot.windows.preparation import Preparation

PRESETS = ("paper",)
RECIPE_PARAMETERS = ("steps", "batch_size", "lr", "schedule", "precision")


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
    random_state : an int fixes the result; None draws a fresh seed; numpy's global state is never touched
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
        run = self._start(X, y, checkpoint)
        if run is not None:
            self._finish(run, train_with_bar(f"pretrain {self.method}", run, device=self.device, verbose=self.verbose))
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """(N, F) embeddings; a case's row does not depend on the other cases."""
        return in_order(self._embed(X, self.pooling))

    def transform_time_steps(self, X: Any) -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Features per time step, (N, F, T), or a list of (F, T_i) where the lengths differ."""
        groups = list(self._embed(X, None))
        if len(groups) == 1:
            return groups[0][1]
        rows = {int(i): row for index, block in groups for i, row in zip(index, block, strict=True)}
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
                "recipe": asdict(self.recipe_),
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
            model = cls(**{**config["estimator"], "device": device})
            model.encoder_, model.seed_, model.data_ = encoder, config["seed"], config["data"]
            model.method_params_ = config["method_params"]
            recipe = {**config["recipe"], "betas": tuple(config["recipe"]["betas"])}
            model.recipe_, model.history_ = Recipe(**recipe), History(**config["history"])
            model.preparation_ = Preparation.from_dict(config["preparation"])
            if config["n_features_in"] is not None:
                model.n_features_in_ = config["n_features_in"]
        except (KeyError, TypeError) as error:
            raise ModelFileError(
                f"The config of {directory} lacks or misspells {error}. Save the model again."
            ) from error
        model._n_features_out = pooled_dim(encoder, model.pooling)
        return model

    def _start(self, X: Any, y: Any, checkpoint: Checkpoint | str | Path | None) -> Run | None:
        """All of a fit but the training, which is returned; a control has none and is fitted."""
        self._check_names()
        check_columns(self, X, reset=True)
        wanted = Preparation(self.layout, self.unequal, self.missing, self.scale)
        self.preparation_, train = wanted.fit(X, y)
        self.data_ = data_card(self.method, train, self.preparation_.fingerprint)
        self.seed_ = seed_from(self.random_state)
        self.recipe_ = self._recipe(train)
        self.method_params_: dict[str, Any] = {}
        with seeded_weights(self.seed_):
            shape = {"n_channels": train.n_channels, "dim": self.dim, **(self.encoder_params or {})}
            encoder = build_encoder(self.encoder, shape)
            if self.method not in CONTROLS:
                paper = METHODS[self.method].paper_params(self.family, self.recipe_.temperature)
                self.method_params_ = paper | dict(self.method_params or {})
                method = build_method(self.method, encoder, self.method_params_)
                return Run(method, train, self.recipe_, self.seed_, checkpoint)
            self.recipe_ = replace(self.recipe_, steps=0)
            CONTROLS[self.method](encoder, train, self.device)
            self._take(encoder, History())
            return None

    def _finish(self, run: Run, history: History) -> None:
        self._take(run.method.trained_encoder(), history)

    def _take(self, encoder: Encoder, history: History) -> None:
        self.encoder_, self.history_ = encoder.cpu().float().eval(), history
        self._n_features_out = pooled_dim(self.encoder_, self.pooling)

    def _embed(self, X: Any, pooling: str | None) -> Iterator[tuple[Array, NDArray[np.float32]]]:
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        return embed_groups(
            self.encoder_,
            self.preparation_,
            X,
            pooling,
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
        lookup(dict.fromkeys(PRECISIONS), self.embed_precision, "precision")
        lookup(dict.fromkeys(PRESETS), self.preset, "preset")


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
    runs: dict[int, Run] = {}
    for number, (model, (X, y)) in enumerate(zip(models, data, strict=True)):
        try:
            run = model._start(X, y, checkpoints[number] if checkpoints else None)
        except Exception as error:
            if on_error is None:
                raise
            on_error(number, error)
            continue
        if run is None:
            on_fit(number)
        else:
            runs[number] = run
    numbers = list(runs)

    def finish(place: int, history: History) -> None:
        models[numbers[place]]._finish(runs[numbers[place]], history)
        on_fit(numbers[place])

    pretrain_many(
        list(runs.values()),
        device=models[0].device if models else "cpu",
        at_once=at_once,
        on_run=finish,
        on_error=None if on_error is None else lambda place, error: on_error(numbers[place], error),
    )
