import numpy as np
import pytest
import torch
from tests.own import Net
from torch.nn.functional import cross_entropy

from dicot.methods import Batch
from dicot.methods.gradual import GradualTuning, StandardisedHead
from dicot.nets.encoders import FCN, InceptionTime, ResNet, as_encoder
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


@pytest.mark.parametrize(
    ("encoder", "first", "rates"),
    [
        (InceptionTime(2, dim=8), "input.weight", [0.3, 0.3 ** (2 / 3), 0.3 ** (1 / 3), 1]),
        (FCN(2, dim=8), "convs.0.weight", [0.3, 0.3 ** (2 / 3), 0.3 ** (1 / 3), 1]),
        (ResNet(2, dim=8), "blocks.0.convs.0.weight", [0.3, 0.3 ** (2 / 3), 0.3 ** (1 / 3), 1]),
        (as_encoder(Net(), 2, 32), "module.first.weight", [0.3, 0.3 ** (2 / 3), 0.3 ** (1 / 3), 1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rates_fall_from_the_head_to_the_input(encoder, first, rates):
    groups = method(encoder).param_groups()
    np.testing.assert_allclose([group["rate"] for group in groups], rates)
    assert any(p is encoder.get_parameter(first) for p in groups[0]["params"])
    listed = [id(p) for group in groups[:-1] for p in group["params"]]
    assert sorted(listed) == sorted(id(p) for p in encoder.parameters()), "each parameter once"


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


@pytest.mark.parametrize(("steps", "looks"), [(10, 10), (25, 10), (4, 4)])
def test_states_are_kept_evenly(waves, steps, looks):
    tuning = method(as_encoder(Net(), 2, 32))
    pretrain(tuning, waves, Recipe(steps, 8), seed=0, device="cpu")
    shares = [share for share, _ in tuning.states]
    assert len(shares) == looks and shares[-1] == 1 and np.ptp(np.diff(shares)) < 2 / steps
    last = tuning.states[-1][1]
    assert all(torch.equal(value, last[name]) for name, value in tuning.state_dict().items())
    assert not torch.equal(tuning.states[0][1]["head.linear.bias"], last["head.linear.bias"]), "copies"
