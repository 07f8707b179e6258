"""The yardstick must be the plain loop and nothing else, and leave no trace."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bench.speed.plain import PlainEncoder, plain_loss


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
