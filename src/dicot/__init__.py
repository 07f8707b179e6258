"""Embeddings from unlabelled time series. Importing this package imports neither torch nor scikit-learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dicot.classifier import TimeSeriesClassifier as TimeSeriesClassifier
    from dicot.datasets import load as load
    from dicot.estimator import TimeSeriesEmbedder as TimeSeriesEmbedder
    from dicot.windows import Windows as Windows
    from dicot.windows import check_collection as check_collection
    from dicot.windows import from_table as from_table
    from dicot.windows import slide as slide

# Public name -> the module that defines it, imported at first use.
_HOMES = {
    "TimeSeriesClassifier": "dicot.classifier",
    "TimeSeriesEmbedder": "dicot.estimator",
    "Windows": "dicot.windows",
    "check_collection": "dicot.windows",
    "from_table": "dicot.windows",
    "load": "dicot.datasets",
    "slide": "dicot.windows",
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
