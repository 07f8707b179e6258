"""Instance contrast on amplitude and phase: at every frequency, tell the own series from the others (CoST)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.losses.contrast import instance_contrast
from dicot.losses.precision import wide

SHIFT = 1e-6  # keeps root and angle differentiable where a coefficient is zero


def spectrum(s: Tensor) -> tuple[Tensor, Tensor]:
    """Features (B, D, T) -> amplitude and phase (B, T // 2 + 1, D) of the features scaled to length 1 per time step.

    The shifts are the original's: on both parts for the amplitude, on the real part alone for the phase.
    """
    with torch.autocast(s.device.type, enabled=False):
        s = wide(s)
        c = torch.fft.rfft(F.normalize(s, dim=1), dim=2).transpose(1, 2)
        amplitude = torch.sqrt((c.real + SHIFT) ** 2 + (c.imag + SHIFT) ** 2)
        return amplitude, torch.atan2(c.imag, c.real + SHIFT)


def frequency_contrast(s1: Tensor, s2: Tensor) -> tuple[Tensor, Tensor]:
    """Loss on amplitudes and loss on phases of two views (B, D, T); both 0 for B = 1.

    Time O(B^2 T D), memory O(B^2 T).
    """
    (amplitude1, phase1), (amplitude2, phase2) = spectrum(s1), spectrum(s2)
    return instance_contrast(amplitude1, amplitude2), instance_contrast(phase1, phase2)
