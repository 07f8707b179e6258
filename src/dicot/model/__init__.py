"""Fitted models: estimators, presets, embedding, files, export."""
