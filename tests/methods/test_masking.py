import numpy as np
import pytest
import torch

from dicot.methods.simmtm import mask_runs


def runs(kept: np.ndarray, state: bool) -> np.ndarray:
    """Lengths of the complete runs of `state`."""
    edges = np.flatnonzero(np.diff(kept)) + 1
    lengths, first = np.diff(edges), kept[edges[:-1]]
    return lengths[first == state]


@pytest.mark.parametrize(("ratio", "run_length"), [(0.5, 3), (0.2, 5), (0.75, 3), (0.4, 1)])
def test_share_and_mean_run(ratio, run_length):
    torch.manual_seed(0)
    kept = (mask_runs(torch.ones(20, 5, 2000), ratio, run_length) != 0).flatten().numpy()
    assert 1 - kept.mean() == pytest.approx(ratio, abs=0.01)
    assert runs(kept, False).mean() == pytest.approx(run_length, rel=0.03)
    assert runs(kept, True).mean() == pytest.approx(run_length * (1 - ratio) / ratio, rel=0.03)


def test_values_are_kept_or_zero_and_differ_between_copies():
    torch.manual_seed(0)
    x = torch.randn(4, 3, 50, dtype=torch.float64)
    masked = mask_runs(x.repeat(2, 1, 1), 0.5, 3)
    assert masked.dtype == x.dtype and masked.shape == (8, 3, 50)
    assert ((masked == 0) | (masked == x.repeat(2, 1, 1))).all()
    assert not torch.equal(masked[:4], masked[4:])
