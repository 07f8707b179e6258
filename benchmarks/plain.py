"""The yardstick: Di-COT trained the plain way, as a research script would.

Eager float32, deterministic algorithms, a DataLoader, three separate convolutions with PyTorch's own replicate padding,
a host-side draw of k, `.item()` every step. Shares nothing with the library.
"""

import os
import time
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SAME = {"padding": "same", "padding_mode": "replicate"}


class Module(nn.Module):
    def __init__(self, width_in: int) -> None:
        super().__init__()
        self.bottleneck = nn.Conv1d(width_in, 32, 1, **SAME)
        self.branches = nn.ModuleList(nn.Conv1d(32, 64, kernel, **SAME) for kernel in (10, 20, 40))
        self.pool = nn.MaxPool1d(3, stride=1, padding=1)
        self.pool_conv = nn.Conv1d(width_in, 64, 1, **SAME)
        self.norm = nn.BatchNorm1d(256)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        v = self.bottleneck(u)
        joined = torch.cat([branch(v) for branch in self.branches] + [self.pool_conv(self.pool(u))], dim=1)
        return torch.relu(self.norm(joined))


class Block(nn.Module):
    def __init__(self, width_in: int) -> None:
        super().__init__()
        self.path = nn.Sequential(Module(width_in), Module(256), Module(256))
        self.skip = nn.Sequential(nn.Conv1d(width_in, 256, 1, **SAME), nn.BatchNorm1d(256))

    def forward(self, v: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.path(v) + self.skip(v))


class PlainEncoder(nn.Module):
    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.project = nn.Linear(n_channels, 128)
        self.blocks = nn.Sequential(Block(128), Block(256))

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, T, C) -> (B, 256)
        return self.blocks(self.project(x.float()).transpose(1, 2)).mean(dim=-1)


def plain_loss(encoder: nn.Module, x: torch.Tensor, k: int) -> torch.Tensor:
    n_cases, n_times, n_channels = x.shape
    size = int(round(n_times / (1 + (k - 1) * 0.5) / 2) * 2)
    stride = round(size * 0.5)
    count = (n_times - size) // stride + 1
    blocks = torch.stack([x[:, j * stride : j * stride + size] for j in range(count)], dim=1)
    z = encoder(blocks.reshape(-1, size, n_channels)).reshape(n_cases, count, -1)
    logits = torch.einsum("bjf,bpf->bjp", z, z) / 0.07
    target = (torch.arange(count, device=x.device) - 1).clamp(min=0).repeat(n_cases)
    return F.cross_entropy(logits.reshape(n_cases * count, count), target)


def plain_seconds(data: np.ndarray, batch: int, counts: Sequence[int], device: str, seed: int = 0) -> list[float]:
    """Seconds of each training step on data (N, C, T), one step for each of the sub-block counts."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.manual_seed(seed)
    flags = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.use_deterministic_algorithms(True, warn_only=True)
    encoder = PlainEncoder(data.shape[1]).to(device).train()
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=3e-4)
    cases = torch.from_numpy(data.transpose(0, 2, 1).copy())
    loader = DataLoader(TensorDataset(cases, torch.zeros(len(cases))), batch_size=batch, shuffle=True, drop_last=True)
    seconds: list[float] = []
    batches = iter(loader)
    for k in counts:
        started = time.perf_counter()
        try:
            x, _ = next(batches)
        except StopIteration:
            batches = iter(loader)
            x, _ = next(batches)
        loss = plain_loss(encoder, x.to(device), k)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        loss.item()
        seconds.append(time.perf_counter() - started)
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = flags
    return seconds
