"""The level and spread of each channel of a training set, by which a method measures its distortions."""

import torch
from torch import Tensor

from dicot.data import Scale
from dicot.methods.base import TrainingSet


def channel_statistics(train: TrainingSet) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel in the training set, (C, 1) each; of a constant one 1."""
    found = Scale.fit(train)
    mean, std = (
        torch.from_numpy(values).to(torch.get_default_dtype()).unsqueeze(1) for values in (found.mean, found.std)
    )
    return mean, std


def noise_unit(train: TrainingSet, absolute: bool) -> Tensor:
    """(C, 1): what noise of strength 1 is, the standard deviation of the channel in the training set (D-25).

    1 with `absolute`, and on a channel that is constant in the whole training set.
    """
    return torch.ones(train.n_channels, 1) if absolute else channel_statistics(train)[1]
