"""Contenders: whatever answers `fit` and `transform`, by a name of a registry or made by the user."""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import partial
from typing import Any

from sklearn.base import clone

from dicot.core.errors import InputError, lookup
from dicot.judge.classical import CLASSICAL, RAW_FEATURES
from dicot.judge.result import BASELINE, CONTROL, PRETRAINED, SUPERVISED
from dicot.methods import METHODS
from dicot.model.controls import CONTROLS
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.files import FLAT, FLAT_USUAL, grouped
from dicot.model.presets import FROZEN, PAPER, PRESETS, find_preset, preset_name

REFERENCE = re.compile(r" \([^()]*D-\d+\)|^\(N, C, T\) -> \(.*?\): ")  # shapes and divergences, for those who read code
SAVED = "saved"  # the kind of a fitted model that is scored as it is
CIRCUMSTANCES = ("device", "verbose")  # parameters of an estimator that no embedding depends on
# What an untrained encoder's embeddings depend on: two contenders that agree in these share their controls.
CONTROL_SETTINGS = (
    *("preset", "encoder", "encoder_params", "dim", "pooling", "bank", "n_components"),
    *("embed_precision", "layout", "unequal", "missing", "scale"),
)


@dataclass(frozen=True)
class Own:
    """How to make a transformer that is in no registry."""

    make: Callable[[int], Any]  # a fresh one for a seed, which answers `fit(X, y)` and `transform(X)`
    needs_labels: bool = False  # is fitted on the labelled cases alone; all others see every case and no label
    fixed: bool = False  # the same for every seed
    model: TimeSeriesEmbedder | None = None  # what it is made of, where that is one of ours


@dataclass(frozen=True)
class Contender:
    """Who is compared, with all settings that its result depends on."""

    name: str  # in tables; part of no key, unless the settings alone do not tell what it is
    kind: str  # its key among the methods, controls or classical baselines, or what sort of transformer it is
    method_params: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # of TimeSeriesEmbedder, flat: encoder, pooling ...
    own: Own | None = None  # how it is made, where no registry knows it
    classifier: str = ""  # of CLASSIFIERS: stands in for the linear and the ridge probe of every protocol

    @property
    def needs_labels(self) -> bool:
        return self.own.needs_labels if self.own is not None else _needs_labels(self.kind)

    @property
    def fixed(self) -> bool:
        """Whether it is the same for every seed."""
        return self.own.fixed if self.own is not None else self.classical and not CLASSICAL[self.kind].random

    @property
    def trained(self) -> bool:
        """Whether it is a registered method, whose training takes a schedule and can be continued."""
        return self.own is None and self.kind in METHODS

    @property
    def classical(self) -> bool:
        """Whether it has no network."""
        return self.own is None and self.kind in CLASSICAL

    @property
    def learned_elsewhere(self) -> bool:
        """Whether nothing is trained on the data: its encoder is one of the box, as it is."""
        return FROZEN in (self.kind, getattr(self.own.model if self.own is not None else None, "method_", None))

    @property
    def role(self) -> str:
        """What it stands for in a comparison: one of the four of dicot.judge.result."""
        model = self.own.model if self.own is not None else None
        kind = getattr(model, "method_", self.kind) if self.kind == SAVED else self.kind
        if kind in CONTROLS:
            return CONTROL
        if self.needs_labels or _needs_labels(kind):
            return SUPERVISED
        return PRETRAINED if kind in METHODS or kind == FROZEN or model is not None else BASELINE

    @property
    def about(self) -> str:
        """What it is, in one line, as the registries say; empty for what is in none."""
        if self.kind == SAVED:
            return "the saved model"
        known = registered().get(self.name) or registered().get(self.kind)
        line = getattr(known, "summary", None) or ((known.__doc__ or "") if known else "").partition("\n")[0]
        what = REFERENCE.sub("", line).removesuffix(".")
        return f"{what}; its {self.classifier} stands in for linear and ridge probes" if self.classifier else what

    @property
    def config(self) -> dict[str, Any]:
        """Everything a fit depends on but data and seed, as plain data; the name where objects are among it."""
        # What the preset means today, so that a preset with other values is not taken for what was recorded.
        digest = find_preset(self.settings["preset"]).digest() if "preset" in self.settings else None
        settings, params = dict(self.settings), dict(self.method_params)
        classifier = self.classifier or None
        plain = given(kind=self.kind, method_params=params, settings=settings, preset=digest, classifier=classifier)
        objects: list[Any] = []

        def in_words(value: Any) -> Any:
            objects.append(value)
            return described(value)

        told: dict[str, Any] = json.loads(json.dumps(plain, default=in_words))
        return {**told, "name": self.name} if objects or self.own is not None else told

    def make(self, seed: int, **circumstances: Any) -> Any:
        """Make a fresh transformer; settings come before the family, device and verbosity of the run."""
        if self.own is not None:
            return self.own.make(seed)
        if self.kind in CLASSICAL:
            return CLASSICAL[self.kind](random_state=seed, scale=self.settings.get("scale"))
        lookup({**registered(), FROZEN: None}, self.kind, "contender")
        # Without a preset a contender is the paper's, whatever an embedder's default is.
        settings = {"preset": PAPER.name, **circumstances, **self.settings}
        settings |= {"method_params": dict(self.method_params), "random_state": seed}
        # A preset may fit few cases by another one, unless a method is named.
        own = "preset" in self.settings and find_preset(self.settings["preset"]).method == self.kind
        return TimeSeriesEmbedder(None if own else self.kind, **grouped(settings))


