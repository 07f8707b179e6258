"""TimeSeriesClassifier: encoder and classifier trained together, from new weights or from an embedder's."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import nn
from torch.nn.functional import linear

from dicot.core.errors import InputError, ModelFileError, is_whole, lookup
from dicot.data import Windows
from dicot.data.collection import check_labels, labelled
from dicot.data.pieces import Cases
from dicot.data.policies import name_cases
from dicot.data.preparation import Preparation
from dicot.methods.supervised import Supervised, count_classes
from dicot.model.arguments import PREPARE, entries, grouped, merge_recipe, moved_arguments
from dicot.model.embedding import POOLINGS, pooled_dim, refuse_length
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.files import fitted_of, from_pretrained, reading, restore, save_pretrained, settings_of
from dicot.model.fitting import (
    become,
    check_columns,
    columns_of,
    embed_cases,
    finished,
    new_encoder,
    seed_from,
    seeded_weights,
    train_with_bar,
)
from dicot.model.tuning import Tuned, tune
from dicot.nets.encoders import Encoder
from dicot.train import History, Recipe, TrainingRun
from dicot.train.history import OnStep
from dicot.train.run import OptimiserFactory

EPOCHS, USUAL = 50, Recipe(steps=0, batch_size=16, betas=(0.9, 0.999), warmup=0.0)
# Of gradual tuning: fewer epochs from weights that are good already, but not so few steps that nothing changes.
GENTLE_EPOCHS, GENTLE, GENTLE_STEPS = 20, replace(USUAL, lr=1e-3, warmup=0.1), (50, 2000)
TUNINGS = ("gradual", "all")
GROUPS = ("prepare", "recipe")  # arguments that are mappings of settings
# With `pretrained` these are the embedder's: its weights belong to input that was prepared in this way.
PRETRAINED_DECIDES = ("encoder", "dim", "encoder_params", "prepare")


class TimeSeriesClassifier(ClassifierMixin, BaseEstimator):
    """Train all weights by cross-entropy: encoder, pooling over time, one linear layer.

    X as for TimeSeriesEmbedder; y holds one label per case, numbers or strings. New weights are trained by AdamW,
    half-cosine to zero without warm-up; the weights of the last step are kept, nothing is held out for validation
    (D-55).

    An embedder's weights are tuned gradually. The linear layer begins as logistic regression on the frozen embeddings.
    Then all weights are trained, those next to the input at three tenths of the rate. A fifth of the cases of every
    class is held out, whole groups where X is `Windows` with groups. Ten states of the training are compared with the
    first one, the frozen probe, and the one that classifies most of these cases correctly is kept, of equals the last.
    If it is the probe, the encoder stays as it was and the linear layer is fitted on all cases. So it is where no class
    has 5 cases, or no group can be held out. `tuned_` says what was kept, and why.

    Parameters
    ----------
    pretrained : a fitted TimeSeriesEmbedder to fine-tune; it is left as it is, and kept by `sklearn.base.clone`.
        Its encoder and its way of preparing input are taken over, so the arguments for these are for new weights only;
        what its vectors hold beside the encoder's features (bank, compression) is not used
    encoder, dim, encoder_params : as for TimeSeriesEmbedder
    pooling : of gradual tuning a name of `dicot list poolings`, by default the embedder's; otherwise "mean" over time,
        the default, for every pretrained method alike (D-57), or "max" as the authors' classifier has it
    tuning : how `pretrained` is tuned: "gradual", or "all" weights at once and to the last step, as new weights are
    recipe : a `Recipe`, or a mapping of some of its fields such as {"batch_size": 8}. Otherwise batches have 16 cases,
        betas are (0.9, 0.999), lr is 3e-4 and warmup 0; for gradual tuning lr is 1e-3 and warmup 0.1. The schedule
        "per_epoch" lowers the rate far too slowly (D-01)
    epochs : passes over the training set, each of N // batch_size steps and at least one; 50 unless `recipe` has steps.
        For gradual tuning 20, and from 50 to 2000 steps; N are then the cases that are not held out
    steps : optimiser steps, instead of epochs; both win over `recipe`
    prepare : as for TimeSeriesEmbedder
    random_state, device, verbose : as for TimeSeriesEmbedder

    Attributes
    ----------
    classes_ : the labels in ascending order
    encoder_, head_ : the trained encoder and linear layer, on the CPU
    pooling_ : the pooling that was used
    tuned_ : after gradual tuning: what was `kept`, "tuned" or "probe"; the `step` of these weights; how many cases were
        `held_out`; `probe_accuracy` and `tuned_accuracy` on these; `accuracies` by step; the `reason` in words
    history_, recipe_, seed_, preparation_, n_features_in_ : as for TimeSeriesEmbedder
    """

    classes_: NDArray[Any]
    encoder_: Encoder
    head_: nn.Linear
    history_: History
    recipe_: Recipe
    seed_: int
    preparation_: Preparation
    pooling_: str
    tuned_: Tuned

    @moved_arguments
    def __init__(
        self,
        pretrained: TimeSeriesEmbedder | None = None,
        *,
        encoder: str | nn.Module = "inception_time",
        dim: int = 256,
        encoder_params: Mapping[str, Any] | None = None,
        pooling: str | None = None,
        tuning: str = "gradual",
        recipe: Recipe | Mapping[str, Any] | None = None,
        epochs: int | None = None,
        steps: int | None = None,
        prepare: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = True,
    ) -> None:
        self.pretrained = pretrained
        self.encoder = encoder
        self.dim = dim
        self.encoder_params = encoder_params
        self.pooling = pooling
        self.tuning = tuning
        self.recipe = recipe
        self.epochs = epochs
        self.steps = steps
        self.prepare = prepare
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        optimiser: OptimiserFactory | None = None,
        on_step: OnStep | Sequence[OnStep] | None = None,
    ) -> TimeSeriesClassifier:
        """Train on labelled cases; `optimiser` and `on_step` as for `TimeSeriesEmbedder.fit`."""
        self._check_pretrained()
        columns = columns_of(X)
        classes, numbers = np.unique(_checked_labels(y), return_inverse=True)
        preparation, train = self._prepare(X, numbers)
        learned = {"classes_": classes, "preparation_": preparation, "seed_": seed_from(self.random_state), **columns}
        fit = self._train if self.pretrained is None or self.tuning == "all" else self._tune
        become(self, {**learned, **fit(train, learned["seed_"], optimiser, on_step)})
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return (N, K) probabilities in the order of `classes_`; a case's row does not depend on the other cases."""
        check_is_fitted(self)
        check_columns(self, X)
        groups = list(self.preparation_.apply(X))
        z = np.empty((sum(len(cases) for _, cases in groups), pooled_dim(self.encoder_, self.pooling_)), np.float32)
        embed_cases(self.encoder_, groups, z, self.pooling_, device=self.device, verbose=self.verbose)
        with torch.inference_mode():
            scores = linear(torch.from_numpy(z).double(), self.head_.weight.double(), self.head_.bias.double())
            probabilities: NDArray[np.float64] = scores.softmax(dim=1).numpy()
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Return (N,) the most probable label of each case."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def save_pretrained(self, directory: str | Path) -> Path:
        """Write config.json and model.safetensors into a folder, without pickle, as `TimeSeriesEmbedder` does.

        The embedder that was tuned is not kept beside the weights that came of it.
        """
        check_is_fitted(self)
        settings = {name: value for name, value in settings_of(self).items() if name != "pretrained"}
        tuned = getattr(self, "tuned_", None)
        return save_pretrained(
            directory,
            self.encoder_,
            {
                "estimator": {**settings, "random_state": self.seed_},
                "classes": self.classes_.tolist(),
                "pooling": self.pooling_,
                "tuned": None if tuned is None else tuned.to_dict(),
                **fitted_of(self),
            },
            {name: tensor.detach() for name, tensor in self.head_.state_dict().items()},
        )

    @classmethod
    def from_pretrained(
        cls, directory: str | Path, *, encoder: nn.Module | None = None, device: str = "auto"
    ) -> TimeSeriesClassifier:
        """Return the fitted classifier that `save_pretrained` wrote; `encoder` as for `TimeSeriesEmbedder`.

        Its `pretrained` is None: to tune the embedder once more, pass that to a new classifier.
        """
        network, config, beside = from_pretrained(directory, encoder)
        if "classes" not in config:
            raise ModelFileError(
                f"{directory} holds an embedder. Load it by TimeSeriesEmbedder.from_pretrained, or name a classifier's "
                "folder."
            )
        with reading(directory):
            model = cls(**grouped({**config["estimator"], "device": device}, GROUPS))
            if encoder is not None:
                model.encoder = encoder
            restore(model, network, config)
            lookup(POOLINGS, config["pooling"], "pooling")
            model.pooling_ = config["pooling"]
            model.classes_ = np.asarray(config["classes"])
            shape = pooled_dim(network, model.pooling_), len(model.classes_)
            model.head_ = nn.Linear(*shape, device="meta").to_empty(device="cpu").eval()  # without drawing weights
            model.head_.load_state_dict(dict(beside))
            if config["tuned"] is not None:
                model.tuned_ = Tuned.from_dict(config["tuned"])
        return model

    def __sklearn_clone__(self) -> TimeSeriesClassifier:
        """Keep the fitted embedder in a search or a cross-validation, which would otherwise empty it."""
        parameters = self.get_params(deep=False)
        pretrained = parameters.pop("pretrained")
        return type(self)(pretrained, **{name: clone(value, safe=False) for name, value in parameters.items()})

    def _train(
        self, train: Windows, seed: int, optimiser: OptimiserFactory | None, on_step: OnStep | Sequence[OnStep] | None
    ) -> dict[str, Any]:
        """Train all weights at once, and keep those of the last step."""
        recipe, pooling = self._recipe(len(train)), self.pooling or "mean"
        with seeded_weights(seed):
            method = Supervised(self._first_encoder(train), pool=pooling)
        run = TrainingRun(method, train, recipe, seed, optimiser=optimiser, on_step=on_step)
        history = train_with_bar("train", run, device=self.device, verbose=self.verbose)
        networks = {"encoder_": finished(method.trained_encoder()), "head_": method.head.cpu().float().eval()}
        return {**networks, "recipe_": recipe, "history_": history, "pooling_": pooling}

    def _tune(
        self, train: Windows, seed: int, optimiser: OptimiserFactory | None, on_step: OnStep | Sequence[OnStep] | None
    ) -> dict[str, Any]:
        """Start from the frozen probe, and keep what is best on held-out cases."""
        assert self.pretrained is not None
        count_classes(train)
        pooling = self.pooling or self.pretrained.features_["pooling"]
        lookup(POOLINGS, pooling, "pooling")
        result = tune(
            self._first_encoder(train),
            train,
            self._recipe,
            pooling=pooling,
            seed=seed,
            device=self.device,
            verbose=self.verbose,
            optimiser=optimiser,
            on_step=on_step,
        )
        networks = {"encoder_": finished(result.encoder), "head_": result.head.eval()}
        how = {"recipe_": result.recipe, "history_": result.history, "pooling_": pooling, "tuned_": result.tuned}
        return {**networks, **how}

    def _prepare(self, X: Any, numbers: NDArray[np.intp]) -> tuple[Preparation, Windows]:
        if isinstance(X, Cases) and not isinstance(X, Windows):
            raise InputError(
                "A classifier is trained on cases in memory. Pass corpus.shard(number), or embed the corpus and fit a "
                "FewLabelClassifier on the vectors."
            )
        if self.pretrained is not None:
            given = self.pretrained.preparation_
            if given.unequal == "resample":
                refuse_length(self.pretrained.encoder_, given.n_times, given.unequal, self.device)
            preparation, train = given.fit_another(X, numbers)
            assert isinstance(train, Windows)
            return preparation, replace(train, group=X.group if isinstance(X, Windows) else None)
        preparation, train = Preparation(**entries("prepare", self.prepare, PREPARE)).fit(X, numbers)
        assert isinstance(train, Windows)
        return preparation, train

    def _first_encoder(self, train: Windows) -> Encoder:
        if self.pretrained is not None:
            # An averaged encoder comes with its gradients switched off.
            return copy.deepcopy(self.pretrained.encoder_).requires_grad_(True)
        return new_encoder(self.encoder, train, dim=self.dim, encoder_params=self.encoder_params)

    def _recipe(self, n_cases: int) -> Recipe:
        """Return the recipe for so many training cases: steps where they are given, otherwise epochs."""
        gradual = self.pretrained is not None and self.tuning == "gradual"
        usual, epochs = (GENTLE, GENTLE_EPOCHS) if gradual else (USUAL, EPOCHS)
        if self.epochs is not None and not is_whole(self.epochs, 1):
            raise InputError(f"epochs must be a whole number, 1 or more; got {self.epochs!r}.")
        recipe = merge_recipe(usual, self.recipe, self.steps)
        has_steps = isinstance(self.recipe, Recipe) or "steps" in (self.recipe or {})
        if self.steps is not None or (has_steps and self.epochs is None):
            return recipe
        steps = (self.epochs or epochs) * max(1, n_cases // recipe.batch_size)
        if gradual and self.epochs is None:
            steps = min(max(steps, GENTLE_STEPS[0]), GENTLE_STEPS[1])
        return replace(recipe, steps=steps)

    def _check_pretrained(self) -> None:
        lookup(dict.fromkeys(TUNINGS), self.tuning, "tuning")
        if self.pretrained is None:
            return
        if not isinstance(self.pretrained, TimeSeriesEmbedder):
            raise InputError(f"pretrained must be a fitted TimeSeriesEmbedder; got {type(self.pretrained).__name__}.")
        check_is_fitted(self.pretrained)
        usual = signature(type(self)).parameters
        for name in PRETRAINED_DECIDES:
            mine, its = getattr(self, name), getattr(self.pretrained, name)
            if mine is not its and mine not in (usual[name].default, its):
                raise InputError(f"{name}={mine!r} contradicts the pretrained embedder's {its!r}. Leave {name} out.")


def _checked_labels(y: Any) -> NDArray[Any]:
    """Check a target as scikit-learn does, with its own messages; every case must have a label."""
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
