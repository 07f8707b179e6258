import math

import pytest
import torch

from dicot.methods.tstcc import ContextLayer, TemporalContrast, prediction_contrast


def slow_layer(layer: ContextLayer, x: torch.Tensor) -> torch.Tensor:
    """One case (n, H) with a loop over heads and an explicit softmax."""
    width = x.shape[1]
    per_head = width // layer.heads
    q, k, v = layer.qkv(layer.attn_norm(x)).chunk(3, dim=1)
    heads = []
    for head in range(layer.heads):
        part = slice(head * per_head, (head + 1) * per_head)
        heads.append(torch.softmax(q[:, part] @ k[:, part].T / math.sqrt(width), dim=1) @ v[:, part])
    x = x + layer.attn_out(torch.cat(heads, dim=1))
    return x + layer.ff_out(torch.relu(layer.ff_in(layer.ff_norm(x))))


def test_a_layer_matches_the_slow_form():
    torch.manual_seed(0)
    layer = ContextLayer(12, heads=4).double().eval()
    x = torch.randn(3, 7, 12, dtype=torch.float64)
    torch.testing.assert_close(layer(x), torch.stack([slow_layer(layer, case) for case in x]))


def test_the_module_by_hand():
    torch.manual_seed(0)
    module = TemporalContrast(dim=8, width=12, n_future=3).double().eval()
    source, target = torch.randn(2, 5, 8, 10, dtype=torch.float64)
    t = 4
    contexts = []
    for case in source:
        x = torch.cat([module.ctx_token[0], module.embed(case[:, : t + 1].T)])
        for layer in module.layers:
            x = slow_layer(layer, x)
        contexts.append(x[0])
    context = torch.stack(contexts)
    nce = torch.stack(
        [
            prediction_contrast(target[None, :, :, t + 1 + i], predictor(context)[None])
            for i, predictor in enumerate(module.predictors)
        ]
    ).mean()
    got = module(source, target, t)
    torch.testing.assert_close(got[0], nce)
    torch.testing.assert_close(got[1], module.project(context))
    assert got[1].shape == (5, 2)


def test_the_context_knows_no_order_and_no_future():
    torch.manual_seed(0)
    module = TemporalContrast(dim=8, width=8, n_future=2).double().eval()
    source, target = torch.randn(2, 3, 8, 10, dtype=torch.float64)
    changed = source.clone()
    changed[:, :, 5:] = 0
    torch.testing.assert_close(module(source, target, 4)[1], module(changed, target, 4)[1])
    torch.testing.assert_close(module.context(source, 9), module.context(source.flip(2), 9))
    assert module(source, target, 0)[1].shape == (3, 2), "a past of one time step"


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
