"""The reference for what is fast: any method trained the plain way, through the encoder's definition.

It has the seed, batches, plans and learning rates of `pretrain` and shares only the draws with it: eager autograd, a
DataLoader on the host, the optimiser as PyTorch makes it, `.item()` every step.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from dicot.core.device import resolve_device
from dicot.data import Windows
from dicot.methods import Batch, Method
from dicot.nets.encoders import Encoder, InceptionTime
from dicot.train import Recipe, lr_at
from dicot.train.batches import epoch_order, plan_generator, seed_prepare, seed_step


class Definition(Encoder):
    """InceptionTime as its modules define it, by autograd in training too; the same seed gives the same weights."""

    def __init__(self, n_channels: int, dim: int = 256) -> None:
        super().__init__(n_channels, dim)
        self.network = InceptionTime(n_channels, dim)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        self.check_shape(x.shape)
        v = self.network.input(x)
        if keep is not None:
            v = v * keep.unsqueeze(1)
        features: Tensor = self.network.block1(self.network.block0(v))
        return features


def plain_pretrain(
    method: Method,
    train: Windows,
    recipe: Recipe,
    *,
    seed: int,
    device: str | torch.device,
    steps: int | None = None,
    on_step: Callable[[int], None] | None = None,
) -> tuple[list[float], list[float]]:
    """Return losses and seconds of the first `steps` steps (default: all); always in float32.

    The caller's random state is left as it was; its settings of deterministic algorithms and TF32 are in force.
    """
    device = resolve_device(device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        seed_prepare(seed)
        method.to(device, torch.float32).prepare(train)
        method.to(device, torch.float32).train()
        result = _train(method, train, recipe, seed, device, recipe.steps if steps is None else steps, on_step)
    method.eval()
    return result


def _train(
    method: Method,
    train: Windows,
    recipe: Recipe,
    seed: int,
    device: torch.device,
    steps: int,
    on_step: Callable[[int], None] | None,
) -> tuple[list[float], list[float]]:
    batch_size = min(recipe.batch_size, len(train))
    per_epoch = len(train) // batch_size
    optimiser = torch.optim.AdamW(
        method.param_groups(), lr=recipe.lr, betas=recipe.betas, weight_decay=recipe.weight_decay
    )
    batches = _batches(train, batch_size, seed)
    losses: list[float] = []
    seconds: list[float] = []
    for step in range(steps):
        started = time.perf_counter()
        x, index, y = (part.to(device) for part in next(batches))
        batch = Batch(x, index, y if method.needs_labels else None)
        plan = method.plan(tuple(x.shape), plan_generator(seed, step))  # type: ignore[arg-type]
        for group in optimiser.param_groups:
            group["lr"] = lr_at(step, recipe, per_epoch)
        seed_step(seed, step, device)
        loss = method.loss(batch, plan)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        method.after_step(batch, (step + 1) / recipe.steps)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - started)
        if on_step:
            on_step(step + 1)
    return losses, seconds


def _batches(train: Windows, batch_size: int, seed: int) -> Iterator[list[Tensor]]:
    """Yield (x, rows, class numbers) in the order of `pretrain`, one DataLoader per epoch."""
    labels = np.zeros(len(train), np.int64) if train.y is None else np.unique(train.y, return_inverse=True)[1]
    x = torch.as_tensor(train.x, dtype=torch.float32)
    data = TensorDataset(x, torch.arange(len(train)), torch.from_numpy(labels))
    epoch = 0
    while True:
        order = epoch_order(seed, epoch, len(train)).tolist()
        yield from DataLoader(data, batch_size=batch_size, sampler=order, drop_last=True)
        epoch += 1
