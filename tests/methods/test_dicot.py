import pytest
import torch

from dicot.methods import Batch
from dicot.methods.dicot import DiCOT
from dicot.nets.encoders import InceptionTime
from dicot.nets.losses import adjacent_block
from dicot.nets.views import block_layout
from dicot.train.batches import plan_generator


def encoder() -> InceptionTime:
    torch.manual_seed(0)
    return InceptionTime(2, dim=16)


def test_loss_by_hand():
    method = DiCOT(encoder(), temperature=0.5, positive="next").eval()
    x = torch.randn(3, 2, 20)
    plan = block_layout(20, 4, 0.5)
    blocks = [[x[b : b + 1, :, s : s + plan.length] for s in plan.starts] for b in range(3)]
    z = torch.stack([torch.cat([method.encoder.embed(block) for block in row]) for row in blocks])
    got = method.loss(Batch(x, torch.arange(3)), plan)
    torch.testing.assert_close(got, adjacent_block(z, 0.5, "next"), rtol=1e-5, atol=1e-6)


def test_k_is_drawn_from_both_ends_of_the_range():
    method = DiCOT(encoder(), k=(2, 4), rounding="exact")
    counts = {len(method.plan((1, 2, 100), plan_generator(0, step))) for step in range(100)}
    assert counts == {2, 3, 4}
    fixed = DiCOT(encoder(), k=5, rounding="exact")
    assert {len(fixed.plan((1, 2, 100), plan_generator(0, step))) for step in range(10)} == {5}


@pytest.mark.parametrize(
    "settings",
    [
        {"overlap": 0.0},
        {"overlap": 0.25},
        {"overlap": 0.75},
        {"temperature": 1.0},
        {"k": 10},
        {"k": (2, 20)},
        {"positive": "next"},
        {"positive": "both"},
        {"positive": "shuffled"},
        {"projection": True},
        {"rounding": "exact"},
    ],
    ids=str,
)
def test_every_ablation_of_the_paper_is_an_argument(settings):
    method = DiCOT(encoder(), **settings)
    plan = method.plan((2, 2, 64), plan_generator(0, 0))
    loss = method.loss(Batch(torch.randn(2, 2, 64), torch.arange(2)), plan)
    loss.backward()
    assert torch.isfinite(loss)


@pytest.mark.parametrize(("family", "temperature"), [("ucr", 1.0), ("uea", 0.07), ("large", 0.07), (None, 0.07)])
def test_the_papers_temperature(family, temperature):
    assert DiCOT.paper_params(family) == {"temperature": temperature}  # D-05
