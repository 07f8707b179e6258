import pytest
import torch

from dicot.methods.infots.mixture import cutout, subsequence


@pytest.mark.parametrize(("start", "length"), [(0, 6), (2, 3), (5, 1), (0, 0)])
@pytest.mark.parametrize("kind", [int, torch.tensor])
def test_the_two_are_complements(start, length, kind):
    x = torch.randn(2, 3, 6)
    inside, outside = subsequence(x, kind(start), kind(length)), cutout(x, kind(start), kind(length))
    for t in range(6):
        within = start <= t < start + length
        assert torch.equal(inside[..., t], x[..., t] * within)
        assert torch.equal(outside[..., t], x[..., t] * (not within))


def test_dtype_follows_the_case():
    assert cutout(torch.ones(1, 1, 4, dtype=torch.float64), 1, 2).dtype == torch.float64
