"""Across: each objective by hand, its queue, and the small training sets it must take."""

import math

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.methods import Batch, build_method
from dicot.methods.across import Across
from dicot.nets.encoders import FCN, InceptionTime
from dicot.nets.views.blocks import Blocks, block_layout
from dicot.train import Checkpoint, Recipe, Step, pretrain
from dicot.train.draws import plan_generator

PLAIN = {"noise": 0.0, "scale": 0.0, "offset": 0.0, "mask": 0.0, "crop": 0.0, "channel_drop": 0.0}
OBJECTIVES = [{}, {"whole": 0.0, "cross": 1.0}, {"whole": 0.0, "vic": 1.0}, {"cross": 0.5, "vic": 0.1}, {"queue": 12}]


def windows(n_cases: int = 12, n_channels: int = 2, n_times: int = 40, shift: float = 0.0) -> Windows:
    rng = np.random.default_rng(0)
    return Windows((rng.normal(size=(n_cases, n_channels, n_times)) + shift).astype(np.float32))


def build(width: int = 6, **settings) -> Across:
    """Prepared, and in float64, where a slow reference can be met."""
    torch.manual_seed(0)
    method = Across(FCN(2, dim=16), width=width, **settings)
    method.prepare(windows())
    return method.double()


def cases(n: int = 5) -> Batch:
    return Batch(torch.randn(n, 2, 40, dtype=torch.float64), torch.arange(n))


# A plain reference: one vector after the other.


def cosine(a, b) -> float:
    return float(a @ b / (a.norm() * b.norm()))


def find(own, candidates, right: int, temperature: float) -> float:
    """The cross-entropy of picking the right one."""
    chances = [math.exp(cosine(own, other) / temperature) for other in candidates]
    return -math.log(chances[right] / sum(chances))


def both_ways(first, second, temperature: float, more=()) -> float:
    """`more`: for each row the further candidates."""
    n, more = len(first), more or [[]] * len(first)
    there = [find(first[i], [*second, *more[i]], i, temperature) for i in range(n)]
    back = [find(second[i], [*first, *more[i]], i, temperature) for i in range(n)]
    return sum(there + back) / (2 * n)


def variance_invariance_covariance(a, b) -> float:
    total = 25 * float(((a - b) ** 2).mean())
    for z in (a, b):
        c = torch.cov(z.T)
        total += 12.5 * float((1 - (c.diagonal() + 1e-4).sqrt()).clamp(min=0).mean())
        total += 0.5 * float((c - c.diagonal().diag()).square().sum()) / z.shape[1]
    return total


def two_views(method: Across, x, seed: int = 1):
    torch.manual_seed(seed)
    return [method.distortion(x, method.channel_mean, method.channel_std) for _ in range(2)]


def project(method: Across, views):
    """In training mode BatchNorm uses the statistics of the call: one call for both views."""
    z = method.head(method.encoder.embed(torch.cat(views))).detach()
    return z[: len(views[0])], z[len(views[0]) :]


def blocks_of(view, plan: Blocks):
    """(B, k, C, L), one slice after the other."""
    return torch.stack([torch.stack([case[:, at : at + plan.length] for at in plan.starts]) for case in view])


def loss_of(method: Across, batch: Batch, plan=(), seed: int = 1) -> float:
    torch.manual_seed(seed)
    return method.loss(batch, plan).item()


@pytest.mark.parametrize("width", [6, 0])
def test_whole_by_hand(width):
    method, batch = build(width, temperature=0.3), cases()
    got = loss_of(method, batch)
    z1, z2 = project(method, two_views(method, batch.x))
    assert got == pytest.approx(both_ways(z1, z2, 0.3), rel=1e-9)


