"""What encoders with BatchNorm must check."""

from collections.abc import Sequence

from dicot.core.errors import InputError


def check_variance(training: bool, shape: Sequence[int]) -> None:
    """Refuse a training batch (B, C, T) of a single value per channel: BatchNorm divides by its variance."""
    if training and shape[0] * shape[2] == 1:
        raise InputError("BatchNorm cannot train on one time step of one case. Use a larger batch or longer cases.")
