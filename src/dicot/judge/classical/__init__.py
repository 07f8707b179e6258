"""Baselines without a network: fit and transform like any contender. Nothing here imports torch."""

from dicot.judge.classical.base import Classical
from dicot.judge.classical.minirocket import MiniRocket
from dicot.judge.classical.raw import RawFlat, RawMean

__all__ = ["CLASSICAL", "RAW_FEATURES", "Classical", "MiniRocket", "RawFlat", "RawMean"]

# The lower bound that stands beside every method.
RAW_FEATURES: dict[str, type[Classical]] = {"raw-mean": RawMean, "raw-flat": RawFlat}
CLASSICAL: dict[str, type[Classical]] = {"minirocket": MiniRocket, **RAW_FEATURES}
