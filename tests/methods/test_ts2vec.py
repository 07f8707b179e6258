import numpy as np
import pytest
import torch
from torch import nn

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.methods import Batch, TS2Vec
from dicot.methods.cropping import Crops, crops_of, encode_crops
from dicot.nets.encoders import FCN, InceptionTime
from dicot.nets.losses.contrast import hierarchical_contrast
from dicot.train import Recipe, pretrain
from dicot.train.draws import plan_generator

WHOLE = Crops(n_times=20, left=0, right=20, outer_left=0, outer_right=20)
APART = Crops(n_times=20, left=4, right=12, outer_left=1, outer_right=17)


class Recorder(FCN):
    """An encoder that remembers what it was given."""

    def forward(self, x, keep=None):
        self.seen = [*getattr(self, "seen", []), (x, keep)]
        return super().forward(x, keep)


def make(**settings) -> TS2Vec:
    torch.manual_seed(0)
    return TS2Vec(InceptionTime(2, dim=16), **settings)


def test_loss_by_hand():
    method = make(alpha=0.3).eval()
    x = torch.randn(3, 2, 20)
    torch.manual_seed(4)
    shifts = [int(5 * share) - 1 for share in torch.rand(3)]
    view1 = torch.stack([x[b, :, o + 1 : o + 12] for b, o in enumerate(shifts)])
    view2 = torch.stack([x[b, :, o + 4 : o + 17] for b, o in enumerate(shifts)])
    z1, z2 = method.encoder(view1)[..., 3:], method.encoder(view2)[..., :8]
    torch.manual_seed(4)
    got = method.loss(Batch(x, torch.arange(3)), APART)
    torch.testing.assert_close(got, hierarchical_contrast(z1, z2, alpha=0.3))


def test_two_calls_with_their_own_masks():
    encoder, x = Recorder(2, dim=8), torch.randn(64, 2, 20)
    encode_crops(encoder.train(), x, APART, mask=0.25, dropout=0.0)
    (first, keep1), (second, keep2) = encoder.seen
    assert (first.shape, second.shape) == ((64, 2, 11), (64, 2, 13))
    assert keep1.shape == (64, 11) and keep2.shape == (64, 13) and keep1.dtype == torch.bool
    assert 0.7 < torch.cat([keep1, keep2], dim=1).float().mean() < 0.8
    assert not torch.equal(keep1[:, :8], keep2[:, :8])
    encoder.seen.clear()
    encode_crops(encoder.eval(), x, APART, mask=0.25, dropout=0.5)
    assert all(keep is None for _, keep in encoder.seen)


def test_dropout_acts_on_the_features_in_training_only():
    encoder, x = FCN(2, dim=8), torch.randn(32, 2, 20)
    with torch.no_grad():
        for norm in (m for m in encoder.modules() if isinstance(m, nn.BatchNorm1d)):
            norm.bias.fill_(5.0)  # no feature is zero of itself
    kept, _ = encode_crops(encoder.train(), x, WHOLE, mask=0.0, dropout=0.0)
    dropped, _ = encode_crops(encoder.train(), x, WHOLE, mask=0.0, dropout=0.25)
    share = ((dropped == 0) & (kept != 0)).float().mean()
    assert 0.2 < share < 0.3
    alive = dropped != 0
    torch.testing.assert_close(dropped[alive], kept[alive] / 0.75)
    a, b = (encode_crops(encoder.eval(), x, WHOLE, mask=0.5, dropout=0.5)[0] for _ in range(2))
    assert torch.equal(a, b)


def test_long_cases_are_seen_through_a_random_window():
    method = make(max_train_length=16)
    plans = [method.plan((4, 2, 40), plan_generator(0, step)) for step in range(300)]
    crops = [crops_of(plan, 40, 16) for plan in plans]
    assert {crop.n_times for crop in crops} == {16}
    assert {crop.start for crop in crops} == set(range(25))
    loss = method.loss(Batch(torch.randn(4, 2, 40), torch.arange(4)), plans[0])
    assert torch.isfinite(loss)
    assert crops_of(make().plan((4, 2, 3000), plan_generator(0, 0)), 3000, 3000).start == 0


@pytest.mark.parametrize("n_cases", [1, 2])
@pytest.mark.parametrize("n_times", [2, 3, 8])
def test_small_batches_and_short_cases(n_cases, n_times):
    for step in range(4):
        method = make()
        plan = method.plan((n_cases, 2, n_times), plan_generator(0, step))
        loss = method.loss(Batch(torch.randn(n_cases, 2, n_times), torch.arange(n_cases)), plan)
        loss.backward()
        assert torch.isfinite(loss)
        assert all(torch.isfinite(p.grad).all() for group in method.param_groups() for p in group["params"])


@pytest.mark.parametrize(
    "settings",
    [{"alpha": 0.0}, {"alpha": 1.0}, {"temporal_unit": 2}, {"mask": 0.0}, {"dropout": 0.0}, {"max_train_length": 8}],
    ids=str,
)
def test_every_option_trains(settings, waves):
    history = pretrain(make(**settings), waves, Recipe(2, 4), seed=0, device="cpu")
    assert np.isfinite(history.loss).all()


def test_the_average_of_all_steps_is_evaluated(waves):
    method, plain = make(), make(average_weights=False)
    iterates: list[list[torch.Tensor]] = []
    keep = lambda _: iterates.append([p.detach().clone() for p in method.encoder.parameters()])  # noqa: E731
    pretrain(method, waves, Recipe(4, 8), seed=1, device="cpu", on_step=keep)
    pretrain(plain, waves, Recipe(4, 8), seed=1, device="cpu")
    for averaged, *values in zip(method.trained_encoder().parameters(), *iterates, strict=True):
        torch.testing.assert_close(averaged, torch.stack(values).mean(0), rtol=1e-4, atol=1e-6)
    for averaged, live in zip(method.trained_encoder().buffers(), method.encoder.buffers(), strict=True):
        assert torch.equal(averaged, live), "BatchNorm statistics come from the trained network"
    assert plain.trained_encoder() is plain.encoder
    for a, b in zip(method.encoder.parameters(), plain.encoder.parameters(), strict=True):
        assert torch.equal(a, b), "averaging does not change the training"
    trained = {id(p) for group in method.param_groups() for p in group["params"]}
    assert trained == {id(p) for p in method.encoder.parameters()}


def test_float64(waves):
    history = pretrain(make(), waves, Recipe(2, 4, precision="float64"), seed=0, device="cpu")
    assert np.isfinite(history.loss).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 1.5}, "alpha is a share, 0 <= alpha <= 1; got 1.5"),
        ({"mask": 1.0}, "mask is a share, 0 <= mask < 1; got 1.0"),
        ({"dropout": -0.1}, "dropout is a share"),
        ({"alpha": float("nan")}, "alpha is a share"),
        ({"temporal_unit": -1}, "temporal_unit is a pooling depth, a whole number from 0; got -1"),
        ({"temporal_unit": 0.5}, "temporal_unit is a pooling depth"),
        ({"max_train_length": 1}, "at least 2 time steps"),
        ({"max_train_length": 7, "temporal_unit": 2}, "at least 8 time steps"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InputError, match=message):
        make(**settings)


def test_too_short_cases_are_refused_before_training():
    with pytest.raises(InputError, match="1 time steps; random crops need 2"):
        make().prepare(Windows(np.zeros((4, 2, 1), np.float32)))
    with pytest.raises(InputError, match="15 time steps; random crops need 16"):
        make(temporal_unit=3).prepare(Windows(np.zeros((4, 2, 15), np.float32)))