def _needs_labels(method: Any) -> bool:
    """Whether a method by its name, or one of the user's own, learns from labels."""
    return bool(getattr(METHODS.get(method) if isinstance(method, str) else method, "needs_labels", False))


@dataclass(frozen=True)
class Frozen:
    """A fitted transformer that stays as it is when it is fitted again, to score a saved model."""

    model: Any

    def fit(self, X: Any, y: Any = None) -> "Frozen":
        return self

    def transform(self, X: Any) -> Any:
        return self.model.transform(X)


def registered() -> dict[str, Any]:
    """Everything that can be a contender by its name."""
    return {**PRESETS, **METHODS, **CONTROLS, **CLASSICAL}


def contender(name: str, *, method_params: Mapping[str, Any] | None = None, **settings: Any) -> Contender:
    """A method, preset, control or baseline by name, with settings of an embedder; a baseline takes `scale` alone."""
    lookup(registered(), name, "contender")
    if name in PRESETS and name not in METHODS:
        settings["preset"] = name
        if (method := PRESETS[name].method) == FROZEN:
            return Contender(name, FROZEN, {}, changed({**settings, "method": FROZEN}))
        return replace(contender(method, method_params=method_params, **settings), name=name)
    own = changed({**settings, "method": name})
    if name in CLASSICAL:
        scaled = CLASSICAL[name].scaled and "scale" in own
        return Contender(name, name, {}, {"scale": own["scale"]} if scaled else {})
    if name in METHODS:  # as a benchmark says it, so that equal settings have equal keys
        own = {"schedule": "per_step", "precision": "float32", **own}
    return Contender(name, name, method_params or {}, own)


def with_own_classifier(name: str, classifier: str) -> Contender:
    """A baseline by name that is classified by its own classifier wherever others have a linear or a ridge probe."""
    return replace(contender(name), name=f"{name} + {classifier}", classifier=classifier)


def own(
    name: str, make: Callable[[int], Any], *, needs_labels: bool = False, fixed: bool = False, **settings: Any
) -> Contender:
    """A transformer of your own, made for each seed by `make`; `settings` are recorded with its results."""
    return Contender(name, "own", {}, settings, Own(make, needs_labels, fixed))


def saved(name: str, model: TimeSeriesEmbedder) -> Contender:
    """A fitted model as it is."""
    digest = hashlib.sha256()
    for key, tensor in sorted({**model.encoder_.state_dict(), **model.composition_.tensors()}.items()):
        digest.update(key.encode() + tensor.numpy().tobytes())
    made = Own(lambda seed: Frozen(model), fixed=True, model=model)
    return Contender(name, SAVED, {}, {"weights": digest.hexdigest()[:32]}, made)


def as_contender(one: Any, name: str | None = None) -> Contender:
    """A contender from a name, a Contender, or an estimator, which is cloned for each seed with its `random_state`."""
    if isinstance(one, Contender):
        return one
    if isinstance(one, str):
        return contender(one) if name is None else replace(contender(one), name=name)
    if not (hasattr(one, "get_params") and hasattr(one, "transform")):
        raise InputError(
            f"A contender is a name, a TimeSeriesEmbedder, a scikit-learn transformer or a Contender; got {one!r}. "
            "dicot.judge.evaluation.own(name, make) makes one of anything that has fit and transform."
        )

    def make(seed: int) -> Any:
        fresh = clone(one)
        return fresh.set_params(random_state=seed) if "random_state" in fresh.get_params() else fresh

    params, method = one.get_params(deep=False), getattr(one, "method", None)
    model = one if isinstance(one, TimeSeriesEmbedder) else None
    if model is not None and method is None:
        method = find_preset(model._preset_name).method
    kind = str(described(method or type(one)))
    name = name or (method if isinstance(method, str) else getattr(method or type(one), "__name__", "own"))
    made = Own(make, _needs_labels(method), "random_state" not in params, model)
    return Contender(str(name), kind, {}, changed(params, type(one)), made)


