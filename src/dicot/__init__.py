"""Embeddings from unlabelled time series. Importing this package imports neither torch nor scikit-learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dicot.classifier import TimeSeriesClassifier as TimeSeriesClassifier
    from dicot.data import Windows as Windows
    from dicot.data import check_collection as check_collection
    from dicot.data import from_table as from_table
    from dicot.data import slide as slide
    from dicot.datasets import load as load
    from dicot.estimator import TimeSeriesEmbedder as TimeSeriesEmbedder

# Public name -> the module that defines it, imported at first use.
_HOMES = {
    "TimeSeriesClassifier": "dicot.classifier",
    "TimeSeriesEmbedder": "dicot.estimator",
    "Windows": "dicot.data",
    "check_collection": "dicot.data",
    "from_table": "dicot.data",
    "load": "dicot.datasets",
    "slide": "dicot.data",
}
__all__ = [
    "TimeSeriesClassifier",
    "TimeSeriesEmbedder",
    "Windows",
    "__version__",
    "check_collection",
    "from_table",
    "load",
    "slide",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dicot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
