"""The fully convolutional ablation backbone: three convolutions, no input projection."""

from collections import deque
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from dicot.nets.encoders.base import Encoder
from dicot.nets.encoders.padding import at_least_five, same_conv

KERNELS = (8, 5, 3)


class FCN(Encoder):
    """Convolution, BatchNorm, ReLU three times: C -> 128 -> 256 -> F with kernels 8, 5, 3."""

    def __init__(self, n_channels: int, dim: int = 256) -> None:
        super().__init__(n_channels, dim)
        widths = (n_channels, 128, 256, dim)
        self.convs = nn.ModuleList(
            nn.Conv1d(a, b, kernel) for a, b, kernel in zip(widths, widths[1:], KERNELS, strict=False)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:])

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        self.check_shape(x.shape)
        # There is no input projection here, so `keep` blanks the input itself.
        return deque(self._layers(x if keep is None else x * keep.unsqueeze(1)), maxlen=1).pop()

    def features(self, x: Tensor) -> dict[str, Tensor]:
        self.check_shape(x.shape)
        return {f"layer{number}": features for number, features in enumerate(self._layers(x))}

    def stages(self) -> list[list[nn.Parameter]]:
        """Return each convolution with its BatchNorm."""
        pairs = zip(self.convs, self.norms, strict=True)
        return [[*conv.parameters(), *norm.parameters()] for conv, norm in pairs]

    def _layers(self, x: Tensor) -> Iterator[Tensor]:
        v, inner = at_least_five(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            v = torch.relu(norm(same_conv(conv, v)))  # type: ignore[arg-type]
            yield v[..., inner]
