"""Contenders x protocols x seeds on data sets -> results. Importing this loads no torch."""

from dicot.evaluation.contenders import Contender, Frozen, beside, contender, own, saved, with_controls
from dicot.evaluation.evaluation import Evaluation, distinct, evaluate
from dicot.evaluation.jobs import Job, JobData, Unit, units_of
from dicot.evaluation.loading import check_scorable
from dicot.evaluation.model_protocols import MODEL_PROTOCOLS, Fitted, ModelProtocol, every_protocol
from dicot.evaluation.result import TIDY, Result

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
    "beside",
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
