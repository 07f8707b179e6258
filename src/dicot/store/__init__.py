"""Vectors, corpora and indexes on disk, and search."""
