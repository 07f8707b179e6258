import math

import pytest
import torch

from dicot.methods.tstcc import TemporalContrast, prediction_contrast


def test_the_context_knows_no_order_and_no_future():
    torch.manual_seed(0)
    module = TemporalContrast(dim=8, width=8, n_future=2).double().eval()
    source, target = torch.randn(2, 3, 8, 10, dtype=torch.float64)
    changed = source.clone()
    changed[:, :, 5:] = 0
    torch.testing.assert_close(module(source, target, 4)[1], module(changed, target, 4)[1])
    torch.testing.assert_close(module.context(source, 9), module.context(source.flip(2), 9))
    assert module(source, target, 0)[1].shape == (3, 2), "a past of one time step"


def test_equal_predictions_give_the_log_of_the_batch_and_one_case_gives_zero():
    z = torch.ones(2, 6, 3)
    assert prediction_contrast(torch.randn(2, 6, 3), z).item() == pytest.approx(math.log(6), rel=1e-6)
    assert prediction_contrast(z[:, :1], z[:, :1]).item() == 0
