import math

import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import Batch, SimMTM
from dicot.methods.simmtm import mask_runs
from dicot.nets.encoders import InceptionTime
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
