"""Contenders x protocols x seeds on data sets -> results. Importing this loads no torch."""

from dicot.judge.evaluation.contenders import Contender, Frozen, contender, own, saved, with_controls
from dicot.judge.evaluation.evaluation import Evaluation, distinct, evaluate
from dicot.judge.evaluation.jobs import Job, JobData, Unit, units_of
from dicot.judge.evaluation.loading import check_scorable
from dicot.judge.evaluation.model_protocols import MODEL_PROTOCOLS, Fitted, ModelProtocol, every_protocol
from dicot.judge.evaluation.result import TIDY, Result

__all__ = [
    "MODEL_PROTOCOLS",
    "TIDY",
    "Contender",
    "Evaluation",
    "Fitted",
    "Frozen",
    "Job",
    "JobData",
    "ModelProtocol",
    "Result",
    "Unit",
    "check_scorable",
    "contender",
    "distinct",
    "evaluate",
    "every_protocol",
    "own",
    "saved",
    "units_of",
    "with_controls",
]
