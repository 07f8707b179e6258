"""What training computes beside matrix products, on (T, B, C): BatchNorm with ReLU, and pooling over time."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import BatchNorm1d


def norm_relu(
    branches: Sequence[Tensor],
    norm: BatchNorm1d,
    bias: Tensor,
    *,
    added: Tensor | None = None,
    length: Tensor | None = None,
) -> Tensor:
    """Compute relu(BatchNorm(x + bias) + added) of the branches x (T, B, C), side by side.

    BatchNorm takes a bias in front of it out again. So only the running mean sees it, and its gradient is zero.
    """
    assert norm.running_mean is not None and norm.num_batches_tracked is not None
    gpu = kernels_for(branches[0])
    if "forward" in vars(norm):
        # Several processes share the batch, and the layer's own function takes its statistics over all of it.
        normed = _by_the_layer(side_by_side(branches), norm) + 0 * bias
        y = torch.relu(normed if added is None else normed + added)
    elif gpu is not None and length is None:
        norm.num_batches_tracked.add_(1)
        y = gpu.norm_relu(branches, norm, norm.bias + 0 * bias, added, _momentum(norm))
    else:
        norm.num_batches_tracked.add_(1)
        normed = _norm(side_by_side(branches), norm, norm.bias + 0 * bias, length)
        y = torch.relu(normed if added is None else normed + added)
    # By `data`, because autograd holds the running mean for the backward pass, which does not read it.
    norm.running_mean.data.add_(bias.data, alpha=_momentum(norm))
    return y


def _by_the_layer(x: Tensor, norm: BatchNorm1d) -> Tensor:
    """Call the layer with x (T, B, C) as one case of all time steps."""
    y: Tensor = norm(x.view(1, -1, x.shape[2]).transpose(1, 2))
    return y.transpose(1, 2).view_as(x)


def side_by_side(branches: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(branches), dim=2) if len(branches) > 1 else branches[0]


def kernels_for(like: Tensor) -> Any:
    """Return the module with kernels for tensors like this one, or None."""
    if not like.is_cuda or like.dtype != torch.float32:
        return None
    try:
        from dicot.nets.encoders.inception import gpu
    except ImportError:  # PyTorch for Windows comes without Triton
        return None
    return gpu


def _momentum(norm: BatchNorm1d) -> float:
    """Return the share of this batch in the running statistics; without a momentum they are plain averages."""
    if norm.momentum is not None:
        return norm.momentum
    assert norm.num_batches_tracked is not None
    return 1 / float(norm.num_batches_tracked)


def _norm(x: Tensor, norm: BatchNorm1d, shift: Tensor, length: Tensor | None) -> Tensor:
    """Compute BatchNorm of x (T, B, C)."""
    if length is not None:
        return _norm_of_beginning(x, norm, shift, length)
    # As an image (1, C, T B, 1) with channels stored last, for which BatchNorm is fast.
    image = x.view(1, -1, 1, x.shape[2]).permute(0, 3, 1, 2)
    y = F.batch_norm(
        image,
        norm.running_mean,
        norm.running_var,
        norm.weight,
        shift,
        training=True,
        momentum=_momentum(norm),
        eps=norm.eps,
    )
    return y.permute(0, 2, 3, 1).view_as(x)


def _norm_of_beginning(x: Tensor, norm: BatchNorm1d, shift: Tensor, length: Tensor) -> Tensor:
    """Compute BatchNorm of the first `length` time steps of x (T, B, C), a number that only the device knows.

    A CUDA graph has fixed shapes, so cases of changing length lie at the beginning of a tensor of fixed length there.
    Behind its end a case repeats its last time step, as the padding of a convolution does: then every time step reads
    what it reads in a tensor of the case's own length. Nothing waits for the device, and sums are taken in a fixed
    order.
    """
    assert norm.running_mean is not None and norm.running_var is not None
    time = torch.arange(len(x), device=x.device).view(-1, 1, 1)
    is_inside = time < length
    count = (length * x.shape[1]).to(x.dtype)
    share = is_inside.to(x.dtype) / count  # of a row in a mean

    mean = (x * share).sum(dim=(0, 1))
    centred = x - mean
    variance = (centred.square() * share).sum(dim=(0, 1))
    momentum = _momentum(norm)
    with torch.no_grad():
        norm.running_mean.lerp_(mean, momentum)
        norm.running_var.lerp_(variance * count / (count - 1).clamp(min=1), momentum)

    y = centred * (norm.weight * (variance + norm.eps).rsqrt()) + shift
    last = (y * (time == length - 1)).sum(dim=0)
    return torch.where(is_inside, y, last)


def largest_of_three(u: Tensor) -> Tensor:
    """Return the largest of three neighbouring time steps of (T, B, C)."""
    if (gpu := kernels_for(u)) is not None:
        pooled: Tensor = gpu.LargestOfThree.apply(u)
        return pooled
    image = u.unsqueeze(0).permute(0, 3, 1, 2)  # (1, C, T, B), channels stored last
    largest = F.max_pool2d(image, (3, 1), stride=1, padding=(1, 0))
    return largest.permute(0, 2, 3, 1).squeeze(0)
