"""What embedder and classifier keep in a saved model beside the weights: settings, recipe, preparation, history."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from dicot.core.errors import InputError, ModelFileError, lookup
from dicot.data.cases import LAYOUTS
from dicot.data.policies import MISSING, UNEQUAL
from dicot.data.preparation import Preparation
from dicot.model.pretrained import arguments_of, check_types, is_registered, qualified_name
from dicot.nets.encoders import Encoder, encoder_name
from dicot.train import History, Recipe
from dicot.train.recipe import schedule_name

FITTED = {"seed": int, "n_features_in": int | None}


def settings_of(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as its config names them; the device, a matter of the machine, is "auto".

    A function or a module of one's own becomes its name.
    """
    settings = {**model.get_params(deep=False), "device": "auto"}
    if isinstance(model.recipe, Recipe):
        settings["recipe"] = model.recipe.to_dict()
    elif model.recipe and callable(model.recipe.get("schedule")):
        settings["recipe"] = {**model.recipe, "schedule": schedule_name(model.recipe["schedule"])}
    if callable(model.schedule):
        settings["schedule"] = schedule_name(model.schedule)
    if isinstance(model.encoder, Encoder) and is_registered(model.encoder):
        shape = dict(model.encoder.config())
        del shape["n_channels"]  # is the data's
        settings |= {"encoder": encoder_name(model.encoder), "dim": shape.pop("dim"), "encoder_params": shape or None}
    elif isinstance(model.encoder, nn.Module):
        settings["encoder"] = qualified_name(type(model.encoder))
    return settings


def fitted_of(model: Any) -> dict[str, Any]:
    """Return what a fit has learned or used, as a config has it."""
    return {
        "recipe": model.recipe_.to_dict(),
        "seed": model.seed_,
        "preparation": model.preparation_.to_dict(),
        "history": {"loss": model.history_.loss, "lr": model.history_.lr, "seconds": model.history_.seconds},
        "n_features_in": getattr(model, "n_features_in_", None),
    }


def restore(model: Any, directory: str | Path, network: Encoder, config: Mapping[str, Any]) -> None:
    """Give a new estimator what a fit had given to the one that was saved."""
    for part, kind in (("recipe", Recipe), ("history", History)):
        check_types(directory, part, config[part], arguments_of(kind))
    check_types(directory, "what was fitted", {name: config[name] for name in FITTED}, FITTED)
    model.encoder_, model.seed_ = network, config["seed"]
    model.recipe_ = Recipe(**{**config["recipe"], "betas": tuple(config["recipe"]["betas"])})
    model.history_ = History(**config["history"])
    if len(model.history_.loss) != len(model.history_.lr):
        raise InputError("its history has not as many rates as losses")
    model.preparation_ = Preparation.from_dict(config["preparation"])
    _check_preparation(model.preparation_, network)
    if config["n_features_in"] is not None:
        model.n_features_in_ = config["n_features_in"]


@contextmanager
def reading(directory: str | Path) -> Iterator[None]:
    """Turn whatever a damaged config leads to into an error that names the folder."""
    try:
        yield
    except ModelFileError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else f"is damaged ({error})"
        raise ModelFileError(f"The config of {directory} {what}. Save the model again.") from error


def _check_preparation(preparation: Preparation, encoder: Encoder) -> None:
    """Refuse what a config says about the input where no fit can have learned it."""
    lookup(dict.fromkeys(LAYOUTS), preparation.layout, "layout")
    lookup(UNEQUAL, preparation.unequal, "policy for unequal length")
    lookup(MISSING, preparation.missing, "policy for missing values")
    if preparation.scale not in (None, "dataset", "case"):
        raise InputError(f"Unknown scale {preparation.scale!r}")
    if preparation.n_channels != encoder.n_channels or type(preparation.n_times) is not int or preparation.n_times < 1:
        shape = f"{preparation.n_channels} channels and {preparation.n_times} time steps"
        raise InputError(f"{shape} do not fit the encoder")
    names, rate = preparation.channels, preparation.rate
    if names is not None and (
        len(set(names)) != encoder.n_channels or not all(isinstance(name, str) for name in names)
    ):
        raise InputError(f"{names} are not the names of {encoder.n_channels} channel(s)")
    if rate is not None and not (isinstance(rate, float | int) and 0 < rate < math.inf):
        raise InputError(f"{rate!r} is no rate")
    if (preparation.scale == "dataset") != (preparation.statistics is not None):
        raise InputError(f"scale is {preparation.scale!r}, statistics are {preparation.statistics}")
    if preparation.statistics is not None:
        mean, std = preparation.statistics.mean, preparation.statistics.std
        shaped = mean.dtype.kind == std.dtype.kind == "f" and mean.shape == std.shape == (encoder.n_channels,)
        if not shaped or not np.isfinite([mean, std]).all() or not (std > 0).all():
            raise InputError("the statistics of the channels are not finite numbers, one for each channel")
