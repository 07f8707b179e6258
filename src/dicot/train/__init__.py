"""Training: the recipe, the loop and the checkpoint."""

from dicot.train.checkpoint import Checkpoint
from dicot.train.history import History
from dicot.train.loop import pretrain
from dicot.train.many import Run, pretrain_many
from dicot.train.recipe import Recipe, lr_at, paper_recipe

__all__ = ["Checkpoint", "History", "Recipe", "Run", "lr_at", "paper_recipe", "pretrain", "pretrain_many"]