@pytest.mark.parametrize("k", [2, 5])
def test_cross_and_vic_by_hand(k):
    plan, batch = block_layout(40, k, 0.5, "exact"), cases()
    by_weight = []
    for settings in ({"cross": 1.0, "whole": 0.0}, {"vic": 1.0, "whole": 0.0}):
        method = build(**settings)
        got = loss_of(method, batch, plan)
        parts = [blocks_of(view, plan) for view in two_views(method, batch.x)]
        b1, b2 = (z.unflatten(0, (5, k)) for z in project(method, [part.flatten(0, 1) for part in parts]))
        if method.cross:
            now = [b1[i, j] for i in range(5) for j in range(k - 1)]
            then = [b2[i, j + 1] for i in range(5) for j in range(k - 1)]
            expected = both_ways(now, then, 0.2)
        else:
            even = torch.stack([torch.stack([b1[i, j] for j in range(0, k, 2)]).mean(0) for i in range(5)])
            odd = torch.stack([torch.stack([b2[i, j] for j in range(1, k, 2)]).mean(0) for i in range(5)])
            expected = variance_invariance_covariance(even, odd)
        assert got == pytest.approx(expected, rel=1e-9)
        by_weight.append(expected)
    alone = loss_of(build(), batch)
    assert loss_of(build(whole=2.0), batch) == pytest.approx(2 * alone)
    total = loss_of(build(whole=2.0, cross=0.5, vic=0.25), batch, plan)
    assert total == pytest.approx(2 * alone + 0.5 * by_weight[0] + 0.25 * by_weight[1], rel=1e-9)


def test_the_queue_by_hand_never_holds_a_cases_own_key_against_it():
    method = build(queue=7)
    kept: list[tuple[int, torch.Tensor]] = []  # (row, key), the latest last
    for step, rows in enumerate(([0, 1, 2, 3], [4, 5, 0, 1], [2, 3, 4, 5], [0, 1, 2, 3])):
        torch.manual_seed(100 + step)
        batch = Batch(torch.randn(4, 2, 40, dtype=torch.float64), torch.tensor(rows))
        got = loss_of(method, batch, seed=step)
        z1, z2 = project(method, two_views(method, batch.x, step))
        more = [[key for row, key in kept if row != own] for own in rows]
        assert got == pytest.approx(both_ways(z1, z2, 0.2, more), rel=1e-9), step
        kept = [*kept, *zip(rows, z2, strict=True)][-7:]
    assert method.pointer.item() == 16 % 7
    assert sorted(method.key_rows[0].tolist()) == sorted(row for row, _ in kept)
    torch.testing.assert_close(method.keys.norm(dim=0), torch.ones(7, dtype=torch.float64))


@pytest.mark.parametrize("width", [6, 0])
def test_the_first_step_with_a_queue_is_one_without(width):
    batch = cases()
    assert loss_of(build(width, queue=50), batch) == pytest.approx(loss_of(build(width), batch), rel=1e-12)


def test_without_a_head_the_embedding_itself_is_compared():
    assert not list(build(0).head.parameters())
    assert build(0, queue=3).keys.shape == (16, 3)


def test_preparing_for_other_cases_empties_the_queue():
    method = build(queue=6)
    method.loss(cases(), ())
    assert (method.key_rows >= 0).any()
    method.prepare(windows())
    assert (method.key_rows == -1).all() and method.pointer.item() == 0


@pytest.mark.parametrize("settings", OBJECTIVES, ids=str)
def test_every_objective_moves_encoder_and_head(settings):
    method = build(**settings)
    plan = method.plan((5, 2, 40), plan_generator(0, 0))
    method.loss(cases(), plan).backward()
    for name, parameter in method.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
    assert all(p.grad.abs().max() > 0 for p in (next(method.encoder.parameters()), method.head[0].weight))