def named_contenders(given_ones: Mapping[str, Any] | Sequence[Any]) -> list[Contender]:
    """Contenders from names, estimators, transformers and Contender objects; a mapping says what they are called."""
    pairs = list(given_ones.items()) if isinstance(given_ones, Mapping) else [(None, one) for one in given_ones]
    out: list[Contender] = []
    for name, one in pairs:
        made = as_contender(one, name)
        alike = sum(made.name == other.name.split(" (")[0] for other in out)
        if alike and name is None and not isinstance(one, str | Contender):
            made = replace(made, name=f"{made.name} ({alike + 1})")
        elif alike:
            raise InputError(f"There are two contenders called {made.name!r}. Give each a name of its own.")
        out.append(made)
    return out


def with_controls(contenders: Sequence[Contender]) -> list[Contender]:
    """Add to the contenders both controls of every encoder among them, and the raw features.

    Those of the first encoder have their plain names, those of another one say which contender they belong to.
    """
    known: list[Mapping[str, Any]] = []
    added: list[Contender] = []
    for one in contenders:
        model = one.own.model if one.own is not None else None
        if one.classical or (one.own is not None and model is None):
            continue
        settings = changed(model.get_params(deep=False)) if model is not None and one.kind == SAVED else one.settings
        settings = {name: value for name, value in settings.items() if name in CONTROL_SETTINGS}
        if settings in known:
            continue
        of = f" of {one.name}" if known else ""
        known.append(settings)
        made = {name: None if model is None else Own(partial(_untrained, model, name)) for name in CONTROLS}
        added += [Contender(f"{name}{of}", name, {}, settings, own) for name, own in made.items()]
    if not known:
        added += [Contender(name, name) for name in CONTROLS]
    added += [contender(name, scale=known[0].get("scale") if known else None) for name in RAW_FEATURES]
    taken = {one.name for one in contenders}
    return [*contenders, *(one for one in added if one.name not in taken)]


def _untrained(model: TimeSeriesEmbedder, kind: str, seed: int) -> Any:
    """Make a control of a model: everything is the model's but its weights."""
    # A control is named as a method is, which alone would choose another preset.
    preset = model._preset_name
    return clone(model).set_params(preset=preset, method=kind, method_params=None, random_state=seed)


def changed(settings: Mapping[str, Any], estimator: type | None = None) -> dict[str, Any]:
    """Settings that differ from an estimator's defaults, which are TimeSeriesEmbedder's unless said otherwise.

    Those of a TimeSeriesEmbedder are flat, as they were when the first results were recorded.
    """
    estimator = estimator or TimeSeriesEmbedder
    usual = {name: parameter.default for name, parameter in inspect.signature(estimator).parameters.items()}
    if issubclass(estimator, TimeSeriesEmbedder):  # the same key whatever the default becomes
        settings = flat(settings)
        usual = {**usual, **dict.fromkeys(FLAT), **FLAT_USUAL, "preset": PAPER.name}
        if "preset" in settings:
            trains = any(settings.get(name) is not None for name in ("encoder", "dim", "steps"))
            settings = {**settings, "preset": preset_name(settings["preset"], settings.get("method"), trains=trains)}
    left_out = (*CIRCUMSTANCES, "method", "random_state")
    return {
        name: value
        for name, value in settings.items()
        if name not in left_out
        and (value is not usual.get(name, inspect.Parameter.empty))
        and not (type(value) in (int, float, str, bool) and value == usual.get(name))
    }


def flat(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an estimator as flat settings, all of them: recorded results have such keys."""
    settings = {name: value for name, value in arguments.items() if name not in ("features", "prepare")}
    for name, (group, inner_name) in FLAT.items():
        if group in arguments:
            entries = arguments[group] if isinstance(arguments[group], Mapping) else {}
            usual = settings.get(name, FLAT_USUAL.get(name))
            settings[name] = entries.get(inner_name, usual)
    recipe = arguments.get("recipe")
    if isinstance(recipe, Mapping):
        settings["recipe"] = {name: value for name, value in recipe.items() if name not in FLAT} or None
    return settings


def described(value: Any) -> Any:
    """Objects among settings in words: a dataclass by its fields, anything else by its class or name."""
    if value is None or isinstance(value, str | int | float | bool | list | tuple | dict):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    where = value if hasattr(value, "__qualname__") else type(value)
    return f"{where.__module__}.{where.__qualname__}"


def given(**values: Any) -> dict[str, Any]:
    """Leave out what is empty, so that a setting that nobody uses changes no key."""
    return {name: value for name, value in values.items() if value is not None and value != {}}
