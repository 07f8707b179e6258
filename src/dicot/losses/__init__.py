"""Losses: embeddings -> scalar, no parameters; one idea per file."""

from dicot.losses.adjacent_block import adjacent_block

__all__ = ["adjacent_block"]
