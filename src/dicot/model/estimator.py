"""TimeSeriesEmbedder: the library as one scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from dicot.core.errors import InputError, ModelFileError, lookup
from dicot.core.progress import Bar
from dicot.data import Windows
from dicot.data.cases import Cases
from dicot.data.labels import label_fingerprint
from dicot.data.preparation import warn_of_unheld
from dicot.data.reading import Source
from dicot.methods import METHODS, Method, build_method
from dicot.model import embedding, fitting, presets
from dicot.model.controls import CONTROLS, calibrated_control
from dicot.model.embedding import Target, embed
from dicot.model.files import qualified_name, reading
from dicot.model.vector.module import Composition
from dicot.model.vector.poolings import pooled_dim
from dicot.nets.encoders import ENCODERS, Encoder
from dicot.train.loop import OptimiserFactory, TrainingRun, carry_out, weights_hash
from dicot.train.recipe import FAMILIES, Recipe, schedule_name
from dicot.train.record import Checkpoint, History, OnStep, callbacks, is_over

T = TypeVar("T", bound=Target)


class Resolved(NamedTuple):
    """What a fit will use, with everything resolved that the preset decides."""

    method: str | type[Method]
    features: dict[str, Any]  # by the names in FEATURES
    params: dict[str, Any]  # of the method; a control has none
    recipe: Recipe


class Training(NamedTuple):
    """How a fit is to train: the arguments of `TimeSeriesEmbedder.fit` that only a training has."""

    checkpoint: Checkpoint | str | Path | None = None
    optimiser: OptimiserFactory | None = None
    on_step: OnStep | Sequence[OnStep] | None = None
    initial: Any = None
    minutes: float | None = None


class _Fit(NamedTuple):
    """A fit that is under way."""

    learned: dict[str, Any]  # attributes that do not wait for the training
    encoder: Encoder
    train: Cases
    run: TrainingRun | None  # the training; a control has none
    seconds: float | None  # after which the training ends


@dataclass(eq=False, repr=False)
class TimeSeriesEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, fitting.EncoderEstimator):
    """Learn from unlabelled cases in `fit`, turn cases into vectors in `transform`.

    X is an array (cases, channels, time) or (cases, time), a list of (channels, time) arrays, or `Windows`. For 2-D
    input the number of time steps is fixed at fit, otherwise it may change; the number of channels may not.
    Without further arguments the preset "instant" is used, which trains nothing; with a method alone the Di-COT paper's
    recipe and pooling.

    A preset says what `method`, `method_params` and `features` are where they are not given, and which recipe is used.

    Parameters
    ----------
    method : a name of `dicot list methods`, a control ("random", "calibrated"), or a subclass of `Method`. One that is
        not the preset's own has the preset's features and recipe, and its own settings
    preset : a name of `dicot list presets`: "instant", the encoder in the box as it is, beside fixed features; "best",
        the same and, where there are cases enough, an encoder that is trained on them; or "paper", Di-COT as in its
        paper. None means "paper" where a method is given, "best" where an encoder, dim or steps are, and else "instant"
    family : "ucr", "uea" or "large" chooses the paper's recipe and settings for such data sets; None, for your own
        data, takes those of "uea". The other presets have one recipe for all families
    encoder : a name of `dicot list encoders`, an `Encoder`, or any torch module (B, C, T) -> (B, F, T) or (B, F). A
        module is copied and given new weights drawn from `random_state`; to start from its own weights, pass it to
        `fit` as `initial`. None is the preset's
    dim : number of features, for an encoder given by name; a module has its own
    method_params : arguments of the method, for example {"temperature": 0.1, "k": (2, 5)}; they win over the preset's
    encoder_params : further arguments of an encoder given by name, for example {"original": True} for "resnet"
    recipe : a `Recipe`, or a mapping of some of its fields such as {"batch_size": 32, "lr": 1e-3}; what it leaves out
        is the preset's
    steps : number of training steps; wins over `recipe`
    features : what a vector holds, a mapping of some of these names. The preset decides the others; False and 0 switch
        a part off.
        "pooling": how features become one vector: "mean", "max" or "mean+max+std" over time, or another name of
        `dicot list poolings`.
        "calibrate": after training, set BatchNorm's statistics by one pass of the training cases as they are, as the
        "calibrated" control does: those of training come from its last batches, and from parts or views of cases.
        "box": the name or folder of a universal model whose encoder stands, frozen, beside the one that is trained.
        "bank": how many features of a fixed bank of dilated kernels stand beside the encoder's, 84 to 9,996; "mixed":
        2,016 of them, and contests between random kernels, 1,024 for each of their dilations; "small": half of both;
        "auto": "mixed" for one channel and "small" for more; 0: none.
        "levels": mean, range, trend, deviation and roughness of each channel.
        "length": compress the vectors to exactly so many numbers, 2,048 or fewer, by principal components of the
        training cases (4,000 of them at most), and "n_components" to at most so many and fewer than cases; 0: as they
        are.
        "precision": of `transform` on a GPU: "float32", or faster with fewer digits "tf32" (three), "bf16" (two)
    prepare : how input becomes cases, a mapping of some of these names.
        "layout": "nct" (cases, channels, time), the default, or "ntc" for 3-D arrays and lists; `Windows` are "nct".
        "unequal": "error", "pad", "crop" or "resample" for cases of unequal length.
        "missing": "error", "interpolate" or "zero" for NaN.
        "scale": "dataset" (z-score per channel with the training set's statistics) or "case"; default: values as they
        are
    random_state : an int fixes the result, in threads too, where fits wait for each other; None draws a fresh seed;
        numpy's global state is never touched
    device : "auto", "cpu", "cuda" or "cuda:N"
    verbose : show how far what takes longer than two seconds is: a bar in a terminal, else a line every minute

    Attributes
    ----------
    encoder_ : the trained encoder, on the CPU
    history_ : loss and learning rate of every step
    method_, recipe_, method_params_, seed_ : what was used, defaults resolved
    features_ : pooling, bank, levels, length and so on as they were used; `transform` goes by them. After a fit of one
        case, which has no components, the preset's length is 0: the vectors are not compressed
    origin_ : the optimiser and initial weights that were passed to `fit`, by name and hash; "" where there were none
    preparation_ : how input becomes cases, with what was learned from the training set
    composition_ : the parts of a vector that are not the encoder's, and how all of them are compressed
    n_features_in_ : number of time steps, for 2-D input
    """

    method: str | type[Method] | None = None
    _: KW_ONLY
    preset: str | None = None
    family: str | None = None
    method_params: Mapping[str, Any] | None = None
    features: Mapping[str, Any] | None = None

    method_: str | type[Method] = field(init=False)
    method_params_: dict[str, Any] = field(init=False)
    features_: dict[str, Any] = field(init=False)
    origin_: dict[str, str] = field(init=False)
    composition_: Composition = field(init=False)
    data_: dict[str, Any] = field(init=False)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        checkpoint: Checkpoint | str | Path | None = None,
        optimiser: OptimiserFactory | None = None,
        on_step: OnStep | Sequence[OnStep] | None = None,
        initial: str | Path | BaseEstimator | nn.Module | Mapping[str, Tensor] | None = None,
        minutes: float | None = None,
    ) -> TimeSeriesEmbedder:
        """Train the encoder; labels are used by methods that need them and ignored by all others.

        Parameters
        ----------
        checkpoint : a `Checkpoint`, or a path for one: the run is kept on disk, and a run found there is continued
        optimiser : called with the method's parameter groups, returns a torch optimiser; the schedule sets its rate
            before every step. For example `partial(torch.optim.SGD, lr=0.1, momentum=0.9)`; None is the recipe's AdamW
        on_step : a function, or several, called after each step with a `Step` (number, steps, loss, lr, seconds); one
            that returns True ends the training
        initial : weights of the encoder to start from instead of new ones: a folder of `save_pretrained`, a fitted
            estimator, a module, or a state dict. A control refuses them: it would no longer be one
        minutes : the training ends after so many; None is the preset's budget, two for "best" and none for the others
        """
        fit = self._start(X, y, Training(checkpoint, optimiser, on_step, initial, minutes))
        history = History()
        if fit.run is not None:
            what = f"pretrain {method_name(fit.learned['method_'])}"
            history = fitting.train_with_bar(what, fit.run, device=self.device, verbose=self.verbose, most=fit.seconds)
        self._finish(fit, history)
        return self

    def take_part(self, X: Any, y: Any = None, *, checkpoint: Checkpoint | str | Path | None = None) -> None:
        """Do what another process of a run does for the `fit` of the first one (see `join_ranks`): the training alone.

        This estimator is not fitted. Both are given the same data.
        """
        fit = self._start(X, y, Training(checkpoint))
        if fit.run is not None:
            carry_out(fit.run, device=self.device)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return (N, F) embeddings; a case's row does not depend on the other cases.

        X is read piece by piece, so that a memory map need not fit into memory.
        """
        return self.transform_into(X, lambda n, width: np.empty((n, width), np.float32))

    def transform_into(self, X: Any, make: Callable[[int, int], T], *, layout: str | None = None) -> T:
        """Write embeddings, some rows at a time, into what `make(N, F)` returns: they need not fit into memory.

        The target is assigned to as an array is, `target[rows] = values`. `layout` is that of this X where it is not
        the estimator's.
        """
        groups = self._groups(X, layout)
        target = make(sum(len(cases) for _, cases in groups), self._n_features_out)
        options = {"pooling": self.features_["pooling"], "composer": self.composition_, "precision": self._precision}
        self._embed(groups, target, **options)
        return target

    def embed_folder(
        self, source: Source, window: str | int, stride: str | int = "50%", **options: Any
    ) -> pd.DataFrame:
        """Return a frame with one row per window of recordings: where and when it is, and its vector.

        Its columns are those of `Windows.to_pandas` and one of float32 for each feature: v0, v1 and so on. Arguments
        are those of `Windows.from_folder`; channels that nobody says are those of the fit.
        """
        check_is_fitted(self)
        windows = Windows.from_folder(source, window, stride, **{"channels": self.preparation_.channels, **options})
        vectors = self.transform(windows)
        names = [f"v{number}" for number in range(vectors.shape[1])]
        return pd.concat([windows.to_pandas(), pd.DataFrame(vectors, columns=names)], axis=1)

    def transform_time_steps(self, X: Any) -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Return features per time step, (N, F, T), or a list of (F, T_i) where the lengths differ."""
        rows: dict[int, NDArray[np.float32]] = {}
        groups = self._groups(X)
        for index, cases in groups:
            block = embed(self.encoder_, cases, pooling=None, device=self.device, precision=self._precision)
            fitting.refuse_non_finite(block, index, cases)
            if len(groups) == 1:
                return block
            rows |= dict(zip(index.tolist(), block, strict=True))
        return [rows[i] for i in sorted(rows)]

    def save_pretrained(self, directory: str | Path, *, half: bool = False) -> Path:
        """Write config.json and model.safetensors into a folder, without pickle.

        A module that is not a registered encoder is saved as its state dict, a method or function as its name. `half`
        keeps 16 bits of every weight: the file is half as large, and vectors change in their third digit.
        """
        check_is_fitted(self)
        about = {
            "chosen": {"method": method_name(self.method_), **self.features_},
            "method_params": self.method_params_,
            "origin": self.origin_,
            "data": self.data_,
        }
        return self._save(directory, about, self.composition_.tensors(), half=half)

    @classmethod
    def from_pretrained(
        cls, directory: str | Path, *, encoder: nn.Module | None = None, device: str = "auto"
    ) -> TimeSeriesEmbedder:
        """Return the fitted embedder that `save_pretrained` wrote, or one in the box: "dicot-base" needs no fit.

        A model whose encoder is not registered has only its weights in the folder: pass the module again as `encoder`.
        It is copied. What was a function, a schedule for example, has to be set again before another `fit`; a method
        that is not registered is shown by its name.
        """
        model, config, beside = cls._load(directory, encoder, device, ("features", "prepare", "recipe"))
        with reading(directory):
            chosen = config["chosen"]
            if chosen.get("difference"):
                raise ModelFileError(f"{directory} has features of first differences, which are gone. Train it anew.")
            # Models that were saved before a part of a vector existed have none.
            features = {name: chosen.get(name, usual) for name, usual in presets.USUAL_FEATURES.items()}
            embedding.check_features(features)
            model.method_ = str(chosen["method"])
            model.features_ = features
            model.data_ = config["data"]
            model.method_params_ = config["method_params"]
            model.origin_ = config["origin"]

            width = pooled_dim(model.encoder_, chosen["pooling"])
            composition = Composition.from_tensors(beside, model.encoder_.n_channels, width)
            if composition.part_names() != _parts_of(features):
                raise ValueError(f"its tensors are not those of its features {chosen}")
            model.composition_ = composition
            model._n_features_out = composition.dim(width)
        return model

    def resolve(self, n_cases: int, n_times: int) -> Resolved:
        """Return what a fit on so many cases of so many time steps will use; nothing is trained or changed."""
        preset, method, features = self._chosen(n_cases)
        usual = preset.recipe(self.family, n_cases, n_times)
        recipe = presets.merge_recipe(usual, self.recipe, self.steps)
        kind = find_method(method)
        if kind is None:
            return Resolved(method, features, {}, replace(recipe, steps=0))
        params = kind.paper_params(self.family) | preset.params_of(method_name(method)) | dict(self.method_params or {})
        return Resolved(method, features, params, recipe)

    def _chosen(self, n_cases: int | None = None) -> tuple[presets.Preset, str | type[Method], dict[str, Any]]:
        """Return the preset, the method and the features: all that depends on nothing but the number of cases."""
        if isinstance(self.encoder, str):
            lookup(ENCODERS, self.encoder, "encoder")
        if self.family is not None and self.family not in FAMILIES:
            raise InputError(f"family must be one of {FAMILIES} or None; got {self.family!r}.")
        lookup(dict.fromkeys(embedding.EMBED_PRECISIONS), self._precision, "precision")
        preset = presets.find_preset(self._preset_name)
        if n_cases is not None and n_cases < preset.fewest and self.method is None and not self._trains:
            preset = presets.find_preset(preset.otherwise)
        method = preset.method if self.method is None else self.method
        find_method(method)
        features = preset.features_with(self.features or {})
        embedding.check_features(features)
        return preset, method, features

    @property
    def _trains(self) -> bool:
        """Whether arguments ask for a training, whatever the size of the training set."""
        return any(value is not None for value in (self.encoder, self.dim, self.steps))

    @property
    def _preset_name(self) -> str:
        return presets.preset_name(self.preset, self.method, trains=self._trains)

    @property
    def _precision(self) -> str:
        given = presets.entries("features", self.features, (*presets.FEATURES, "precision"))
        return str(given.get("precision", "float32"))

    def _start(self, X: Any, y: Any, training: Training) -> _Fit:
        """Do all of a fit but the training. The estimator itself stays as it is until the end."""
        self._chosen()  # a wrong name is told before the data are looked at
        columns = fitting.columns_of(X)
        preparation, train = self._prepare(X, y)
        seed = fitting.seed_from(self.random_state)
        resolved = self.resolve(len(train), train.n_times)
        preset, _, _ = self._chosen(len(train))

        run = None
        minutes = preset.minutes if training.minutes is None else training.minutes
        seconds = None if minutes is None else 60 * minutes
        kind = find_method(resolved.method)
        with fitting.seeded_weights(seed):
            # Weights are loaded before the method is built, which may make copies of its encoder.
            encoder, weights = self._first_encoder(train, preset, resolved.method, training.initial)
            if encoder.needs_levels:
                warn_of_unheld(train, preparation.channels)
            if kind is not None:
                method = build_method(kind, encoder, resolved.params)
                watching = [*callbacks(training.on_step)]
                if seconds is not None:
                    watching.append(partial(is_over, seconds))
                checkpoint = Checkpoint.of(training.checkpoint)
                run = TrainingRun(
                    method, train, resolved.recipe, seed, checkpoint, training.optimiser, watching, weights
                )
            elif method_name(resolved.method) in CONTROLS:
                CONTROLS[method_name(resolved.method)](encoder, train, self.device)
            elif weights is None:
                raise InputError(f"{presets.FROZEN!r} is an encoder as it is: pass its model to fit as initial.")

        learned = {
            "method_": resolved.method,
            "features_": resolved.features,
            "method_params_": resolved.params,
            "recipe_": resolved.recipe,
            "preparation_": preparation,
            "seed_": seed,
            "origin_": {
                "optimiser": schedule_name(training.optimiser or ""),
                "initial": weights_hash(weights) if weights else "",
            },
            "data_": data_card(resolved.method, train, preparation.fingerprint),
            **columns,
        }
        return _Fit(learned, encoder, train, run, seconds)

    def _first_encoder(
        self, train: Cases, preset: presets.Preset, method: str | type[Method], initial: Any
    ) -> tuple[Encoder, dict[str, Tensor] | None]:
        """Return the encoder that a fit starts from, and the weights that were loaded into it, where any were."""
        name = method_name(method)
        if name in CONTROLS and initial is not None:
            raise InputError(f"The control {name!r} learned nothing: it takes no initial weights.")
        usual = preset.encoder if name in (preset.method, *CONTROLS) else presets.USUAL_ENCODER
        encoder = self._new_encoder(train, usual)
        if initial is not None:
            return encoder, fitting.load_initial(encoder, initial)
        if preset.initial is None or name != preset.method:
            return encoder, None

        is_that_of_the_box = type(encoder) is ENCODERS[usual[0]] and encoder.dim == usual[1]
        if not is_that_of_the_box:
            raise InputError(
                f"The preset {preset.name!r} starts from an encoder in the box, {usual[0]} with dim={usual[1]}. "
                "Leave out encoder and dim, or pass a model of your own to fit as initial."
            )
        return encoder, fitting.load_initial(encoder, preset.initial)

    def _finish(self, fit: _Fit, history: History) -> None:
        """Fit what stands beside the trained encoder, and become what was learned."""
        trained = fit.encoder if fit.run is None else fit.run.method.trained_encoder()
        encoder = trained.cpu().float().eval()
        features = self._without_compression_of_one(fit)
        seed = fit.learned["seed_"]
        if features["calibrate"] and fit.run is not None:  # a control is what it says
            with fitting.seeded_weights(seed):  # an encoder with dropout draws
                calibrated_control(encoder, fit.train, self.device)

        parts = {name: value for name, value in features.items() if name != "calibrate"}
        with Bar("compress", len(fit.train), self.verbose) as bar:
            composition = embedding.fit_composition(
                encoder,
                fit.train,
                **parts,
                seed=seed,
                device=self.device,
                precision=self._precision,
                on_batch=bar.update,
            )
        fitted = {"encoder_": encoder, "history_": history, "composition_": composition, "features_": features}
        self._become({**fit.learned, **fitted})
        self._n_features_out = composition.dim(pooled_dim(encoder, features["pooling"]))

    def _without_compression_of_one(self, fit: _Fit) -> dict[str, Any]:
        """Return the features. One case has no components: a compression that only the preset asks for is left out."""
        features: dict[str, Any] = fit.learned["features_"]
        is_asked_for = any((self.features or {}).get(name) for name in ("length", "n_components"))
        if len(fit.train) > 1 or is_asked_for:
            return features
        return {**features, "length": 0, "n_components": 0}

    def _settings(self) -> dict[str, Any]:
        settings = super()._settings()
        settings["method"] = None if self.method is None else method_name(self.method)
        settings["preset"] = self._preset_name  # the default may become another one
        return settings

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # embeddings are float32 whatever X is
        return tags


def _parts_of(features: Mapping[str, Any]) -> set[str]:
    """Return the names of the parts that a composition of these features has."""
    wanted = {
        "box": features["box"],
        "bank": features["bank"],
        "contests": isinstance(features["bank"], str),
        "levels": features["levels"],
        "compression": features["n_components"] or features["length"],
    }
    return {name for name, value in wanted.items() if value}


def find_method(method: str | type[Method]) -> type[Method] | None:
    """Return the class of a method given by name or as such; None where nothing is trained."""
    if isinstance(method, type) and issubclass(method, Method):
        return method
    if not isinstance(method, str):
        raise InputError(f"method must be a name or a subclass of Method (the class itself); got {method!r}.")
    lookup({**METHODS, **CONTROLS, presets.FROZEN: None}, method, "method")
    return METHODS.get(method)


def method_name(method: str | type[Method]) -> str:
    """Return the name a method is registered by, or that of its class with its module."""
    if isinstance(method, str):
        return method
    return next((name for name, kind in METHODS.items() if kind is method), qualified_name(method))


def data_card(method: str | type[Method], train: Cases, fingerprint: str) -> dict[str, Any]:
    """Say what a model remembers of its training set; labels count only where the method learns from them."""
    kind = find_method(method)
    labels = label_fingerprint(train.labels()) if kind is not None and kind.needs_labels else ""
    return {"name": train.name, "fingerprint": fingerprint, "labels": labels, "n_cases": len(train)}
