"""The yardstick must be the plain loop and nothing else, and leave no trace."""

import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from benchmarks.timing.plain import PlainEncoder, plain_loss, plain_seconds, plain_settings
from benchmarks.timing.turns import counts, dicot, forget_caches, fresh_start
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from dicot.nets.encoders.inception.convolution import folding
from dicot.nets.views.blocks import block_layout
from dicot.train.draws import plan_generator


class TheirModule(nn.Module):
    """A module of the loop that speed is quoted against, letter by letter."""

    def __init__(self, width_in):
        super().__init__()
        same = {"padding": "same", "padding_mode": "replicate"}
        self.bottleneck = nn.Conv1d(width_in, 32, 1, **same)
        self.branches = nn.ModuleList(nn.Conv1d(32, 64, k, **same) for k in (10, 20, 40))
        self.pool = nn.MaxPool1d(3, stride=1, padding=1)
        self.pool_conv = nn.Conv1d(width_in, 64, 1, **same)
        self.norm = nn.BatchNorm1d(256)

    def forward(self, u):
        v = self.bottleneck(u)
        return torch.relu(self.norm(torch.cat([b(v) for b in self.branches] + [self.pool_conv(self.pool(u))], dim=1)))


class TheirBlock(nn.Module):
    def __init__(self, width_in):
        super().__init__()
        self.path = nn.Sequential(TheirModule(width_in), TheirModule(256), TheirModule(256))
        conv = nn.Conv1d(width_in, 256, 1, padding="same", padding_mode="replicate")
        self.skip = nn.Sequential(conv, nn.BatchNorm1d(256))

    def forward(self, v):
        return torch.relu(self.path(v) + self.skip(v))


class TheirEncoder(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.project = nn.Linear(channels, 128)
        self.blocks = nn.Sequential(TheirBlock(128), TheirBlock(256))

    def forward(self, x):
        return self.blocks(self.project(x.float()).transpose(1, 2)).mean(dim=-1)


def their_loss(encoder, x, k, overlap=0.5, temperature=0.07):
    n, length, channels = x.shape
    size = int(round(length / (1 + (k - 1) * (1 - overlap)) / 2) * 2)
    stride = round(size * (1 - overlap))
    count = (length - size) // stride + 1
    blocks = torch.stack([x[:, j * stride : j * stride + size] for j in range(count)], dim=1)
    z = encoder(blocks.reshape(-1, size, channels)).reshape(n, count, -1)
    logits = torch.einsum("bjf,bpf->bjp", z, z) / temperature
    target = (torch.arange(count, device=x.device) - 1).clamp(min=0).repeat(n)
    return F.cross_entropy(logits.reshape(n * count, count), target)


@pytest.mark.parametrize(("n_times", "k"), [(24, 2), (24, 10), (37, 5)])
def test_the_yardstick_is_the_plain_loop(n_times, k):
    torch.manual_seed(0)
    theirs = TheirEncoder(2)
    torch.manual_seed(0)
    plain = PlainEncoder(2)
    assert {n: tuple(v.shape) for n, v in plain.state_dict().items()} == {
        n: tuple(v.shape) for n, v in theirs.state_dict().items()
    }
    x = torch.randn(3, n_times, 2)
    losses = [their_loss(theirs, x, k), plain_loss(plain, x, k)]
    assert losses[0].item() == losses[1].item()
    for loss in losses:
        loss.backward()
    for (name, a), b in zip(theirs.named_parameters(), plain.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad), name


def settings():
    cudnn = torch.backends.cudnn
    return (
        cudnn.deterministic,
        cudnn.benchmark,
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        torch.random.get_rng_state().tolist(),
    )


def test_settings_are_in_force_while_the_plain_loop_runs_and_restored_after(monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    before, seen = settings(), []
    hook = register_optimizer_step_post_hook(lambda *_: seen.append(settings()[:5]))
    try:
        seconds = plain_seconds(np.zeros((5, 1, 12), np.float32) + np.arange(12, dtype=np.float32), 4, [2, 3], "cpu")
    finally:
        hook.remove()
    assert len(seconds) == 2 and min(seconds) > 0
    assert seen == [(True, False, True, True, ":4096:8")] * 2
    assert settings() == before


def test_settings_are_restored_after_an_error():
    before = settings()
    with pytest.raises(RuntimeError, match="on purpose"), plain_settings():
        raise RuntimeError("on purpose")
    assert settings() == before


def test_both_draw_the_same_number_of_sub_blocks():
    plans = [dicot(1).plan((8, 1, 150), plan_generator(4, step)) for step in range(12)]
    assert plans == [block_layout(150, k, 0.5) for k in counts(4, 12)]
    assert len(set(plans)) > 3


def test_a_fresh_start_on_a_gpu_forgets_what_earlier_runs_built():
    shape = (5, 10, 4, torch.float32, torch.device("cpu"))
    built = folding(*shape)
    fresh_start("cpu")
    assert folding(*shape) is built, "on a CPU single steps are timed, and what is built once stays"
    forget_caches()
    assert folding(*shape) is not built
