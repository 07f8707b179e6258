import math

import pytest
import torch

from dicot.methods.tstcc import prediction_contrast


def test_matches_the_slow_form():
    torch.manual_seed(0)
    actual, predicted = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    total = 0.0
    for step in range(3):
        for case in range(4):
            logits = [float(actual[step, case] @ predicted[step, other]) for other in range(4)]
            total -= logits[case] - math.log(sum(math.exp(logit) for logit in logits))
    assert prediction_contrast(actual, predicted).item() == pytest.approx(total / 12, rel=1e-12)


def test_equal_predictions_give_the_log_of_the_batch_and_one_case_gives_zero():
    z = torch.ones(2, 6, 3)
    assert prediction_contrast(torch.randn(2, 6, 3), z).item() == pytest.approx(math.log(6), rel=1e-6)
    assert prediction_contrast(z[:, :1], z[:, :1]).item() == 0
