"""Embeddings from unlabelled time series. Importing this package imports neither torch nor scikit-learn."""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dicot.core import __version__ as __version__

if TYPE_CHECKING:
    from dicot.data import Reading as Reading
    from dicot.data import Windows as Windows
    from dicot.data.datasets import load as load
    from dicot.judge.evaluation.run import evaluate as evaluate
    from dicot.methods import Method as Method
    from dicot.model.classifier import TimeSeriesClassifier as TimeSeriesClassifier
    from dicot.model.deployed import OnnxEmbedder as OnnxEmbedder
    from dicot.model.embedding import embed as embed
    from dicot.model.estimator import TimeSeriesEmbedder as TimeSeriesEmbedder
    from dicot.model.export import export_onnx as export_onnx
    from dicot.model.fewlabels import FewLabelClassifier as FewLabelClassifier
    from dicot.model.stream import Stream as Stream
    from dicot.nets.encoders import Encoder as Encoder
    from dicot.store.folder import Corpus as Corpus
    from dicot.store.search import EmbeddingIndex as EmbeddingIndex
    from dicot.train.loop import pretrain as pretrain
    from dicot.train.recipe import Recipe as Recipe
    from dicot.train.together import join_ranks as join_ranks
    from dicot.use.labels.accuracy import honest_accuracy as honest_accuracy
    from dicot.use.labels.agreement import agreement as agreement
    from dicot.use.labels.doubt import probably_wrong as probably_wrong
    from dicot.use.labels.store import LabelStore as LabelStore
    from dicot.use.labels.suggestion import suggest as suggest
    from dicot.use.outliers import EmbeddingOutlierDetector as EmbeddingOutlierDetector

# Public name -> the module that defines it, imported at first use.
_HOMES = {
    "Corpus": "dicot.store.folder",
    "EmbeddingIndex": "dicot.store.search",
    "EmbeddingOutlierDetector": "dicot.use.outliers",
    "Encoder": "dicot.nets.encoders",
    "FewLabelClassifier": "dicot.model.fewlabels",
    "LabelStore": "dicot.use.labels.store",
    "Method": "dicot.methods",
    "OnnxEmbedder": "dicot.model.deployed",
    "Recipe": "dicot.train.recipe",
    "TimeSeriesClassifier": "dicot.model.classifier",
    "TimeSeriesEmbedder": "dicot.model.estimator",
    "Reading": "dicot.data",
    "Stream": "dicot.model.stream",
    "Windows": "dicot.data",
    "agreement": "dicot.use.labels.agreement",
    "embed": "dicot.model.embedding",
    "evaluate": "dicot.judge.evaluation",
    "export_onnx": "dicot.model.export",
    "honest_accuracy": "dicot.use.labels.accuracy",
    "join_ranks": "dicot.train.together",
    "load": "dicot.data.datasets",
    "pretrain": "dicot.train.loop",
    "probably_wrong": "dicot.use.labels.doubt",
    "suggest": "dicot.use.labels.suggestion",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dicot' has no attribute {name!r}")
    # torch, scikit-learn and pandas make hundreds of thousands of objects that stay. Looking through them for garbage
    # again and again takes a seventh of the time of the import.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        module = import_module(_HOMES[name])
    finally:
        if was_enabled:
            gc.enable()
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
