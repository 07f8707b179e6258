"""A fitted model as one ONNX file: raw windows in, embeddings out, class probabilities where there is a classifier."""

from dicot.model.export.file import Exported, export_onnx

__all__ = ["Exported", "export_onnx"]
