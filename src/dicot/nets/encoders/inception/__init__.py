"""InceptionTime: what it computes (definition), and how training and inference compute the same faster."""

from dicot.nets.encoders.inception.definition import InceptionTime

__all__ = ["InceptionTime"]
