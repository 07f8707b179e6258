"""Which data sets the paper's tables are about."""

from dicot.bench.jobs import DataSet
from dicot.datasets import family_of, spelled, transfer_channels
from dicot.datasets.names import UCR, UEA

__all__ = [
    "LARGE",
    "PAPER_UCR",
    "PAPER_UEA",
    "SCALING",
    "TINY",
    "TRANSFERS",
    "family_of",
    "spelled",
    "transfer",
    "whole",
]
LARGE = ("ecg", "harth", "pamap2", "skoda-paper", "sleep", "wisdm2")
# The paper leaves out the sets with missing values (UCR) and two of the largest (UEA): 124 and 28 remain.
_NOT_UCR = {"DodgerLoopDay", "DodgerLoopGame", "DodgerLoopWeekend", "MelbournePedestrian"}
_NOT_UEA = {"InsectWingbeat", "EigenWorms"}
PAPER_UCR = tuple(name for name in UCR if name not in _NOT_UCR)
PAPER_UEA = tuple(name for name in UEA if name not in _NOT_UEA)

TRANSFERS = (("harth", "pamap2"), ("harth", "wisdm2"), ("wisdm2", "pamap2"), ("wisdm2", "harth"))

# Without a download and small: what the library makes itself, and a set that aeon ships.
TINY = ("synthetic", "ItalyPowerDemand")
SCALING = ("harth",)


def whole(name: str) -> tuple[DataSet, DataSet]:
    """Fitted and scored on the same set."""
    return DataSet(name), DataSet(name)


def transfer(source: str, target: str) -> tuple[DataSet, DataSet]:
    """Fitted on the accelerometer of one set and scored on that of another; unknown sets have it in front."""
    return accelerometer(source), accelerometer(target)


def accelerometer(name: str) -> DataSet:
    return DataSet(name, transfer_channels(name) or (0, 1, 2))
