"""Controls: encoders that learned nothing. Every number of a method stands beside theirs."""

from collections.abc import Callable

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from dicot.core.device import float32_arithmetic, resolve_device, to_device
from dicot.data.cases import Cases
from dicot.nets.encoders import Encoder

BATCH = 64  # by definition of the control, not a matter of memory


def random_control(encoder: Encoder, *_: object) -> None:
    """The encoder as initialised, BatchNorm at its initial statistics."""
    encoder.eval()


def calibrated_control(encoder: Encoder, train: Cases, device: str | torch.device = "auto") -> None:
    """The same weights after one pass of the training cases that set BatchNorm's statistics (D-02).

    Whole cases in train mode without gradient, batches of 64 in file order, cumulative statistics. An encoder without
    BatchNorm, as a foreign module may be, has nothing to calibrate: this control then equals the random one.
    """
    norms = [module for module in encoder.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        random_control(encoder)
        return
    device = resolve_device(device)
    usual = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # cumulative average
    encoder.to(device).train()
    with torch.no_grad(), float32_arithmetic(device):
        for start in range(0, len(train), BATCH):
            encoder(to_device(train[start : start + BATCH], device))
    for norm, momentum in zip(norms, usual, strict=True):
        norm.momentum = momentum
    encoder.cpu().eval()


CONTROLS: dict[str, Callable[..., None]] = {"random": random_control, "calibrated": calibrated_control}
