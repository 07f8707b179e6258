"""Losses: embeddings -> scalar, no parameters; one idea per file."""

from dicot.nets.losses.adjacent_block import adjacent_block

__all__ = ["adjacent_block"]
