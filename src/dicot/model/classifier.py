"""TimeSeriesClassifier: encoder and classifier trained together, from new weights or from an embedder's."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import nn
from torch.nn.functional import linear

from dicot.core.errors import InputError, is_whole, lookup
from dicot.data import Windows
from dicot.data.cases import Cases, name_cases
from dicot.data.labels import check_labels, labelled
from dicot.data.preparation import Preparation, warn_of_unheld
from dicot.data.splits import validation_rows
from dicot.methods.gradual import GradualTuning, StandardisedHead
from dicot.methods.supervised import Supervised, count_classes, refuse_one_class
from dicot.model.embedding import embed
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.files import reading
from dicot.model.fitting import EncoderEstimator, columns_of, seed_from, seeded_weights, train_with_bar
from dicot.model.presets import merge_recipe
from dicot.model.vector.module import PLAIN, Composition
from dicot.model.vector.poolings import pooled, pooled_dim
from dicot.nets.encoders import Encoder
from dicot.train.loop import OptimiserFactory, TrainingRun
from dicot.train.recipe import Recipe
from dicot.train.record import History, OnStep

log = logging.getLogger(__name__)

EPOCHS = 50
USUAL = Recipe(steps=0, batch_size=16, betas=(0.9, 0.999), warmup=0.0)
# Of gradual tuning: fewer epochs from weights that are good already, but not so few steps that nothing changes.
GENTLE_EPOCHS = 20
GENTLE = replace(USUAL, lr=1e-3, warmup=0.1)
GENTLE_STEPS = (50, 2000)  # at least and at most
PENALTIES = np.logspace(-2, 6, 17)  # of ridge regression on standardised vectors, among which one is chosen
SHARPEST = (math.log(0.1), math.log(50))  # factors of its scores, whose targets are 1 and -1, as logarithms
COMPOSITION = "composition."  # in a file, before the names of what a vector holds beside the encoder's features
TUNINGS = ("gradual", "all")
SHARE = 0.2  # of the labelled cases of a class, held out for validation
FEWEST = 5  # cases that a class must have for some to be held out
MAX_STEPS = 1_000_000  # of the solver, which ends by its tolerance
# With `pretrained` these are the embedder's: its weights belong to input that was prepared in this way.
PRETRAINED_DECIDES = ("encoder", "dim", "encoder_params", "prepare")


@dataclass(frozen=True)
class Tuned:
    """What became of a gradual fine-tuning.

    kept: "tuned" weights, or the "probe": the encoder as it was, and a head fitted on all labelled cases.
    step: how many steps of training the kept weights have had; 0 for the probe.
    held_out: labelled cases that were held out for this choice.
    probe_accuracy, tuned_accuracy: on these, of the probe that saw the others, and of the best weights that training
        passed through; NaN where nothing was held out or trained.
    accuracies: of the probe and of every state that was looked at, by step.
    reason: for the choice, in words.
    """

    kept: str
    step: int
    held_out: int
    probe_accuracy: float
    tuned_accuracy: float
    accuracies: dict[int, float]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as a file has it, which knows no NaN."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Tuned:
        read: dict[str, Any] = {name: math.nan if value is None else value for name, value in values.items()}
        return cls(**{**read, "accuracies": {int(step): share for step, share in values["accuracies"].items()}})


@dataclass(eq=False, repr=False)
class TimeSeriesClassifier(ClassifierMixin, EncoderEstimator):
    """Classify time series: a linear layer on an embedder's vectors in seconds, or an encoder trained by the labels.

    X as for TimeSeriesEmbedder; y holds one label per case, numbers or strings.

    Without further arguments nothing is trained: an embedder of the preset "instant" is fitted on X, and a linear layer
    on its vectors. It is ridge regression of the classes, whose strength gives the least error of cases that are left
    out one by one; probabilities have the temperature that fits these cases. `preset="best"` is the same on vectors of
    an encoder that is trained on X without labels, in two minutes.

    Any of `encoder`, `dim`, `pooling`, `epochs`, `steps` and `recipe` asks for a training: all weights, encoder,
    pooling over time and one linear layer, by cross-entropy. New weights are trained by AdamW, half-cosine to zero
    without warm-up; the weights of the last step are kept, nothing is held out for validation (D-55).

    An embedder's weights are tuned gradually. The linear layer begins as logistic regression on the frozen embeddings.
    Then all weights are trained, those next to the input at three tenths of the rate. A fifth of the cases of every
    class is held out, whole groups where X is `Windows` with groups. Ten states of the training are compared with the
    first one, the frozen probe, and the one that classifies most of these cases correctly is kept, of equals the last.
    If it is the probe, the encoder stays as it was and the linear layer is fitted on all cases. So it is where no class
    has 5 cases, or no group can be held out. `tuned_` says what was kept, and why.

    Parameters
    ----------
    pretrained : a TimeSeriesEmbedder to fine-tune; it is left as it is, and kept by `sklearn.base.clone`. One that is
        not fitted is cloned, and the clone fitted on X. Its encoder and its way of preparing input are taken over, so
        the arguments for these are for new weights only; what its vectors hold beside the encoder's features (bank,
        compression) is not used
    preset : of the embedder whose vectors are classified, a name of `dicot list presets`; None is "instant"
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
    encoder_, head_ : the encoder and the linear layer, on the CPU
    composition_ : where nothing was trained by labels, the parts of a vector that are not the encoder's
    strength_ : where nothing was trained by labels, the chosen penalty of the linear layer
    pooling_ : the pooling that was used
    tuned_ : after gradual tuning: what was `kept`, "tuned" or "probe"; the `step` of these weights; how many cases were
        `held_out`; `probe_accuracy` and `tuned_accuracy` on these; `accuracies` by step; the `reason` in words
    history_, recipe_, seed_, preparation_, n_features_in_ : as for TimeSeriesEmbedder
    """

    pretrained: TimeSeriesEmbedder | None = None
    _: KW_ONLY
    preset: str | None = None
    pooling: str | None = None
    tuning: str = "gradual"
    epochs: int | None = None

    classes_: NDArray[Any] = field(init=False)
    head_: nn.Linear = field(init=False)
    pooling_: str = field(init=False)
    composition_: Composition = field(init=False)
    strength_: float = field(init=False)
    tuned_: Tuned = field(init=False)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        optimiser: OptimiserFactory | None = None,
        on_step: OnStep | Sequence[OnStep] | None = None,
    ) -> TimeSeriesClassifier:
        """Learn from labelled cases; `optimiser` and `on_step` as for `TimeSeriesEmbedder.fit`, for a training."""
        self._check_arguments()
        if isinstance(X, Cases) and not isinstance(X, Windows):
            raise InputError(
                "A classifier is trained on cases in memory. Pass corpus.shard(number), or embed the corpus and fit a "
                "FewLabelClassifier on the vectors."
            )
        columns = columns_of(X)
        classes, numbers = np.unique(_checked_labels(y), return_inverse=True)
        seed = seed_from(self.random_state)
        learned = {"classes_": classes, "seed_": seed, "composition_": PLAIN, **columns}
        is_trained = self._asks_for_training or optimiser is not None or on_step is not None
        if not is_trained:
            self._become({**learned, **self._fit_head(X, numbers, seed)})
            return self

        pretrained = None if self.pretrained is None else _fitted(self.pretrained, X, numbers)
        preparation, train = self._training_set(X, numbers, pretrained)
        options = {"optimiser": optimiser, "on_step": on_step}
        if pretrained is None or self.tuning == "all":
            trained = self._train(train, pretrained, seed, options)
        else:
            trained = self._tune(train, pretrained, seed, options)
        self._become({**learned, "preparation_": preparation, **trained})
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return (N, K) probabilities in the order of `classes_`; a case's row does not depend on the other cases."""
        groups = self._groups(X)
        z = np.empty((sum(len(cases) for _, cases in groups), self.head_.in_features), np.float32)
        self._embed(groups, z, pooling=self.pooling_, composer=self.composition_)
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
        tuned = self.tuned_.to_dict() if hasattr(self, "tuned_") else None
        about = {"classes": self.classes_.tolist(), "pooling": self.pooling_, "tuned": tuned}
        if hasattr(self, "strength_"):
            about["strength"] = self.strength_
        beside = {name: tensor.detach() for name, tensor in self.head_.state_dict().items()}
        beside |= {f"{COMPOSITION}{name}": tensor for name, tensor in self.composition_.tensors().items()}
        return self._save(directory, about, beside)

    @classmethod
    def from_pretrained(
        cls, directory: str | Path, *, encoder: nn.Module | None = None, device: str = "auto"
    ) -> TimeSeriesClassifier:
        """Return the fitted classifier that `save_pretrained` wrote; `encoder` as for `TimeSeriesEmbedder`.

        Its `pretrained` is None: to tune the embedder once more, pass that to a new classifier.
        """
        model, config, beside = cls._load(directory, encoder, device, ("prepare", "recipe"))
        with reading(directory):
            model.pooling_, model.classes_ = config["pooling"], np.asarray(config["classes"])
            of_head = {name: tensor for name, tensor in beside.items() if not name.startswith(COMPOSITION)}
            of_vectors = {name.removeprefix(COMPOSITION): t for name, t in beside.items() if name not in of_head}
            width = pooled_dim(model.encoder_, model.pooling_)
            model.composition_ = Composition.from_tensors(of_vectors, model.encoder_.n_channels, width)
            shape = model.composition_.dim(width), len(model.classes_)
            model.head_ = nn.Linear(*shape, device="meta").to_empty(device="cpu").eval()  # without drawing weights
            model.head_.load_state_dict(of_head)
            if "strength" in config:
                model.strength_ = float(config["strength"])
            if config["tuned"] is not None:
                model.tuned_ = Tuned.from_dict(config["tuned"])
        return model

    def __sklearn_clone__(self) -> TimeSeriesClassifier:
        """Keep a fitted embedder in a search or a cross-validation, which would otherwise empty it."""
        parameters = self.get_params(deep=False)
        pretrained = parameters.pop("pretrained")
        if pretrained is not None and not _is_fitted(pretrained):
            pretrained = clone(pretrained)
        return type(self)(pretrained, **{name: clone(value, safe=False) for name, value in parameters.items()})

    def _settings(self) -> dict[str, Any]:
        return {name: value for name, value in super()._settings().items() if name != "pretrained"}

    @property
    def _asks_for_training(self) -> bool:
        """Whether arguments ask for weights that are trained by the labels."""
        given = (self.pretrained, self.encoder, self.dim, self.encoder_params, self.pooling, self.recipe)
        return any(value is not None for value in (*given, self.epochs, self.steps))

    def _fit_head(self, X: Any, numbers: NDArray[np.intp], seed: int) -> dict[str, Any]:
        """Fit an embedder on the cases, and a linear layer on its vectors."""
        embedder = TimeSeriesEmbedder(
            preset=self.preset, prepare=self.prepare, random_state=seed, device=self.device, verbose=self.verbose
        ).fit(X, numbers)
        refuse_one_class(numbers)
        head, strength = fit_ridge_head(embedder.transform(X), numbers)
        names = ("encoder_", "composition_", "preparation_", "recipe_", "history_")
        learned = {name: getattr(embedder, name) for name in names}
        pooling = embedder.features_["pooling"]
        return {**learned, "pooling_": pooling, "head_": head.folded().eval(), "strength_": strength}

    def _train(
        self, train: Windows, pretrained: TimeSeriesEmbedder | None, seed: int, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Train all weights at once, and keep those of the last step."""
        recipe, pooling = self._recipe(len(train)), self.pooling or "mean"
        with seeded_weights(seed):
            method = Supervised(self._first_encoder(train, pretrained), pool=pooling)
        run = TrainingRun(method, train, recipe, seed, **options)
        history = train_with_bar("train", run, device=self.device, verbose=self.verbose)
        method.cpu().float().eval()
        networks = {"encoder_": method.trained_encoder(), "head_": method.head}
        return {**networks, "recipe_": recipe, "history_": history, "pooling_": pooling}

    def _tune(
        self, train: Windows, pretrained: TimeSeriesEmbedder, seed: int, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Fit a head on the frozen encoder, train both on a part of the cases, and keep what is best on the others.

        The labels are 0, 1, ..., K - 1. Where there are groups, whole groups are held out.
        """
        assert train.y is not None
        count_classes(train)
        pooling = self.pooling or pretrained.features_["pooling"]
        encoder = self._first_encoder(train, pretrained)
        y = train.y.astype(np.intp)
        frozen = embed(encoder, train.x, pooling=pooling, device=self.device)
        held_out = validation_rows(y, train.group, SHARE, FEWEST, seed)
        recipe = self._recipe(int(np.count_nonzero(~held_out)))

        history, head = History(), None
        if not held_out.any() or not recipe.steps:
            tuned = Tuned("probe", 0, 0, np.nan, np.nan, {}, _why_not_tuned(y, held_out))
        else:
            probe = fit_head(frozen[~held_out], y[~held_out])
            method = GradualTuning(encoder, probe, partial(pooled, pooling=pooling))
            first_state = {name: value.detach().clone() for name, value in method.state_dict().items()}
            run = TrainingRun(method, train.subset(~held_out), recipe, seed, **options)
            history = train_with_bar("tune", run, device=self.device, verbose=self.verbose)
            method.cpu().float()
            if not method.states or len(history) < recipe.steps:  # a callback has ended it
                method.keep(len(history) / recipe.steps)

            states = {0: first_state}
            states |= {round(progress * recipe.steps): dict(state) for progress, state in method.states}
            accuracies: dict[int, float] = {}
            for step, state in states.items():
                method.load_state_dict(state)
                vectors = frozen[held_out]
                if step:
                    vectors = embed(encoder, train.x[held_out], pooling=pooling, device=self.device)
                accuracies[step] = _accuracy(method.head, vectors, y[held_out])
            tuned = _best_of(accuracies, int(held_out.sum()))
            method.load_state_dict(states[tuned.step])
            head = method.head if tuned.step else None

        log.info("kept the %s: %s", f"weights of step {tuned.step}" if head else "frozen probe", tuned.reason)
        folded = (head or fit_head(frozen, y)).folded()
        return {
            "encoder_": encoder.cpu().float().eval(),
            "head_": folded.eval(),
            "recipe_": recipe,
            "history_": history,
            "pooling_": pooling,
            "tuned_": tuned,
        }

    def _training_set(self, X: Any, y: Any, pretrained: TimeSeriesEmbedder | None) -> tuple[Preparation, Windows]:
        if pretrained is None:
            preparation, train = self._prepare(X, y)
            return preparation, _in_memory(train)
        preparation, train = pretrained.preparation_.fit_another(X, y)
        return preparation, replace(_in_memory(train), group=X.group if isinstance(X, Windows) else None)

    def _first_encoder(self, train: Windows, pretrained: TimeSeriesEmbedder | None) -> Encoder:
        if pretrained is None:
            return self._new_encoder(train)
        # An averaged encoder comes with its gradients switched off.
        return copy.deepcopy(pretrained.encoder_).requires_grad_(True)

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

    def _check_arguments(self) -> None:
        lookup(dict.fromkeys(TUNINGS), self.tuning, "tuning")
        if self.preset is not None and self._asks_for_training:
            raise InputError(
                f"preset={self.preset!r} names the embedder whose vectors a linear layer classifies, and other "
                "arguments ask to train an encoder by the labels. Leave out the one or the others."
            )
        if self.pretrained is None:
            return
        usual = signature(type(self)).parameters
        for name in PRETRAINED_DECIDES:
            mine, its = getattr(self, name), getattr(self.pretrained, name)
            if mine is not its and mine not in (usual[name].default, its):
                raise InputError(f"{name}={mine!r} contradicts the pretrained embedder's {its!r}. Leave {name} out.")


def _why_not_tuned(y: NDArray[np.intp], held_out: NDArray[np.bool_]) -> str:
    """Say why the frozen probe is kept without a training."""
    if held_out.any():
        return "no step was asked for"
    if np.bincount(y).max() < FEWEST:
        return f"none of the cases can be held out: no class has {FEWEST} cases"
    return "none of the groups can be held out: a class would have too few cases left"


def _best_of(accuracies: dict[int, float], n_held_out: int) -> Tuned:
    """Choose the step whose weights classify most of the held-out cases correctly; step 0 is the frozen probe."""
    # Of equals the last: it was trained at the lowest rate, and a probe that ties is on average the worse one.
    best = max(accuracies, key=lambda step: (accuracies[step], step))
    reached = max(accuracy for step, accuracy in accuracies.items() if step)
    shares = f"{reached:.1%} right at best, the frozen probe {accuracies[0]:.1%}"
    reason = f"of {n_held_out} held-out cases training gets {shares}"
    return Tuned("tuned" if best else "probe", best, n_held_out, accuracies[0], reached, accuracies, reason)


def _is_fitted(embedder: TimeSeriesEmbedder) -> bool:
    return hasattr(embedder, "encoder_")


def _fitted(embedder: TimeSeriesEmbedder, X: Any, numbers: NDArray[np.intp]) -> TimeSeriesEmbedder:
    """Return an embedder that is fitted: this one, or its clone fitted on the cases."""
    if _is_fitted(embedder):
        return embedder
    fitted: TimeSeriesEmbedder = clone(embedder).fit(X, numbers)
    return fitted


def _in_memory(train: Cases) -> Windows:
    """Return cases as the training of all weights takes them: as they are, in float32."""
    if isinstance(train, Windows):
        return train
    warn_of_unheld(train, None)
    return Windows(train[np.arange(len(train))], train.labels(), name=train.name)


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


def fit_head(z: NDArray[np.float32], y: NDArray[np.intp]) -> StandardisedHead:
    """Fit logistic regression on standardised vectors (N, F), whose labels are 0, 1, ..., K - 1."""
    scaler = StandardScaler()
    model = LogisticRegression(max_iter=MAX_STEPS).fit(scaler.fit_transform(z.astype(np.float64)), y)
    weights, intercepts = model.coef_, model.intercept_
    if len(weights) == 1:  # two classes have one score; the difference of these two is the same
        weights = np.concatenate([-weights, weights]) / 2
        intercepts = np.concatenate([-intercepts, intercepts]) / 2
    return StandardisedHead(scaler.mean_, scaler.scale_, weights, intercepts)


def fit_ridge_head(z: NDArray[np.float32], y: NDArray[np.intp]) -> tuple[StandardisedHead, float]:
    """Fit ridge regression of the classes 0, 1, ..., K - 1 on vectors (N, F); return it with the penalty it has.

    The penalty has the least squared error of cases that are left out one by one, and the scores are multiplied by the
    factor that makes the probabilities of these cases fit best.
    """
    scaler = StandardScaler()
    scaled = scaler.fit_transform(z.astype(np.float64))
    targets = np.where(np.eye(int(y.max()) + 1, dtype=bool)[y], 1.0, -1.0)
    # With a scoring of its own the scores of the cases that were left out are kept, and not only their errors.
    model = RidgeCV(PENALTIES, scoring="neg_mean_squared_error", store_cv_results=True).fit(scaled, targets)
    left_out = model.cv_results_[:, :, np.flatnonzero(model.alpha_ == PENALTIES)[0]]
    factor = _sharpness(left_out, y)
    head = StandardisedHead(scaler.mean_, scaler.scale_, factor * model.coef_, factor * model.intercept_)
    return head, float(model.alpha_)


def _sharpness(scores: NDArray[np.float64], y: NDArray[np.intp]) -> float:
    """Return the factor of scores (N, K) whose probabilities have the least log-loss."""
    rows = np.arange(len(y))

    def loss(logarithm: float) -> float:
        return -float(log_softmax(scores * math.exp(logarithm), axis=1)[rows, y].mean())

    return math.exp(minimize_scalar(loss, bounds=SHARPEST, method="bounded").x)


def _accuracy(head: StandardisedHead, z: NDArray[np.float32], y: NDArray[np.intp]) -> float:
    with torch.inference_mode():
        scores = head.folded().double()(torch.from_numpy(z).double())
    return float((scores.argmax(dim=1).numpy() == y).mean())
