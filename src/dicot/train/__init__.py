"""Training: the recipe, the loop and the checkpoint."""

from dicot.core.processes.ranks import join_ranks
from dicot.train.checkpoint import Checkpoint
from dicot.train.history import History, Step
from dicot.train.loop import carry_out, pretrain
from dicot.train.many import pretrain_many
from dicot.train.recipe import Recipe, lr_at, paper_recipe
from dicot.train.run import TrainingRun

__all__ = [
    "Checkpoint",
    "History",
    "Recipe",
    "Step",
    "TrainingRun",
    "carry_out",
    "join_ranks",
    "lr_at",
    "paper_recipe",
    "pretrain",
    "pretrain_many",
]
