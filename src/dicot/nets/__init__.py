"""Tensors: encoders, views and losses."""
