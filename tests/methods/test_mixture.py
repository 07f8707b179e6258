import pytest
import torch

from dicot.methods.infots import CANDIDATES, candidates, mixing_weights, mixture


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def test_subsequence_reaches_every_interval_of_two_and_more():
    x = torch.ones(2, 1, 5)
    seen = set()
    for _ in range(400):
        kept = CANDIDATES["subsequence"].view(x)
        assert torch.equal(kept[0], kept[1])  # one draw per batch
        where = kept[0, 0].nonzero().flatten().tolist()
        assert where == list(range(where[0], where[-1] + 1))
        seen.add((where[0], len(where)))
    assert seen == {(start, length) for length in range(2, 6) for start in range(5 - length + 1)}


def test_cutout_takes_a_tenth_in_the_authors_range():
    x = torch.ones(2, 1, 20)
    starts = set()
    for _ in range(400):
        gone = (CANDIDATES["cutout"].view(x) == 0)[0, 0].nonzero().flatten().tolist()
        assert len(gone) == 2
        starts.add(gone[0])
    assert starts == set(range(20 - 2 - 1))


def test_noise_has_the_stated_size():
    x = torch.ones(400, 3, 50)
    noise = CANDIDATES["jitter"].view(x) - x
    assert noise.std().item() == pytest.approx(0.3, rel=0.02)
    factors = CANDIDATES["scaling"].view(x)
    assert torch.equal(factors, factors[..., :1].expand_as(x))
    assert factors[..., 0].std().item() == pytest.approx(0.5, rel=0.1)
    assert factors[..., 0].mean().item() == pytest.approx(1, abs=0.05)


def test_weights_sum_to_one_and_follow_theta():
    theta = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64)
    assert torch.equal(mixing_weights(theta, sample=False), theta.softmax(0))
    draws = torch.stack([mixing_weights(theta, sample=True) for _ in range(500)])
    torch.testing.assert_close(draws.sum(1), torch.ones(500, dtype=torch.float64))
    assert (draws > 0).all()
    mean = draws.mean(0)
    assert mean[0] < mean[1] < mean[2]
    noise = draws.log() - theta  # logit(u) up to a constant per draw, |logit(u)| < 9.22
    assert (noise.amax(1) - noise.amin(1)).max() < 2 * 9.22


def test_mixture_is_the_weighted_sum_and_has_a_gradient():
    x = torch.randn(3, 2, 24)
    state = torch.get_rng_state()
    views = torch.stack([CANDIDATES[name].view(x) for name in candidates(24)])
    weights = torch.rand(7, requires_grad=True)
    torch.set_rng_state(state)
    mixed = mixture(x, weights)
    torch.testing.assert_close(mixed, torch.einsum("a,abct->bct", weights, views))
    mixed.sum().backward()
    torch.testing.assert_close(weights.grad, views.sum((1, 2, 3)), rtol=1e-4, atol=1e-3)
