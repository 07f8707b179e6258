"""Embeddings from unlabelled time series. Importing this package imports neither torch nor scikit-learn."""

__version__ = "0.1.0"
