"""Contenders x protocols x seeds on data sets -> results."""

from dicot.judge.evaluation.contenders import (
    Contender,
    contender,
    own,
    saved,
    with_controls,
    with_own_classifier,
)
from dicot.judge.evaluation.run import Evaluation, distinct, evaluate

__all__ = [
    "Contender",
    "Evaluation",
    "contender",
    "distinct",
    "evaluate",
    "own",
    "saved",
    "with_controls",
    "with_own_classifier",
]
