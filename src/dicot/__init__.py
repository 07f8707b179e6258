"""Embeddings from unlabelled time series. Importing this package imports neither torch nor scikit-learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dicot.classifier import TimeSeriesClassifier as TimeSeriesClassifier
    from dicot.corpus import Corpus as Corpus
    from dicot.data import Windows as Windows
    from dicot.data import check_collection as check_collection
    from dicot.data import from_table as from_table
    from dicot.data import slide as slide
    from dicot.data import windows_from as windows_from
    from dicot.datasets import load as load
    from dicot.deployed import OnnxEmbedder as OnnxEmbedder
    from dicot.embedding import embed as embed
    from dicot.encoders import Encoder as Encoder
    from dicot.estimator import TimeSeriesEmbedder as TimeSeriesEmbedder
    from dicot.evaluation.evaluation import evaluate as evaluate
    from dicot.export import export_onnx as export_onnx
    from dicot.fewlabels import FewLabelClassifier as FewLabelClassifier
    from dicot.labels.accuracy import honest_accuracy as honest_accuracy
    from dicot.labels.store import LabelStore as LabelStore
    from dicot.labels.suggestion import suggest as suggest
    from dicot.methods import Method as Method
    from dicot.outliers import EmbeddingOutlierDetector as EmbeddingOutlierDetector
    from dicot.search import EmbeddingIndex as EmbeddingIndex
    from dicot.train import Recipe as Recipe
    from dicot.train import join_ranks as join_ranks
    from dicot.train import pretrain as pretrain

# Public name -> the module that defines it, imported at first use.
_HOMES = {
    "Corpus": "dicot.corpus",
    "EmbeddingIndex": "dicot.search",
    "EmbeddingOutlierDetector": "dicot.outliers",
    "Encoder": "dicot.encoders",
    "FewLabelClassifier": "dicot.fewlabels",
    "LabelStore": "dicot.labels.store",
    "Method": "dicot.methods",
    "OnnxEmbedder": "dicot.deployed",
    "Recipe": "dicot.train",
    "TimeSeriesClassifier": "dicot.classifier",
    "TimeSeriesEmbedder": "dicot.estimator",
    "Windows": "dicot.data",
    "check_collection": "dicot.data",
    "embed": "dicot.embedding",
    "evaluate": "dicot.evaluation",
    "export_onnx": "dicot.export",
    "from_table": "dicot.data",
    "honest_accuracy": "dicot.labels.accuracy",
    "join_ranks": "dicot.train",
    "load": "dicot.datasets",
    "pretrain": "dicot.train",
    "slide": "dicot.data",
    "suggest": "dicot.labels.suggestion",
    "windows_from": "dicot.data",
}
__all__ = [
    "Corpus",
    "EmbeddingIndex",
    "EmbeddingOutlierDetector",
    "Encoder",
    "FewLabelClassifier",
    "LabelStore",
    "Method",
    "OnnxEmbedder",
    "Recipe",
    "TimeSeriesClassifier",
    "TimeSeriesEmbedder",
    "Windows",
    "__version__",
    "check_collection",
    "embed",
    "evaluate",
    "export_onnx",
    "from_table",
    "honest_accuracy",
    "join_ranks",
    "load",
    "pretrain",
    "slide",
    "suggest",
    "windows_from",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dicot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
