"""TF-C (NeurIPS 2022): a case and its spectrum, each contrasted with a distorted copy, must agree with each other."""

from collections.abc import Callable
from typing import Annotated

import torch
from torch import Tensor

from dicot.methods.base import Batch, Method, TrainingSet, noise_unit, projector
from dicot.methods.settings import Count, NotNegative, Positive, Share, one_of
from dicot.nets.encoders import Encoder
from dicot.nets.losses import nt_xent, poly_nt_xent
from dicot.nets.views import jitter

AMPLITUDE = 0.1  # what is added to a bin is at most this share of the maximum
WIDTH_PROJECTOR = 256
FORMS: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {"poly": poly_nt_xent, "plain": nt_xent}


def magnitude_spectrum(x: Tensor) -> Tensor:
    """|FFT| along time of x (B, C, T), two-sided and unnormalised: (B, C, T)."""
    coefficients: Tensor = torch.fft.fft(x, dim=-1)  # D-22
    return coefficients.abs()


def distort_spectrum(spectrum: Tensor, remove: float, add: float, *, per_sample: bool = False) -> Tensor:
    """The sum of two copies of a spectrum (B, C, T), one with bins removed and one with amplitudes added.

    Each bin is hit with probability `remove` or `add`; what is added is uniform up to a tenth of the largest bin of
    the batch, or with `per_sample` of the case itself. The sum, about twice the spectrum, is the authors' form.
    """
    removed = spectrum * (torch.rand_like(spectrum) >= remove)
    largest = spectrum.amax(dim=(1, 2), keepdim=True) if per_sample else spectrum.amax()
    hit = torch.rand_like(spectrum) < add
    return removed + spectrum + hit * torch.rand_like(spectrum) * (AMPLITUDE * largest)


class TFC(Method):
    """The distorted copies are drawn anew at each step; only the encoder of the time domain is evaluated.

    form: of the contrast, the authors' "poly" or the "plain" NT-Xent. weight: lambda, of the two domains' own terms.
    consistency: the paper's third term, which the authors' code computes and leaves out.
    noise: in units of each channel's standard deviation in the training set; absolute_noise: in units of the data.
    remove, add: probability that a bin of the spectrum is removed, or raised; per_sample_maximum: raised by a share of
    the case's own maximum, not of the batch's. projection_dim: width of the joint space.
    """

    summary = "bring a case and its spectrum together in a joint space, each robust to distortion"
    paper = "Self-Supervised Contrastive Pre-Training For Time Series via Time-Frequency Consistency, NeurIPS 2022"
    complexity = "4 encoder passes of T time steps, through two encoders; loss O(B^2 F), memory O(B^2)"

    needs_negatives = True

    noise_unit: Tensor  # (C, 1)

    def __init__(
        self,
        encoder: Encoder,
        *,
        form: Annotated[str, one_of(*FORMS)] = "poly",  # D-23
        weight: Share = 0.2,
        consistency: bool = False,
        temperature: Positive = 0.2,
        noise: NotNegative = 2.0,
        absolute_noise: bool = False,
        remove: Share = 0.1,
        add: Share = 0.1,
        per_sample_maximum: bool = False,
        projection_dim: Count = 128,
    ) -> None:
        super().__init__(encoder)
        self.form, self.weight, self.consistency, self.temperature = form, weight, consistency, temperature
        self.noise, self.absolute_noise = noise, absolute_noise
        self.remove, self.add, self.per_sample_maximum = remove, add, per_sample_maximum
        self.projection_dim = projection_dim
        self.spectrum_encoder = encoder.fresh()
        self.time_projector = projector(encoder.embed_dim, WIDTH_PROJECTOR, projection_dim)
        self.spectrum_projector = projector(encoder.embed_dim, WIDTH_PROJECTOR, projection_dim)
        self.register_buffer("noise_unit", torch.ones(encoder.n_channels, 1))

    def prepare(self, train: TrainingSet) -> None:
        super().prepare(train)
        self.noise_unit = noise_unit(train, self.absolute_noise)

    def loss(self, batch: Batch, plan: object) -> Tensor:
        spectrum = magnitude_spectrum(batch.x)  # (B, C, T)
        noisy = jitter(batch.x, self.noise * self.noise_unit)  # D-25
        distorted = distort_spectrum(spectrum, self.remove, self.add, per_sample=self.per_sample_maximum)
        time, time_copy = self.encoder.embed(batch.x), self.encoder.embed(noisy)  # (B, F) each
        freq, freq_copy = self.spectrum_encoder.embed(spectrum), self.spectrum_encoder.embed(distorted)
        own = self._contrast(time, time_copy) + self._contrast(freq, freq_copy)

        z_time, z_freq = self.time_projector(time), self.spectrum_projector(freq)
        joint = self._contrast(z_time, z_freq)
        if not self.consistency:  # D-24
            return self.weight * own + joint
        z_time_copy, z_freq_copy = self.time_projector(time_copy), self.spectrum_projector(freq_copy)
        pairs = ((z_time, z_freq_copy), (z_time_copy, z_freq), (z_time_copy, z_freq_copy))
        term = torch.stack([1 + joint - self._contrast(*pair) for pair in pairs]).sum()
        return self.weight * own + (1 - self.weight) * term

    def _contrast(self, a: Tensor, b: Tensor) -> Tensor:
        return FORMS[self.form](a, b, self.temperature)
