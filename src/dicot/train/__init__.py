"""Training: the recipe, the loop and the checkpoint. Importing this package imports no torch."""

from importlib import import_module
from typing import Any

# Public name -> the module that defines it, imported at first use.
_HOMES = {
    **dict.fromkeys(("Checkpoint", "History", "Step"), "dicot.train.record"),
    **dict.fromkeys(("Recipe", "lr_at", "paper_recipe"), "dicot.train.recipe"),
    **dict.fromkeys(("TrainingRun", "carry_out", "pretrain"), "dicot.train.loop"),
    "join_ranks": "dicot.train.together",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
