import numpy as np
import torch
from torch.nn.functional import cross_entropy

from dicot.methods import Batch
from dicot.methods.gradual import GradualTuning, StandardisedHead
from dicot.nets.encoders import InceptionTime


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
