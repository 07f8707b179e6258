"""The two ablation backbones, which have no input projection: a fully convolutional and a residual network."""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.nets.encoders.base import Encoder, is_exporting, larger, layer_outputs, repeat_edges, same_margins

KERNELS = (8, 5, 3)
DROPOUT = 0.3
FEWEST_STEPS = 5  # of a case; a shorter one is continued with zeros


def same_conv(conv: nn.Conv1d, x: Tensor) -> Tensor:
    """Apply an unpadded convolution so that (B, C, T) keeps its length; works down to T = 1."""
    y: Tensor = conv(repeat_edges(x, *same_margins(conv.kernel_size[0])))
    return y


def at_least_five(x: Tensor) -> tuple[Tensor, slice]:
    """Zero-pad (B, C, T < 5) on both sides to 5 time steps; the slice cuts features back to T."""
    n_times = x.shape[-1]
    missing = larger(0, FEWEST_STEPS - n_times)
    left = missing // 2
    inner = slice(left, left + n_times)
    if is_exporting():  # without a branch, for cases of any length
        places = torch.arange(n_times + missing) - left
        is_inside = (places >= 0) & (places < n_times)
        return torch.where(is_inside, x.index_select(-1, places.clamp(min=0, max=n_times - 1)), 0.0), inner
    return F.pad(x, (left, missing - left)) if missing else x, inner


class FCN(Encoder):
    """Convolution, BatchNorm, ReLU three times: C -> 128 -> 256 -> F with kernels 8, 5, 3."""

    def __init__(self, n_channels: int, dim: int = 256) -> None:
        super().__init__(n_channels, dim)
        widths = (n_channels, 128, 256, dim)
        pairs = zip(pairwise(widths), KERNELS, strict=True)
        self.convs = nn.ModuleList(nn.Conv1d(a, b, kernel) for (a, b), kernel in pairs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:])

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        self.check_shape(x.shape)
        # There is no input projection here, so `keep` blanks the input itself.
        return deque(self._layers(x if keep is None else x * keep.unsqueeze(1)), maxlen=1).pop()

    def features(self, x: Tensor) -> dict[str, Tensor]:
        self.check_shape(x.shape)
        return {f"layer{number}": features for number, features in enumerate(self._layers(x))}

    def stages(self) -> list[list[nn.Parameter]]:
        pairs = zip(self.convs, self.norms, strict=True)
        return [[*conv.parameters(), *norm.parameters()] for conv, norm in pairs]

    def _layers(self, x: Tensor) -> Iterator[Tensor]:
        v, inner = at_least_five(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            v = torch.relu(norm(same_conv(conv, v)))  # type: ignore[arg-type]
            yield v[..., inner]


class ResidualBlock(nn.Module):
    """Three convolutions with a shortcut around them.

    As the Di-COT authors have it: BatchNorm and dropout after each convolution, ReLU after the third only.
    `original=True` is Wang et al. (2017): ReLU after the first two, none before the sum, no dropout.
    """

    def __init__(self, width_in: int, width_out: int, original: bool) -> None:
        super().__init__()
        widths = zip((width_in, width_out, width_out), KERNELS, strict=True)
        self.convs = nn.ModuleList(nn.Conv1d(width, width_out, kernel) for width, kernel in widths)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width_out) for _ in KERNELS)
        self.drop = nn.Identity() if original else nn.Dropout(DROPOUT)
        self.shortcut = nn.Identity() if width_in == width_out else nn.Conv1d(width_in, width_out, 1)
        self.shortcut_norm = nn.BatchNorm1d(width_out)
        self.active = (True, True, False) if original else (False, False, True)

    def forward(self, v: Tensor) -> Tensor:
        y = v
        for conv, norm, active in zip(self.convs, self.norms, self.active, strict=True):
            y = self.drop(norm(same_conv(conv, y)))  # type: ignore[arg-type]
            y = torch.relu(y) if active else y
        return torch.relu(y + self.shortcut_norm(self.shortcut(v)))


class ResNet(Encoder):
    """Three residual blocks of width 64, 128 and F."""

    def __init__(self, n_channels: int, dim: int = 256, original: bool = False) -> None:
        super().__init__(n_channels, dim)
        self.original = original
        self.blocks = nn.Sequential(*(ResidualBlock(a, b, original) for a, b in pairwise((n_channels, 64, 128, dim))))

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        self.check_shape(x.shape)
        v, inner = at_least_five(x if keep is None else x * keep.unsqueeze(1))
        y: Tensor = self.blocks(v)
        return y[..., inner]

    def features(self, x: Tensor) -> dict[str, Tensor]:
        self.check_shape(x.shape)
        v, inner = at_least_five(x)
        layers = {f"blocks.{number}": block for number, block in enumerate(self.blocks)}
        return {name: output[..., inner] for name, output in layer_outputs(self.blocks, v, layers).items()}