@pytest.mark.parametrize("settings", OBJECTIVES, ids=str)
def test_nothing_waits_for_the_device(settings):
    """Fake tensors have no values: whatever reads one fails, as it would end the capture of a CUDA graph."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        method = Across(FCN(2, dim=16), **settings)
        if method.queue:
            method.register_buffer("keys", torch.zeros(128, 12))
            method.register_buffer("key_rows", torch.zeros(1, 12, dtype=torch.long))
            method.register_buffer("pointer", torch.zeros((), dtype=torch.long))
        loss = method.loss(Batch(torch.randn(5, 2, 40), torch.arange(5)), method.plan((5, 2, 40), plan_generator(0, 0)))
        loss.backward()
        assert loss.shape == () and next(method.encoder.parameters()).grad is not None
        with pytest.raises(DataDependentOutputException):
            loss.item()


@pytest.mark.parametrize("settings", OBJECTIVES, ids=str)
def test_same_seed_same_bytes_and_twenty_short_cases_suffice(settings):
    """20 cases of one channel and 24 time steps, in batches of 8; one of them constant."""
    x = np.random.default_rng(1).normal(size=(20, 1, 24)).astype(np.float32)
    x[0] = 2.0
    runs = []
    for _ in range(2):
        torch.manual_seed(0)
        method = Across(InceptionTime(1, dim=8), **settings)
        history = pretrain(method, Windows(x), Recipe(4, 8), seed=3, device="cpu")
        assert np.isfinite(history.loss).all()
        runs.append((history.loss, method.state_dict()))
    assert runs[0][0] == runs[1][0]
    assert all(torch.equal(value, runs[1][1][name]) for name, value in runs[0][1].items())


@pytest.mark.parametrize("n_times", [2, 3, 5])
@pytest.mark.parametrize("settings", [{}, {"cross": 1.0, "vic": 1.0}], ids=str)
def test_very_short_cases(n_times, settings):
    torch.manual_seed(0)
    method = Across(FCN(1, dim=8), **settings)
    history = pretrain(method, windows(6, 1, n_times), Recipe(2, 4), seed=0, device="cpu")
    assert np.isfinite(history.loss).all()


def test_a_resumed_run_goes_on_with_its_queue(tmp_path):
    def run(checkpoint: Checkpoint | None = None, stop: int = 0) -> list[float]:
        def killed(step: Step) -> None:
            if step.number == stop:
                raise KeyboardInterrupt

        torch.manual_seed(0)
        method = Across(FCN(2, dim=8), queue=10)
        options = {"device": "cpu", "checkpoint": checkpoint, "on_step": killed}
        return pretrain(method, windows(), Recipe(8, 4), seed=1, **options).loss

    checkpoint = Checkpoint(tmp_path / "run", 0)
    with pytest.raises(KeyboardInterrupt):
        run(checkpoint, stop=5)
    assert run(checkpoint) == run()


def test_plans_are_few_and_empty_without_sub_blocks():
    for settings, some in (({}, False), ({"cross": 1.0}, True), ({"vic": 1.0}, True)):
        method = build(**settings)
        plans = {method.plan((8, 2, 40), plan_generator(0, step)) for step in range(200)}
        if not some:
            assert plans == {()}
            continue
        assert plans == {block_layout(40, k, 0.5, "exact") for k in range(2, 11)}
        assert all(len(plan) >= 2 for plan in plans)
    fixed = build(cross=1.0, k=3)
    plan = fixed.plan((8, 2, 40), plan_generator(0, 0))
    assert len(plan) == 3 and fixed.extent(plan) == 3 * plan.length and fixed.extent(()) == 0


def test_both_views_are_encoded_in_one_call_and_blocks_only_where_they_are_needed(monkeypatch):
    for settings, expected in (
        ({}, [(10, 2, 40)]),
        ({"whole": 0.0, "cross": 1.0, "k": 4}, [(40, 2, 16)]),
        ({"vic": 1.0, "k": 4}, [(10, 2, 40), (40, 2, 16)]),
    ):
        method, seen = build(**settings), []
        embed = method.encoder.embed
        monkeypatch.setattr(
            method.encoder, "embed", lambda x, embed=embed, seen=seen: seen.append(tuple(x.shape)) or embed(x)
        )
        method.loss(cases(), method.plan((5, 2, 40), plan_generator(0, 0)))
        assert seen == expected


def test_views_follow_the_statistics_of_the_training_set():
    x = windows(50, 3, 40, shift=100.0).x * np.array([[1.0], [10.0], [0.0]], np.float32)
    method = Across(FCN(3, dim=8))
    method.prepare(Windows(x))
    assert method.channel_mean.flatten().tolist() == pytest.approx([100, 1000, 0], rel=0.01)
    assert method.channel_std.flatten().tolist() == pytest.approx([1, 10, 1], rel=0.05)  # a constant channel: 1
    about_zero = Across(FCN(3, dim=8), centred=False)
    about_zero.prepare(Windows(x))
    assert not about_zero.channel_mean.any()
    assert {"channel_mean", "channel_std"} <= set(method.state_dict())
    views = method.distortion(torch.from_numpy(x[:, :2]), method.channel_mean[:2], method.channel_std[:2])
    assert (views - method.channel_mean[:2]).abs().max() < 10 * 10, "a channel far from 0 is not blown up"


def test_the_embedding_is_the_encoders_alone():
    method = Across(FCN(2, dim=8))
    assert method.trained_encoder() is method.encoder and not hasattr(method.trained_encoder(), "head")


def test_it_learns_to_tell_cases_apart(waves):
    """A case finds its other view more often after training than before."""
    torch.manual_seed(0)
    method = Across(FCN(2, dim=32))
    losses = pretrain(method, waves, Recipe(60, 12, lr=3e-3), seed=0, device="cpu").loss
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])


def test_one_case_is_refused_as_training_set_and_as_batch():
    method = Across(FCN(2, dim=8))
    with pytest.raises(InputError, match="training set needs 2 cases; got 1"):
        method.prepare(windows(1))
    with pytest.raises(InputError, match="batch needs 2 cases; got 1. Use a larger batch_size"):
        pretrain(method, windows(4), Recipe(1, 1), seed=0, device="cpu")


def test_one_time_step_has_no_sub_blocks():
    Across(FCN(2, dim=8)).prepare(windows(4, 2, 1))
    with pytest.raises(InputError, match="1 time step; sub-blocks .* need 2"):
        Across(FCN(2, dim=8), vic=1.0).prepare(windows(4, 2, 1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"whole": -1.0}, "weights of 0 or more; got .-1.0"),
        ({"whole": 0.0}, "all 0"),
        ({"temperature": 0.0}, "temperature must be above 0; got 0.0"),
        ({"overlap": 1.0}, "overlap"),
        ({"k": 1}, "k must be"),
        ({"queue": -1}, "queue"),
        ({"queue": 8, "whole": 0.0, "vic": 1.0}, "queue serves the objective .* got 8"),
        ({"width": -1}, "width"),
        ({"crop": 1.0}, "crop must be"),
        ({"rotation": 0.5}, "groups of three channels.* got 2"),
        ({"noise": "loud"}, "noise must be a finite number"),
        ({"mask": [0.1, "x"]}, "mask must be"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        build_method("across", FCN(2, dim=8), settings)


def test_settings_from_the_command_line_are_taken():
    method = build_method("across", FCN(3, dim=8), {"mask": [0.2, 0.4], "k": [2, 5], "rotation": 0.1, "scale": 0})
    assert (method.distortion.masked, method.k_range, method.settings()["mask"]) == ((0.2, 0.4), (2, 5), (0.2, 0.4))
    assert method.distortion.rotation == 0.1 and method.distortion.scale == 0
    plain = Across(FCN(2, dim=8), **PLAIN)
    x = torch.randn(3, 2, 9)
    assert plain.distortion(x, plain.channel_mean, plain.channel_std) is x
