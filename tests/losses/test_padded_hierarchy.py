"""The hierarchy on features that end somewhere in their tensor, beside features that are cut there."""

import pytest
import torch

from dicot.nets.hierarchy import hierarchical_contrast


def views(*shape: int, garbage: float = 0.0, length: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(0)
    both = [torch.randn(*shape, dtype=torch.float64) for _ in range(2)]
    for z in both:
        z[..., length:] = garbage * torch.randn_like(z[..., length:])
    return [z.requires_grad_() for z in both]


@pytest.mark.parametrize(("alpha", "unit"), [(0.5, 0), (0.3, 1), (0.0, 0), (1.0, 0), (0.5, 4)])
@pytest.mark.parametrize("n_times", [1, 2, 8, 13])
@pytest.mark.parametrize("n_cases", [1, 4])
def test_equals_the_loss_of_what_is_cut(n_cases, n_times, alpha, unit):
    """Whatever lies behind the end, its size included; it gets no gradient."""
    for length in range(1, n_times + 1):
        z1, z2 = views(n_cases, 3, n_times, garbage=1e4, length=length)
        padded = hierarchical_contrast(z1, z2, alpha=alpha, temporal_unit=unit, length=torch.tensor(length))
        dpadded = torch.autograd.grad(padded, (z1, z2))
        cut = hierarchical_contrast(z1[..., :length], z2[..., :length], alpha=alpha, temporal_unit=unit)
        dcut = torch.autograd.grad(cut, (z1, z2))
        torch.testing.assert_close(padded, cut, rtol=1e-12, atol=1e-12)
        for mine, expected in zip(dpadded, dcut, strict=True):
            torch.testing.assert_close(mine, expected, rtol=1e-12, atol=1e-12)
            assert (mine[..., length:] == 0).all()
