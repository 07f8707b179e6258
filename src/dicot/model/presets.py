"""Presets: a method, its features and its recipe under one name. PRESETS is where a new one is registered."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, NamedTuple

from dicot.core.errors import InputError, did_you_mean, lookup
from dicot.model.box import in_box
from dicot.train.recipe import Recipe, paper_recipe, schedule_name

# What a vector holds where a preset says nothing: False, 0 and "" mean that a part is off.
USUAL_FEATURES: Mapping[str, Any] = {
    "pooling": "mean",
    "calibrate": False,
    "bank": 0,
    "n_components": 0,
    "levels": False,
    "length": 0,
    "box": "",
}
FEATURES = tuple(USUAL_FEATURES)
PREPARE = ("layout", "unequal", "missing", "scale")
USUAL_ENCODER = ("inception_time", 256)  # its name and dim
FROZEN = "frozen"  # instead of a method: an encoder in the box as it is
RecipeRule = Callable[[str | None, int, int], Recipe]  # (family, cases, time steps) -> recipe


@dataclass(frozen=True)
class Preset:
    """What TimeSeriesEmbedder uses where its own argument is None.

    The names are those of the estimator's arguments. Of `features` what is left out is USUAL_FEATURES'. `recipe` is
    called with the family of the data set, its number of cases and its number of time steps.
    """

    name: str
    summary: str  # one line, for `dicot list presets`
    method: str
    recipe: RecipeRule
    method_params: Mapping[str, Any] = field(default_factory=dict)
    encoder: tuple[str, int] = USUAL_ENCODER  # its name and dim, for the preset's own method
    initial: str | None = None  # the model in the box whose encoder its method starts from
    features: Mapping[str, Any] = field(default_factory=dict)
    fewest: int = 0  # cases to train on; a set of fewer is fitted by the preset `otherwise`
    otherwise: str = ""
    minutes: float | None = None  # after which a training ends

    def params_of(self, method: str) -> dict[str, Any]:
        """Return the arguments for a method: those of the preset for its own, none for any other."""
        return dict(self.method_params) if method == self.method else {}

    def features_with(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a vector holds: the features that were chosen, and the preset's where that is None."""
        features = {**USUAL_FEATURES, **self.features}
        features |= {name: chosen[name] for name in FEATURES if chosen.get(name) is not None}
        return features

    def digest(self) -> str:
        """Return a short hash of all values, for the keys of recorded results: other values, another key."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["name"], values["summary"], values["features"]

        values["method_params"] = dict(self.method_params)
        values |= self.features_with({})
        values["recipe"] = schedule_name(self.recipe)
        if is_dataclass(self.recipe) and not isinstance(self.recipe, type):
            values["recipe_values"] = asdict(self.recipe)
        for part in filter(None, (self.initial, values["box"])):  # other weights in the box, other results
            config = json.loads((in_box(part) / "config.json").read_text(encoding="utf-8"))
            values["weights"] = config["weights"]["sha256"]
        if self.otherwise:
            values["otherwise"] = find_preset(self.otherwise).digest()
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


class Tier(NamedTuple):
    """Training sets up to this size, cases x time steps, and how they are trained."""

    size: float
    batch_size: int
    steps: int


@dataclass(frozen=True)
class SizeRule:
    """A recipe by the size of the training set alone; the family of the data set does not count.

    tiers: in ascending order; the first one that the training set fits into counts. No batch has more than all cases.
    long: cases of so many time steps or more have a quarter of the largest tier's batch and half of its steps
    """

    tiers: tuple[Tier, ...] = (Tier(1e5, 32, 150), Tier(1e6, 32, 300), Tier(math.inf, 128, 1500))
    long: int = 2000

    def __call__(self, family: str | None, n_cases: int, n_times: int) -> Recipe:
        tier = next(tier for tier in self.tiers if n_cases * n_times <= tier.size)
        batch_size, steps = tier.batch_size, tier.steps
        if tier is self.tiers[-1] and n_times >= self.long:
            batch_size, steps = batch_size // 4, steps // 2
        return Recipe(steps=steps, batch_size=max(1, min(batch_size, n_cases)))


@dataclass(frozen=True)
class TrainedRule:
    """A recipe that two processor cores carry out in about two minutes: fewer steps where cases are longer.

    steps: of cases of `n_times` time steps or fewer
    """

    steps: int = 300
    fewest: int = 60
    n_times: int = 160
    batch_size: int = 32

    def __call__(self, family: str | None, n_cases: int, n_times: int) -> Recipe:
        steps = max(self.fewest, min(self.steps, self.steps * self.n_times // n_times))
        return Recipe(steps=steps, batch_size=min(self.batch_size, n_cases))


PAPER = Preset(
    name="paper",
    summary="the Di-COT paper's method, mean over time, and its recipe for the family of the data set",
    method="dicot",
    recipe=paper_recipe,
)
INSTANT = Preset(
    name="instant",
    summary="no training: the encoder in the box, beside a small bank of fixed kernels and levels, 1,024 numbers",
    method=FROZEN,
    recipe=SizeRule(),
    encoder=("universal", 192),
    initial="dicot-base",
    features={"pooling": "own", "bank": "auto", "levels": True, "length": 1024},
)
BEST = replace(
    INSTANT,
    name="best",
    summary="as instant, and where there are 500 cases or more an encoder that is trained on them, in two minutes",
    method="across",
    recipe=TrainedRule(),
    encoder=USUAL_ENCODER,
    initial=None,
    features={**INSTANT.features, "pooling": "mean+max+std", "box": "dicot-base"},
    fewest=500,
    otherwise=INSTANT.name,
    minutes=2.0,
)
PRESETS: dict[str, Preset] = {preset.name: preset for preset in (PAPER, INSTANT, BEST)}
DEFAULT_PRESET = INSTANT.name
METHOD_PRESET = PAPER.name  # of a method that is named without a preset: what its paper says


def preset_name(preset: str | None, method: object, *, trains: bool = False) -> str:
    """Return the preset that is meant by these two arguments; either may be None.

    `trains` says that other arguments ask for a training, which the default has none of.
    """
    if preset is not None:
        return preset
    return METHOD_PRESET if method is not None else BEST.name if trains else DEFAULT_PRESET


def find_preset(name: str) -> Preset:
    """Return the preset of this name, or raise an error that names the known ones."""
    return lookup(PRESETS, name, "preset")


def entries(argument: str, given: Any, known: Sequence[str]) -> dict[str, Any]:
    """Return the entries of an argument that is a mapping or None; refuse other names than the known ones."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{argument} must be a mapping, such as {{{known[0]!r}: ...}}; got {given!r}.")
    for name in given or {}:
        if name not in known:
            raise InputError(f"{argument} has no {name!r}. {did_you_mean(str(name), known)}")
    return {name: value for name, value in (given or {}).items() if value is not None}


def merge_recipe(usual: Recipe, recipe: Recipe | Mapping[str, Any] | None, steps: int | None) -> Recipe:
    """Return the usual recipe, overruled by `recipe`, overruled by `steps`."""
    if isinstance(recipe, Recipe):
        usual, recipe = recipe, None
    settings = entries("recipe", recipe, [field.name for field in fields(Recipe)])
    return replace(usual, **{**settings, **({} if steps is None else {"steps": steps})})
