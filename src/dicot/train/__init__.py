"""Training: the recipe, the loop and the checkpoint. Importing this package imports no torch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dicot.core.processes.ranks import join_ranks as join_ranks
    from dicot.train.checkpoint import Checkpoint as Checkpoint
    from dicot.train.history import History as History
    from dicot.train.history import Step as Step
    from dicot.train.loop import carry_out as carry_out
    from dicot.train.loop import pretrain as pretrain
    from dicot.train.many import pretrain_many as pretrain_many
    from dicot.train.recipe import Recipe as Recipe
    from dicot.train.recipe import lr_at as lr_at
    from dicot.train.recipe import paper_recipe as paper_recipe
    from dicot.train.run import TrainingRun as TrainingRun

# Public name -> the module that defines it, imported at first use.
_HOMES = {
    "Checkpoint": "dicot.train.checkpoint",
    "History": "dicot.train.history",
    "Recipe": "dicot.train.recipe",
    "Step": "dicot.train.history",
    "TrainingRun": "dicot.train.run",
    "carry_out": "dicot.train.loop",
    "join_ranks": "dicot.core.processes.ranks",
    "lr_at": "dicot.train.recipe",
    "paper_recipe": "dicot.train.recipe",
    "pretrain": "dicot.train.loop",
    "pretrain_many": "dicot.train.many",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
