"""The names of the paper's large sets, the sets that settings are chosen on, and what is known of a set by its name."""

import tomllib
from pathlib import Path
from typing import Any

from dicot.data.datasets.base import Sizes

HERE = Path(__file__).parent
LARGE = ("ecg", "harth", "pamap2-paper", "skoda-paper", "sleep", "wisdm2")  # of the Di-COT paper
# The sets that a setting may be chosen on: half of the archives' that were at hand, drawn once, and two large ones. All
# others are only reported: nothing is chosen by their scores.
DEVELOPMENT = tuple((HERE / "development.txt").read_text(encoding="utf-8").splitlines())

_DECLARED = tomllib.loads((HERE / "sets.toml").read_text(encoding="utf-8"))


def declared(name: str) -> dict[str, Any]:
    """Return what sets.toml says of a set, as arguments of its class."""
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in _DECLARED[name].items()}
    sizes = {key: Sizes(**_DECLARED[name][key]) for key in ("sizes", "stated") if key in plain}
    return {"name": name, **plain, **sizes}
