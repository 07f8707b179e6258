"""Distortion: a case scaled, shifted and jittered, each by chance (CoST)."""

import torch
from torch import Tensor


def _chosen(x: Tensor, probability: float) -> Tensor:
    """(B, 1, 1): 1 for the cases that a transform is applied to, else 0."""
    return (torch.rand(len(x), 1, 1, device=x.device) < probability).to(x.dtype)


def _per_channel(x: Tensor) -> Tensor:
    return torch.randn(*x.shape[:2], 1, device=x.device, dtype=x.dtype)


def scale(x: Tensor, sigma: float, probability: float) -> Tensor:
    """x (1 + sigma g), one g ~ N(0, 1) per case and channel of x (B, C, T)."""
    return x * (1 + sigma * _chosen(x, probability) * _per_channel(x))


def shift(x: Tensor, sigma: float, probability: float) -> Tensor:
    """x + sigma g, one g ~ N(0, 1) per case and channel."""
    return x + sigma * _chosen(x, probability) * _per_channel(x)


def jitter(x: Tensor, sigma: float, probability: float) -> Tensor:
    """x + sigma n, one n ~ N(0, 1) per value."""
    return x + sigma * _chosen(x, probability) * torch.randn_like(x)


def distort(x: Tensor, sigma: float = 0.5, probability: float = 0.5) -> Tensor:
    """Scale, then shift, then jitter; each case draws for itself whether and how, on its device."""
    return jitter(shift(scale(x, sigma, probability), sigma, probability), sigma, probability)
