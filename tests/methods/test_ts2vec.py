import torch

from dicot.methods import Batch, TS2Vec
from dicot.methods.cropping import Crops, encode_crops
from dicot.methods.infots import SelfOptimised
from dicot.nets.encoders import FCN, InceptionTime
from dicot.nets.hierarchy import hierarchical_contrast
from dicot.train import Recipe, pretrain

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
    encode_crops(encoder.train(), x, APART, 3000, 0.25, 0.0)
    (first, keep1), (second, keep2) = encoder.seen
    assert (first.shape, second.shape) == ((64, 2, 11), (64, 2, 13))
    assert keep1.shape == (64, 11) and keep2.shape == (64, 13) and keep1.dtype == torch.bool
    assert 0.7 < torch.cat([keep1, keep2], dim=1).float().mean() < 0.8
    assert not torch.equal(keep1[:, :8], keep2[:, :8])
    encoder.seen.clear()
    encode_crops(encoder.eval(), x, APART, 3000, 0.25, 0.5)
    assert all(keep is None for _, keep in encoder.seen)


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


def test_equals_torchs_optimiser():
    torch.manual_seed(0)
    start = torch.randn(5, 3, dtype=torch.float64)
    theirs = torch.nn.Parameter(start.clone())
    optimiser = torch.optim.AdamW([theirs], lr=0.01)
    ours = SelfOptimised(start.clone())
    for number in range(1, 30):
        gradient = torch.randn(5, 3, dtype=torch.float64) * 10 ** (number % 4 - 2)
        theirs.grad = gradient.clone()
        optimiser.step()
        ours.step(gradient, number, 0.01)
        torch.testing.assert_close(ours.value, theirs.detach(), rtol=1e-12, atol=1e-14)
    state = optimiser.state[theirs]
    torch.testing.assert_close(ours.mean, state["exp_avg"], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(ours.square, state["exp_avg_sq"], rtol=1e-12, atol=1e-14)
