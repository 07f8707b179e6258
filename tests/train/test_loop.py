"""pretrain against a plain loop that shares nothing with it but the batches and the draws."""

import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dicot.core.errors import ModelFileError, NonFiniteLossError
from dicot.data import Windows
from dicot.methods import Batch, build_method
from dicot.methods.dicot import DiCOT
from dicot.nets.encoders import FCN, InceptionTime
from dicot.train import Checkpoint, History, Recipe, Step, pretrain
from dicot.train.batches import epoch_order, plan_generator, visited


class PlainModule(nn.Module):
    """An inception module with PyTorch's own replicate padding, on (B, C, T)."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        same = {"padding": "same", "padding_mode": "replicate"}
        self.bottleneck = nn.Conv1d(width_in, 32, 1)
        self.convs = nn.ModuleList(nn.Conv1d(32, width // 4, kernel, **same) for kernel in (10, 20, 40))
        self.poolconv = nn.Conv1d(width_in, width // 4, 1)
        self.bn = nn.BatchNorm1d(width)

    def forward(self, u):
        v = self.bottleneck(u)
        pooled = self.poolconv(nn.MaxPool1d(3, stride=1, padding=1)(u))
        return F.relu(self.bn(torch.cat([conv(v) for conv in self.convs] + [pooled], dim=1)))


class PlainEncoder(nn.Module):
    def __init__(self, n_channels: int, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(n_channels, 128)
        self.paths, self.skips = nn.ModuleList(), nn.ModuleList()
        for n in (128, width):
            self.paths.append(
                nn.Sequential(PlainModule(n, width), PlainModule(width, width), PlainModule(width, width))
            )
            self.skips.append(nn.Sequential(nn.Conv1d(n, width, 1), nn.BatchNorm1d(width)))

    def forward(self, x):  # (B, C, T) -> (B, F)
        v = self.project(x.transpose(1, 2)).transpose(1, 2)
        for path, skip in zip(self.paths, self.skips, strict=True):
            v = F.relu(path(v) + skip(v))
        return v.mean(-1)


def plain_twin(encoder: InceptionTime) -> PlainEncoder:
    """The same weights; both list their tensors in the order of the sheet."""
    twin = PlainEncoder(encoder.n_channels, encoder.dim).to(encoder.input.weight.dtype)
    theirs = twin.state_dict()
    ours = encoder.state_dict()
    names = sorted(theirs, key=lambda name: _sheet_order(name))
    twin.load_state_dict(
        {name: value.reshape(theirs[name].shape).clone() for name, value in zip(names, ours.values(), strict=True)}
    )
    return twin


def _sheet_order(name: str) -> tuple[int, ...]:
    if name.startswith("project"):
        return (0, 0, 0, name.endswith("bias"))
    kind, block, *rest = name.split(".")
    parts = ["bottleneck", "convs.0", "convs.1", "convs.2", "poolconv", "bn", "0", "1"]
    tensors = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    if kind == "skips":
        return (1 + int(block), 1, parts.index(rest[0]), tensors.index(rest[1]))
    part = parts.index(".".join(rest[1:-1]))
    return (1 + int(block), 0, int(rest[0]) * 10 + part, tensors.index(rest[-1]))


def plain_loop(twin: PlainEncoder, data: np.ndarray, recipe: Recipe, temperature: float, seed: int) -> list[float]:
    steps, batch = recipe.steps, recipe.batch_size
    optimiser = torch.optim.AdamW(twin.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=3e-4)
    twin.train()
    x, losses = torch.from_numpy(data).to(twin.project.weight.dtype), []
    n_batches, n_times = len(data) // batch, data.shape[2]
    for step in range(steps):
        epoch, at = step // n_batches, step % n_batches
        rows = epoch_order(seed, epoch, len(data))[at * batch : at * batch + batch]
        k = int(plan_generator(seed, step).integers(2, 11))
        size = max(2, 2 * round(n_times / (1 + (k - 1) * 0.5) / 2))
        stride = max(1, round(size * 0.5))
        count = (n_times - size) // stride + 1
        blocks = torch.stack([x[rows][:, :, j * stride : j * stride + size] for j in range(count)], dim=1)
        z = twin(blocks.reshape(-1, data.shape[1], size)).reshape(batch, count, -1)
        logits = torch.einsum("bjf,bpf->bjp", z, z) / temperature
        target = torch.tensor([max(j - 1, 0) for j in range(count)] * batch)
        loss = F.cross_entropy(logits.reshape(-1, count), target)
        tick = epoch if recipe.schedule == "per_epoch" else step
        warm = int(0.1 * steps)
        half = 0.5 * (1 + math.cos(math.pi * (tick - warm) / (steps - warm)))
        optimiser.param_groups[0]["lr"] = 3e-4 * (tick / warm if tick < warm else half)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("schedule", ["per_step", "per_epoch"])
def test_ten_steps_in_float64_equal_a_plain_loop(schedule):
    # A bias in front of BatchNorm has gradient zero; AdamW divides what rounding leaves of it by 1e-8. Wide data and
    # a high temperature keep that noise below the tolerance, which then says something about every weight.
    data = (100 * np.random.default_rng(0).normal(size=(20, 2, 25))).astype(np.float32)
    encoder, twin = twins()
    recipe = Recipe(10, 8, schedule=schedule, precision="float64")
    history = pretrain(DiCOT(encoder, temperature=10.0), Windows(data), recipe, seed=11, device="cpu")
    losses = plain_loop(twin, data, recipe, 10.0, seed=11)
    np.testing.assert_allclose(history.loss, losses, rtol=1e-12)
    theirs = twin.state_dict()
    names = sorted(theirs, key=_sheet_order)
    for (label, ours), name in zip(encoder.state_dict().items(), names, strict=True):
        difference = (ours.reshape(theirs[name].shape) - theirs[name]).abs().max().item()
        assert difference <= 1e-9, f"{label}: {difference}"
    start = twins()[0].state_dict()
    moved = [label for label, value in encoder.state_dict().items() if not torch.equal(value, start[label])]
    assert len(moved) == len(start), "the comparison must be of trained networks"


def twins() -> tuple[InceptionTime, PlainEncoder]:
    torch.manual_seed(0)
    encoder = InceptionTime(2, dim=256).double()
    return encoder, plain_twin(encoder)


def method(n_channels: int = 2) -> DiCOT:
    torch.manual_seed(0)
    return DiCOT(InceptionTime(n_channels, dim=8))


def test_history_is_plain_data_and_each_step_is_told_once(waves):
    told: list[Step] = []
    history = pretrain(method(), waves, Recipe(6, 8), seed=0, device="cpu", on_step=told.append)
    assert [(step.number, step.steps) for step in told] == [(number, 6) for number in range(1, 7)]
    assert ([step.loss for step in told], [step.lr for step in told]) == (history.loss, history.lr)
    assert told[-1].seconds == history.seconds
    assert isinstance(history, History)
    assert all(type(value) is float for value in history.loss + history.lr)
    assert history.lr[0] > 0  # a warm-up of int(0.6) = 0 steps
    assert history.seconds > 0


def test_a_non_finite_loss_stops_with_its_step(waves):
    overflowing = DiCOT(InceptionTime(2, dim=8), temperature=1e-42)
    with pytest.raises(NonFiniteLossError, match="loss of step 0 is nan"):
        pretrain(overflowing, waves, Recipe(4, 8), seed=0, device="cpu")


def small() -> DiCOT:
    torch.manual_seed(0)
    return DiCOT(FCN(2, dim=8))


def test_an_optimiser_of_the_callers_choice_follows_the_schedule(waves):
    """Plain gradient descent by hand gives the same weights."""
    ours, by_hand = small(), small()
    recipe = Recipe(4, 8, lr=0.5, schedule=lambda step: 0.1 / (1 + step))
    history = pretrain(ours, waves, recipe, seed=2, device="cpu", optimiser=partial(torch.optim.SGD, lr=99.0))
    assert history.lr == [0.1, 0.05, 0.1 / 3, 0.025]
    by_hand.train()
    for step, rows in enumerate(visited(waves, 2, 0, 4, 8)):
        plan = by_hand.plan((8, 2, 32), plan_generator(2, step))
        by_hand.zero_grad()
        by_hand.loss(Batch(torch.from_numpy(waves.x[rows]), torch.from_numpy(rows)), plan).backward()
        with torch.no_grad():
            for parameter in by_hand.parameters():
                parameter -= history.lr[step] * parameter.grad
    for name, value in by_hand.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "optimiser",
    [
        partial(torch.optim.SGD, momentum=0.9),
        torch.optim.SGD,  # whose state is None
        torch.optim.ASGD,
        torch.optim.Adagrad,  # has a state before the first step
    ],
)
def test_a_run_with_any_optimiser_is_resumed_bit_equal(optimiser, waves, tmp_path):
    def run(method, **more):
        return pretrain(method, waves, Recipe(5, 8, lr=1e-2), seed=2, device="cpu", optimiser=optimiser, **more)

    def stop(step):
        if step.number == 3:
            raise KeyboardInterrupt

    whole, resumed = small(), small()
    expected, checkpoint = run(whole), Checkpoint(tmp_path / "run", 0)
    with pytest.raises(KeyboardInterrupt):
        run(small(), checkpoint=checkpoint, on_step=stop)
    assert run(resumed, checkpoint=checkpoint).loss == expected.loss and checkpoint.resumed
    assert all(torch.equal(value, resumed.state_dict()[name]) for name, value in whole.state_dict().items())


def test_another_optimiser_or_other_first_weights_are_another_run(waves, tmp_path):
    recipe, checkpoint = Recipe(2, 8), Checkpoint(tmp_path / "run")

    def run(**more):
        pretrain(small(), waves, recipe, seed=2, device="cpu", checkpoint=checkpoint, **more)

    run(optimiser=partial(torch.optim.SGD, momentum=0.9))
    run(optimiser=partial(torch.optim.SGD, momentum=0.9, lr=7.0, foreach=True))  # neither changes the result
    with pytest.raises(ModelFileError, match=r"SGD.*0\.9.*0\.5"):
        run(optimiser=partial(torch.optim.SGD, momentum=0.5))
    with pytest.raises(ModelFileError, match="optimiser"):
        run()
    with pytest.raises(ModelFileError, match="initial"):
        run(optimiser=partial(torch.optim.SGD, momentum=0.9), initial=small().encoder.state_dict())


def test_callbacks_see_every_step_and_one_can_end_the_run(waves, tmp_path):
    told: list[int] = []
    trained, checkpoint = small(), Checkpoint(tmp_path / "run", 1000)
    callbacks = [lambda step: told.append(step.number), lambda step: np.bool_(step.number == 3)]
    history = pretrain(
        trained, waves, Recipe(9, 8), seed=2, device="cpu", on_step=callbacks, checkpoint=checkpoint
    )  # fmt: skip
    assert told == [1, 2, 3] and len(history) == len(history.lr) == 3 and not trained.training
    read = small()
    again = pretrain(read, waves, Recipe(9, 8), seed=2, device="cpu", on_step=callbacks, checkpoint=checkpoint)
    assert again.loss == history.loss and told == [1, 2, 3] and checkpoint.ended and not read.training
    assert all(torch.equal(value, read.state_dict()[name]) for name, value in trained.state_dict().items())
    assert pretrain(small(), waves, Recipe(9, 8), seed=2, device="cpu").loss[:3] == history.loss


@pytest.mark.parametrize("name", ["dicot", "ts2vec"])  # one that evaluates its encoder, one that evaluates an average
def test_a_run_continues_from_given_weights(name, waves):
    torch.manual_seed(5)
    first = FCN(2, dim=8).state_dict()
    given, loaded = (build_method(name, FCN(2, dim=8), {}) for _ in range(2))
    loaded.encoder.load_state_dict(first)
    pretrain(given, waves, Recipe(0, 8), seed=2, device="cpu", initial=first)
    assert all(torch.equal(value, first[key]) for key, value in given.trained_encoder().state_dict().items())
    histories = [
        pretrain(given, waves, Recipe(3, 8), seed=2, device="cpu", initial=first),
        pretrain(loaded, waves, Recipe(3, 8), seed=2, device="cpu"),
    ]
    assert histories[0].loss == histories[1].loss
    with pytest.raises(RuntimeError, match="more"):
        pretrain(given, waves, Recipe(1, 8), seed=2, device="cpu", initial={**first, "more": torch.zeros(1)})


def test_a_group_is_trained_at_its_share_of_the_rate(waves):
    seen = []

    class Watched(torch.optim.SGD):
        def step(self, closure=None):
            seen.append([group["lr"] for group in self.param_groups])

    method = build_method("dicot", FCN(2, dim=8), {})
    first, *rest = method.parameters()
    method.param_groups = lambda: [{"params": [first], "rate": 0.25}, {"params": rest}]
    history = pretrain(method, waves, Recipe(5, 8), seed=0, device="cpu", optimiser=partial(Watched, lr=1.0))
    assert seen == [[0.25 * rate, rate] for rate in history.lr]


def test_without_a_gpu_graphs_fall_back_with_a_reason(waves, caplog):
    def history(**settings) -> History:
        torch.manual_seed(0)
        method = build_method("dicot", InceptionTime(waves.n_channels, dim=16), {})
        return pretrain(method, waves, Recipe(4, 8), seed=0, device="cpu", **settings)

    with caplog.at_level("WARNING", "dicot"):
        fallen_back = history(stepper="graphs")
    assert "need a GPU" in caplog.text
    assert fallen_back.loss == history(stepper="eager").loss == history().loss
