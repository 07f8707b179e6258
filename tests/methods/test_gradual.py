import numpy as np
import torch
from torch.nn.functional import cross_entropy

from dicot.methods import Batch
from dicot.methods.gradual import GradualTuning, StandardisedHead
from dicot.nets.encoders import InceptionTime
from dicot.train import Recipe, pretrain


def head(n_features: int, n_classes: int = 3) -> StandardisedHead:
    rng = np.random.default_rng(0)
    sizes = ((n_features,), (n_features,), (n_classes, n_features), (n_classes,))
    mean, scale, weights, intercepts = (rng.normal(size=size) for size in sizes)
    return StandardisedHead(mean, 0.1 + scale**2, weights, intercepts)


def method(encoder=None, n_features: int = 8) -> GradualTuning:
    torch.manual_seed(0)
    encoder = InceptionTime(2, dim=8) if encoder is None else encoder
    return GradualTuning(encoder, head(n_features), lambda network, x: network(x).mean(dim=-1))


def test_a_folded_head_gives_the_same_scores():
    given, z = head(8), torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(given.folded()(z), given(z), rtol=1e-4, atol=1e-4)


def test_the_loss_is_the_cross_entropy_of_the_standardised_vectors(waves):
    tuning = method().eval()
    x, y = torch.from_numpy(waves.x), torch.from_numpy(waves.y)
    z = (tuning.encoder(x).mean(-1) - tuning.head.mean) / tuning.head.scale
    expected = cross_entropy(z @ tuning.head.linear.weight.T + tuning.head.linear.bias, y)
    torch.testing.assert_close(tuning.loss(Batch(x, torch.arange(24), y), ()), expected)


def test_the_rates_are_those_of_the_steps(waves):
    """Plain gradient descent of one step moves each weight by its group's rate times its gradient."""
    tuning = method()
    before = {name: p.detach().clone() for name, p in tuning.named_parameters()}
    recipe = Recipe(1, 24, lr=1e-3, warmup=0.0)
    pretrain(tuning, waves, recipe, seed=0, device="cpu", optimiser=lambda groups: torch.optim.SGD(groups, lr=1.0))
    for prefix, rate in (
        ("encoder.input", 0.3),
        ("encoder.block0", 0.3 ** (2 / 3)),
        ("encoder.block1", 0.3 ** (1 / 3)),
        ("head", 1),
    ):
        for name, parameter in tuning.named_parameters():
            if name.startswith(prefix):
                assert parameter.grad is not None
                torch.testing.assert_close(
                    parameter.detach(), before[name] - 1e-3 * rate * parameter.grad, rtol=1e-5, atol=1e-8
                )
