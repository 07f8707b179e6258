"""The yardstick: Di-COT trained the plain way, as a research script would.

Eager float32, deterministic algorithms, a DataLoader, three separate convolutions with PyTorch's own replicate padding,
a host-side draw of k, `.item()` every step. Shares nothing with the library.
"""

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

SAME: Any = {"padding": "same", "padding_mode": "replicate"}
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"


class PlainModule(nn.Module):
    """Three convolutions behind a bottleneck, a max-pool branch beside them."""

    def __init__(self, width_in: int) -> None:
        super().__init__()
        self.bottleneck = nn.Conv1d(width_in, 32, 1, **SAME)
        self.branches = nn.ModuleList(nn.Conv1d(32, 64, kernel, **SAME) for kernel in (10, 20, 40))
        self.pool = nn.MaxPool1d(3, stride=1, padding=1)
        self.pool_conv = nn.Conv1d(width_in, 64, 1, **SAME)
        self.norm = nn.BatchNorm1d(256)

    def forward(self, u: Tensor) -> Tensor:
        v = self.bottleneck(u)
        joined = torch.cat([branch(v) for branch in self.branches] + [self.pool_conv(self.pool(u))], dim=1)
        return torch.relu(self.norm(joined))


class PlainBlock(nn.Module):
    """Three modules and the residual around them."""

    def __init__(self, width_in: int) -> None:
        super().__init__()
        self.path = nn.Sequential(PlainModule(width_in), PlainModule(256), PlainModule(256))
        self.skip = nn.Sequential(nn.Conv1d(width_in, 256, 1, **SAME), nn.BatchNorm1d(256))

    def forward(self, v: Tensor) -> Tensor:
        return torch.relu(self.path(v) + self.skip(v))


class PlainEncoder(nn.Module):
    """The paper's backbone, pooled over time."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.project = nn.Linear(n_channels, 128)
        self.blocks = nn.Sequential(PlainBlock(128), PlainBlock(256))

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, 256)
        y: Tensor = self.blocks(self.project(x.float()).transpose(1, 2)).mean(dim=-1)
        return y


def plain_loss(encoder: nn.Module, x: Tensor, k: int, overlap: float = 0.5, temperature: float = 0.07) -> Tensor:
    """Compute Di-COT's loss of a batch (B, T, C) cut into k sub-blocks."""
    n_cases, n_times, n_channels = x.shape
    size = int(round(n_times / (1 + (k - 1) * (1 - overlap)) / 2) * 2)
    stride = round(size * (1 - overlap))
    count = (n_times - size) // stride + 1
    blocks = torch.stack([x[:, j * stride : j * stride + size] for j in range(count)], dim=1)
    z = encoder(blocks.reshape(-1, size, n_channels)).reshape(n_cases, count, -1)
    logits = torch.einsum("bjf,bpf->bjp", z, z) / temperature
    target = (torch.arange(count, device=x.device) - 1).clamp(min=0).repeat(n_cases)
    return F.cross_entropy(logits.reshape(n_cases * count, count), target)


@contextmanager
def plain_settings(seed: int = 0) -> Iterator[None]:
    """Set torch up as a research script does; everything is put back afterwards, the random state too.

    Nothing is said about TF32: the script takes torch's own default.
    """
    cudnn = torch.backends.cudnn
    flags = cudnn.deterministic, cudnn.benchmark
    algorithms = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    workspace = os.environ.get(WORKSPACE)
    running = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = [torch.cuda.current_device()] if running else []
    with torch.random.fork_rng(devices), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deterministic.*", category=UserWarning)
        try:
            os.environ.setdefault(WORKSPACE, ":4096:8")
            cudnn.deterministic, cudnn.benchmark = True, False
            torch.use_deterministic_algorithms(True, warn_only=True)
            torch.manual_seed(seed)
            yield
        finally:
            torch.use_deterministic_algorithms(algorithms[0], warn_only=algorithms[1])
            cudnn.deterministic, cudnn.benchmark = flags
            if workspace is None:
                os.environ.pop(WORKSPACE, None)


def plain_seconds(data: np.ndarray, batch: int, counts: Sequence[int], device: str, seed: int = 0) -> list[float]:
    """Time each training step on data (N, C, T), one step for each of the sub-block counts."""
    with plain_settings(seed):
        encoder = PlainEncoder(data.shape[1]).to(device).train()
        optimiser = torch.optim.AdamW(encoder.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=3e-4)
        cases = torch.from_numpy(data.transpose(0, 2, 1).copy())
        set_ = TensorDataset(cases, torch.zeros(len(cases)))
        loader = DataLoader(set_, batch_size=batch, shuffle=True, drop_last=True)
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
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            loss.item()
            seconds.append(time.perf_counter() - started)
    return seconds
