import math

import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import Batch, SimMTM
from dicot.methods.simmtm import (
    aggregate,
    copies_contrast,
    mask_runs,
    uncertainty_weighted,
)
from dicot.nets.encoders import InceptionTime
from dicot.nets.losses import log_p_of_others
from dicot.train import Recipe, pretrain


def encoder(n_channels: int = 2) -> InceptionTime:
    torch.manual_seed(0)
    return InceptionTime(n_channels, dim=16)


def loss_of(method: SimMTM, x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(3)
    return method.loss(Batch(x, torch.arange(len(x))), method.plan(tuple(x.shape), np.random.default_rng(0)))


def slow_loss(method: SimMTM, x: torch.Tensor, *, all_rows: bool) -> float:
    """Row by row; the features are aggregated first and decoded afterwards, as the paper writes it."""
    torch.manual_seed(3)
    stack = torch.cat([x, mask_runs(x.repeat(method.copies, 1, 1), method.ratio, method.run_length)])
    features = method.encoder(stack)
    s = method.projector(features.mean(dim=2))
    n_rows, n_series = len(stack), len(x)
    contrast, errors = 0.0, []
    for r in range(n_rows):
        others = [q for q in range(n_rows) if q != r]
        logits = torch.stack([torch.cosine_similarity(s[r], s[q], dim=0) for q in others]) / method.temperature
        weights = logits.softmax(dim=0)
        contrast -= sum(w.log().item() for q, w in zip(others, weights, strict=True) if (q - r) % n_series == 0)
        rebuilt = sum(w * features[q] for q, w in zip(others, weights, strict=True))
        errors.append((method.decoder(rebuilt[None])[0] - stack[r]).square().mean().item())
    recon = np.mean(errors if all_rows else errors[:n_series])
    w1, w2 = method.loss_weights.tolist()
    return 0.5 / w1**2 * contrast / n_rows + math.log(1 + w1**2) + 0.5 / w2**2 * recon + math.log(1 + w2**2)


@pytest.mark.parametrize("target", ["originals", "stack"])
@pytest.mark.parametrize(("n_series", "copies"), [(3, 3), (1, 3), (2, 1)])
def test_loss_by_hand(target, n_series, copies):
    method = SimMTM(encoder(), copies=copies, temperature=0.3, target=target).double()
    with torch.no_grad():
        method.loss_weights.copy_(torch.tensor([1.3, 0.7]))
    x = torch.randn(n_series, 2, 20, dtype=torch.float64)
    want = slow_loss(method, x, all_rows=target == "stack")
    assert loss_of(method, x).item() == pytest.approx(want, rel=1e-9)


def test_loss_weights_are_learned_without_weight_decay():
    method = SimMTM(encoder())
    rest, weights = method.param_groups()
    assert weights["weight_decay"] == 0 and weights["params"][0] is method.loss_weights
    assert "weight_decay" not in rest
    assert len(rest["params"]) + 1 == len(list(method.parameters()))
    assert all(p is not method.loss_weights for p in rest["params"])
    x = np.random.default_rng(0).normal(size=(8, 2, 16)).astype(np.float32)
    pretrain(method, Windows(x), Recipe(4, 4, lr=1e-2), seed=0, device="cpu")
    assert all(w != 1 for w in method.loss_weights.tolist())


def test_by_hand():
    losses = [torch.tensor(3.0, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)]
    got = uncertainty_weighted(losses, torch.tensor([1.3, -0.7], dtype=torch.float64))
    want = 0.5 / 1.69 * 3 + math.log(1 + 1.69) + 0.5 / 0.49 * 0.5 + math.log(1 + 0.49)
    assert got.item() == pytest.approx(want, rel=1e-12)


def test_the_best_weight_balances_both_terms():
    """0 = -L / w^3 + 2 w / (1 + w^2), so 2 w^4 = L (1 + w^2): for L = 1, w = 1."""
    weight = torch.ones(1, dtype=torch.float64, requires_grad=True)
    uncertainty_weighted([torch.tensor(1.0, dtype=torch.float64)], weight).backward()
    assert weight.grad.item() == pytest.approx(0, abs=1e-12)


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
    log_p = log_p_of_others(torch.from_numpy(z), temperature)
    assert copies_contrast(log_p, n_series).item() == pytest.approx(slow_contrast(z, temperature, n_series), abs=1e-12)
    rows = slow_log_p(z, temperature)
    slow = np.stack([sum(math.exp(v) * features[q] for q, v in row.items()) for row in rows])
    weights, features = log_p.exp(), torch.from_numpy(features)
    np.testing.assert_allclose(aggregate(weights, features), slow, atol=1e-12)
    np.testing.assert_allclose(aggregate(weights[:n_series], features), slow[:n_series], atol=1e-12)


def test_equal_vectors_give_copies_times_the_log_of_the_others():
    z = torch.ones(8, 4, dtype=torch.float64)
    log_p = log_p_of_others(z, 0.2)
    assert copies_contrast(log_p, 2).item() == pytest.approx(3 * math.log(7))
    assert copies_contrast(log_p, 8).item() == 0, "no copies, nothing to find"
