"""TimeSeriesClassifier: encoder and classifier trained together, from new weights or from an embedder's."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch.nn import Linear
from torch.nn.functional import linear

from dicot.data import Windows
from dicot.data.collection import check_labels, labelled
from dicot.data.policies import name_cases
from dicot.data.preparation import Preparation
from dicot.encoders import Encoder, build_encoder
from dicot.errors import InputError, is_whole
from dicot.estimator import TimeSeriesEmbedder
from dicot.fitting import (
    become,
    check_columns,
    check_finite,
    columns_of,
    embed_cases,
    seed_from,
    seeded_weights,
    train_with_bar,
)
from dicot.methods.supervised import Supervised
from dicot.train import History, Recipe, TrainingRun

# With `pretrained` these are the embedder's: its weights belong to input that was prepared in this way.
PRETRAINED_DECIDES = ("encoder", "dim", "encoder_params", "layout", "unequal", "missing", "scale")


class TimeSeriesClassifier(ClassifierMixin, BaseEstimator):
    """Train all weights by cross-entropy: encoder, pooling over time, one linear layer.

    X as for TimeSeriesEmbedder; y holds one label per case, numbers or strings. AdamW, half-cosine to zero without
    warm-up; the weights of the last step are kept, nothing is held out for validation (D-55).

    Parameters
    ----------
    pretrained : a fitted TimeSeriesEmbedder to fine-tune; it is left as it is, and kept by `sklearn.base.clone`.
        Its encoder and its way of preparing input are taken over, so the arguments for these are for new weights only
    encoder, dim, encoder_params : as for TimeSeriesEmbedder
    pool : "mean" over time, for every pretrained method alike (D-57), or "max" as the authors' classifier from scratch
    epochs : passes over the training set, each of N // batch_size steps and at least one
    steps : optimiser steps, instead of epochs
    batch_size : cases per step, at most N; the incomplete last batch of an epoch is dropped
    lr : learning rate of the first step
    schedule : "per_step", or "per_epoch" as in `Recipe`, which lowers the rate far too slowly (D-01)
    layout, unequal, missing, scale : as for TimeSeriesEmbedder
    random_state, device, verbose : as for TimeSeriesEmbedder

    Attributes
    ----------
    classes_ : the labels in ascending order
    encoder_, head_ : the trained encoder and linear layer, on the CPU
    history_, recipe_, seed_, preparation_, n_features_in_ : as for TimeSeriesEmbedder
    """

    classes_: NDArray[Any]
    encoder_: Encoder
    head_: Linear
    history_: History
    recipe_: Recipe
    seed_: int
    preparation_: Preparation

    def __init__(
        self,
        pretrained: TimeSeriesEmbedder | None = None,
        *,
        encoder: str = "inception_time",
        dim: int = 256,
        encoder_params: Mapping[str, Any] | None = None,
        pool: str = "mean",
        epochs: int = 50,
        steps: int | None = None,
        batch_size: int = 16,
        lr: float = 3e-4,
        schedule: str = "per_step",
        layout: str = "nct",
        unequal: str = "error",
        missing: str = "error",
        scale: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = True,
    ) -> None:
        self.pretrained = pretrained
        self.encoder = encoder
        self.dim = dim
        self.encoder_params = encoder_params
        self.pool = pool
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.schedule = schedule
        self.layout = layout
        self.unequal = unequal
        self.missing = missing
        self.scale = scale
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> TimeSeriesClassifier:
        """Train on labelled cases."""
        self._check_pretrained()
        columns = columns_of(X)
        classes, numbers = np.unique(_checked_labels(y), return_inverse=True)
        preparation, train = self._prepare(X, numbers)
        seed, recipe = seed_from(self.random_state), self._recipe(len(train))
        with seeded_weights(seed):
            method = Supervised(self._first_encoder(train), pool=self.pool)
        run = TrainingRun(method, train, recipe, seed)
        history = train_with_bar("train", run, device=self.device, verbose=self.verbose)
        encoder = method.trained_encoder().cpu().float().eval()
        check_finite(encoder)
        learned = {"classes_": classes, "preparation_": preparation, "seed_": seed, "recipe_": recipe, **columns}
        networks = {"encoder_": encoder, "head_": method.head.cpu().float().eval()}
        become(self, {**learned, **networks, "history_": history})
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(N, K) probabilities in the order of `classes_`; a case's row does not depend on the other cases."""
        check_is_fitted(self)
        check_columns(self, X)
        groups = list(self.preparation_.apply(X))
        z = np.empty((sum(len(cases) for _, cases in groups), self.encoder_.dim), np.float32)
        embed_cases(self.encoder_, groups, z, self.pool, device=self.device, verbose=self.verbose)
        with torch.inference_mode():
            scores = linear(torch.from_numpy(z).double(), self.head_.weight.double(), self.head_.bias.double())
            probabilities: NDArray[np.float64] = scores.softmax(dim=1).numpy()
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """(N,) the most probable label of each case."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def __sklearn_clone__(self) -> TimeSeriesClassifier:
        """A clone in a search or a cross-validation keeps the fitted embedder, which would else be emptied."""
        parameters = self.get_params(deep=False)
        kept = {"pretrained": parameters.pop("pretrained")}
        return type(self)(**kept, **{name: clone(value, safe=False) for name, value in parameters.items()})

    def _prepare(self, X: Any, numbers: NDArray[np.intp]) -> tuple[Preparation, Windows]:
        if self.pretrained is not None:
            return self.pretrained.preparation_.fit_another(X, numbers)
        return Preparation(self.layout, self.unequal, self.missing, self.scale).fit(X, numbers)

    def _first_encoder(self, train: Windows) -> Encoder:
        if self.pretrained is not None:
            # An averaged encoder comes with its gradients switched off.
            return copy.deepcopy(self.pretrained.encoder_).requires_grad_(True)
        shape = {"n_channels": train.n_channels, "dim": self.dim, **(self.encoder_params or {})}
        return build_encoder(self.encoder, shape)

    def _recipe(self, n_cases: int) -> Recipe:
        for name in ("epochs", "batch_size"):
            if not is_whole(getattr(self, name), 1):
                raise InputError(f"{name} must be a whole number, 1 or more; got {getattr(self, name)!r}.")
        per_epoch = max(1, n_cases // self.batch_size)
        return Recipe(
            steps=self.epochs * per_epoch if self.steps is None else self.steps,
            batch_size=self.batch_size,
            lr=self.lr,
            betas=(0.9, 0.999),
            warmup=0.0,
            schedule=self.schedule,
        )

    def _check_pretrained(self) -> None:
        if self.pretrained is None:
            return
        if not isinstance(self.pretrained, TimeSeriesEmbedder):
            raise InputError(f"pretrained must be a fitted TimeSeriesEmbedder; got {type(self.pretrained).__name__}.")
        check_is_fitted(self.pretrained)
        usual = signature(type(self)).parameters
        for name in PRETRAINED_DECIDES:
            mine, its = getattr(self, name), getattr(self.pretrained, name)
            if mine not in (usual[name].default, its):
                raise InputError(f"{name}={mine!r} contradicts the pretrained embedder's {its!r}. Leave {name} out.")


def _checked_labels(y: Any) -> NDArray[Any]:
    """scikit-learn's checks of a target, with its own messages; every case must have a label."""
    if y is None:
        raise InputError(
            "TimeSeriesClassifier requires y to be passed, but the target y is None. Pass one label per case."
        )
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    # scikit-learn asks for this. From the list itself: as one array of strings, NaN would be the class "nan".
    known = labelled(check_labels(y if isinstance(y, list | tuple) else labels, len(labels), "y"))
    if not known.all():
        which = name_cases(np.flatnonzero(~known))
        raise InputError(f"y has no label at {which}. A classifier learns from labelled cases; drop these.")
    check_classification_targets(labels)
    return labels
