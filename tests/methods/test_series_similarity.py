import math

import numpy as np
import pytest
import torch

from dicot.methods.simmtm import aggregate, copies_contrast, cosine_similarity, log_weights


def slow_log_p(z: np.ndarray, temperature: float) -> list[dict[int, float]]:
    """For each row the log softmax over the other rows, with loops."""
    rows = []
    for r, a in enumerate(z):
        logits = {
            q: float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b)) / temperature
            for q, b in enumerate(z)
            if q != r
        }
        log_sum = math.log(sum(math.exp(v) for v in logits.values()))
        rows.append({q: v - log_sum for q, v in logits.items()})
    return rows


def slow_contrast(z: np.ndarray, temperature: float, n_series: int) -> float:
    rows = slow_log_p(z, temperature)
    return -sum(v for r, row in enumerate(rows) for q, v in row.items() if q % n_series == r % n_series) / len(z)


@pytest.mark.parametrize(("n_series", "copies"), [(4, 3), (1, 3), (5, 1), (1, 1), (2, 6)])
@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_contrast_and_aggregation_match_the_slow_form(n_series, copies, temperature):
    rng = np.random.default_rng(0)
    n_rows = (copies + 1) * n_series
    z, features = rng.normal(size=(n_rows, 6)), rng.normal(size=(n_rows, 3, 7))
    log_p = log_weights(cosine_similarity(torch.from_numpy(z)), temperature)
    assert copies_contrast(log_p, n_series).item() == pytest.approx(slow_contrast(z, temperature, n_series), abs=1e-12)
    rows = slow_log_p(z, temperature)
    slow = np.stack([sum(math.exp(v) * features[q] for q, v in row.items()) for row in rows])
    weights, features = log_p.exp(), torch.from_numpy(features)
    np.testing.assert_allclose(aggregate(weights, features), slow, atol=1e-12)
    np.testing.assert_allclose(aggregate(weights[:n_series], features), slow[:n_series], atol=1e-12)


def test_equal_vectors_give_copies_times_the_log_of_the_others():
    z = torch.ones(8, 4, dtype=torch.float64)
    log_p = log_weights(cosine_similarity(z), 0.2)
    assert copies_contrast(log_p, 2).item() == pytest.approx(3 * math.log(7))
    assert copies_contrast(log_p, 8).item() == 0, "no copies, nothing to find"


def test_one_series_has_no_negatives():
    log_p = log_weights(cosine_similarity(torch.randn(4, 5, dtype=torch.float64)), 0.2)
    assert copies_contrast(log_p, 1).item() >= 3 * math.log(3) - 1e-12


def test_the_scale_of_a_vector_does_not_matter_and_zero_is_like_nothing():
    z = torch.randn(4, 5, dtype=torch.float64)
    torch.testing.assert_close(cosine_similarity(z * torch.tensor([[1.0], [9], [0.1], [50]])), cosine_similarity(z))
    z[1] = 0
    z.requires_grad_()
    similarity = cosine_similarity(z)
    assert torch.equal(similarity[1], torch.zeros(4, dtype=torch.float64))
    copies_contrast(log_weights(similarity, 0.2), 2).backward()
    assert torch.isfinite(z.grad).all()
