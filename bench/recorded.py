"""Rows of earlier releases in the words of today: a preset had another name, and another hash of its values."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import cache
from typing import Any

from dicot.model.box import in_box
from dicot.model.presets import PRESETS, Preset
from dicot.train.recipe import schedule_name

# A preset by the name and the hash that it was recorded with, and what it is called since another has its name.
RENAMED = {("best", "9ee2a8a7dd6f"): "best-2026.11"}


def recorded_digest(preset: Preset) -> str:
    """Return the hash that results until November 2026 were recorded with, for the values that a preset has now."""
    features = preset.features_with({})
    values = {name: features[name] for name in ("pooling", "calibrate", "bank", "n_components")}
    values |= {"method": preset.method, "params": dict(preset.method_params)}
    later = {name: features[name] for name in ("levels", "length")}
    later |= {"fewest": preset.fewest, "minutes": preset.minutes}
    values |= {name: value for name, value in later.items() if value}
    for part in filter(None, (preset.initial, features["box"])):
        config = json.loads((in_box(part) / "config.json").read_text(encoding="utf-8"))
        values |= {"encoder": preset.encoder, "weights": config["weights"]["sha256"]}
    if preset.otherwise:
        values["otherwise"] = recorded_digest(PRESETS[preset.otherwise])
    # A feature and a package that are gone.
    values["difference"] = False
    values["rule"] = schedule_name(preset.recipe).replace("dicot.model.", "dicot.")
    if is_dataclass(preset.recipe) and not isinstance(preset.recipe, type):
        values["values"] = asdict(preset.recipe)
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


@cache
def digests() -> dict[str, str]:
    """Map the recorded hash of each preset to the one that it has today."""
    return {recorded_digest(preset): preset.digest() for preset in PRESETS.values()}


def todays_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a job of today says in place of a recorded configuration."""
    if "preset" not in config:
        return dict(config)
    settings, digest = dict(config["settings"]), config["preset"]
    settings["preset"] = RENAMED.get((settings["preset"], digest), settings["preset"])
    return {**config, "settings": settings, "preset": digests().get(digest, digest)}
