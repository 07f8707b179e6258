"""How strong a method's noise is on each channel."""

import torch
from torch import Tensor

from dicot.data import Scale
from dicot.methods.base import TrainingSet


def noise_unit(train: TrainingSet, absolute: bool) -> Tensor:
    """(C, 1): what noise of strength 1 is, the standard deviation of the channel in the training set (D-25).

    1 with `absolute`, and on a channel that is constant in the whole training set.
    """
    if absolute:
        return torch.ones(train.n_channels, 1)
    return torch.from_numpy(Scale.fit(train.x).std).to(torch.get_default_dtype()).unsqueeze(1)
