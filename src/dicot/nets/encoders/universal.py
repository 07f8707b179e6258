"""Universal: one encoder for every kind of series. Each channel goes through the same small network by itself."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.core.native import NativeLibrary
from dicot.nets.encoders.base import Encoder, FrozenNetwork, as_number, folded, home_of, is_exporting, smaller

C = NativeLibrary("nets/encoders/universal.c")
TILE = 48  # channels of a tile there, on any processor
POINTS = (256, 512)  # that a channel is brought to: the first that are not fewer than its time steps, or else the last
STRETCHES = 4  # of a case with more time steps than that
STEM, STRIDE = 25, 8  # taps and step of the first convolution
KERNELS = (5, 5, 3)  # taps of the residual block of each stage
BESIDE = 6  # channels up to which their vectors stand side by side; of more, mean and deviation are kept
ANY = 0  # as a number of channels: whatever comes
NO_SPREAD = 1e-6  # deviation relative to the largest value that counts as none
NO_CHANGE = 1e-3  # the same for differences, which rounding makes of a straight line
FAINT, LIFT = 2.0**-40, 2.0**80  # values below the one are multiplied by the other, or their squares would be 0
FLOOR = 1e-5  # under a root, so that its gradient stays finite

Layer = Callable[[Tensor], Tensor]


class Universal(Encoder):
    """Map each channel, whatever its length, rate and unit, to features by the same weights.

    A channel is brought to 256 or 512 points and z-scored by itself; its first difference is a second input. A stem of
    stride 8 and three stages follow, a residual block each, with half as many points from stage to stage. `embed` pools
    every stage by mean, maximum and deviation over time and joins the channels (see `join_channels`). A case of more
    than 512 time steps is looked at as a whole and, for its details, in four stretches of 512 as they are: the vector
    is the mean of both. `forward` gives the last stage of the whole, averaged over channels and stretched to the time
    steps of the input.

    With n_channels=0 it takes any number of them, and its vectors always have the same length.
    """

    fewest_channels = ANY
    needs_levels = False  # every channel is z-scored

    def __init__(self, n_channels: int, dim: int = 192) -> None:
        super().__init__(n_channels, dim)
        self.widths = first, second, third = max(1, dim // 4), max(1, dim // 2), dim
        own = [_same(width, kernel) for width, kernel in zip(self.widths, KERNELS, strict=True) for _ in range(2)]
        stem = nn.Conv1d(2, first, STEM, STRIDE, STEM // 2, bias=False)
        convs = [stem, *own[:2], _half(first, second), *own[2:4], _half(second, third), *own[4:]]
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(conv.out_channels) for conv in convs)

    @property
    def embed_dim(self) -> int:
        return joined_dim(self.n_channels, 3 * sum(self.widths))

    def pass_width(self, n_channels: int) -> int:
        return max(self.dim // 4, self.dim * n_channels // 16)  # the stem: dim / 4 at an eighth of twice the time steps

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        return list(self.features(x if keep is None else x * keep.unsqueeze(1)).values())[-1]

    def features(self, x: Tensor) -> dict[str, Tensor]:
        self.check_shape(x.shape)
        inputs = looks_at(x, only_whole=True).inputs if is_exporting() else channel_inputs(x)
        features = {}
        for number, h in enumerate(_stages(inputs, self._layers())):
            mean = h.reshape(*x.shape[:2], *h.shape[1:]).mean(dim=1)  # over channels
            features[f"stage{number}"] = mean @ _stretching(h.shape[2], x.shape[2], mean)
        return features

    def embed(self, x: Tensor) -> Tensor:
        """Compute (B, C, T) -> (B, embed_dim) in the mode the module is in."""
        self.check_shape(x.shape)
        if is_exporting():
            return self._vectors_without_branches(x)
        return self._vectors(x, partial(_pooled, layers=self._layers()))

    def frozen_embed(self, n_times: int, dtype: torch.dtype | None = None) -> FrozenNetwork:
        """Return `embed` with each BatchNorm folded into the convolution in front of it; on a CPU float32 goes by C."""
        pool: Layer
        if not self.is_plain() and home_of(self) == (torch.device("cpu"), torch.float32) and C.library is not None:
            pool = _Compiled(self)
        else:
            layers = self._layers() if self.is_plain() else [_folded(*pair) for pair in self._pairs()]
            pool = partial(_pooled, layers=layers)

        def compute(x: Tensor) -> Tensor:
            self.check_shape(x.shape)
            if dtype is None:
                return self._vectors(x, pool)
            with torch.autocast(x.device.type, dtype):
                return self._vectors(x, pool)

        return compute

    def stages(self) -> list[list[nn.Parameter]]:
        return [[*conv.parameters(), *norm.parameters()] for conv, norm in self._pairs()]

    def check_shape(self, shape: Sequence[int]) -> None:
        if self.n_channels != ANY or len(shape) != 3:
            super().check_shape(shape)

    def _vectors(self, x: Tensor, pool: Layer) -> Tensor:
        found = pool(x)
        if x.shape[2] > POINTS[-1]:
            close = pool(torch.cat([x[..., part] for part in stretches(x.shape[2])]))
            found = (found + close.reshape(STRETCHES, *found.shape).mean(dim=0)) / 2
        return join_channels(found.reshape(*x.shape[:2], -1), self.n_channels)

    def _vectors_without_branches(self, x: Tensor) -> Tensor:
        """Return the same for an exported graph, in which the number of time steps decides nothing beforehand."""
        looks = looks_at(x)
        vectors = _pooled_stages(looks.inputs, self._layers())
        vectors = vectors.reshape(*x.shape[:2], looks.shares.shape[0], -1)
        return join_channels((vectors * looks.shares.unsqueeze(1)).sum(dim=2), self.n_channels)

    def _pairs(self) -> Iterable[tuple[nn.Conv1d, nn.BatchNorm1d]]:
        return zip(self.convs, self.norms, strict=True)  # type: ignore[arg-type]

    def _layers(self) -> list[Layer]:
        return [lambda h, conv=conv, norm=norm: norm(conv(h)) for conv, norm in self._pairs()]  # type: ignore[misc]


def _same(width: int, kernel: int) -> nn.Conv1d:
    return nn.Conv1d(width, width, kernel, padding=kernel // 2, bias=False)


def _half(width_in: int, width_out: int) -> nn.Conv1d:
    return nn.Conv1d(width_in, width_out, 3, 2, 1, bias=False)


def _folded(conv: nn.Conv1d, norm: nn.BatchNorm1d) -> Layer:
    weight, bias = folded(conv, norm)
    return partial(F.conv1d, weight=weight, bias=bias, stride=conv.stride, padding=conv.padding)


def stretches(n_times: int) -> list[slice]:
    """Return where the stretches of a long case lie: from its first time steps to its last, as evenly as possible."""
    starts = [number * (n_times - POINTS[-1]) // (STRETCHES - 1) for number in range(STRETCHES)]
    return [slice(start, start + POINTS[-1]) for start in starts]


def _pooled(x: Tensor, layers: Sequence[Layer]) -> Tensor:
    """Compute (B, C, T) -> (B C, n): mean, maximum and deviation over time of every stage."""
    return _pooled_stages(channel_inputs(x), layers)


def _pooled_stages(inputs: Tensor, layers: Sequence[Layer]) -> Tensor:
    parts: list[Tensor] = []
    for h in _stages(inputs, layers):
        parts += [h.mean(2), h.amax(2), (h.var(2, False) + FLOOR).sqrt()]
    return torch.cat(parts, dim=1)


class _Compiled:
    """The same in C, with weights laid out in tiles. A channel's numbers do not depend on its company."""

    def __init__(self, encoder: Universal) -> None:
        self.n = 3 * sum(encoder.widths)
        self.weights = torch.cat([_tiles(*folded(*pair)) for pair in encoder._pairs()])
        self.widths = torch.tensor(encoder.widths)
        self.padded = self.widths + -self.widths % TILE
        self.constants = torch.tensor([NO_SPREAD, NO_CHANGE, FLOOR, FAINT, LIFT])

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.contiguous().flatten(0, 1)  # (B C, T)
        n_times = rows.shape[1]
        out = x.new_empty(len(rows), self.n)
        C.call(
            "vectors",
            rows,
            out,
            n_times,
            points_of(n_times),
            self.weights,
            self.widths,
            self.padded,
            self.constants,
        )
        return out


def _tiles(weight: Tensor, bias: Tensor) -> Tensor:
    """Lay out the weight (O, I, taps) and bias of a convolution as the C function reads them, with zeros at the end."""
    n_out, n_in, taps = weight.shape
    beyond = -n_out % TILE
    whole = F.pad(weight, (0, 0, 0, 0 if taps == STEM else -n_in % TILE, 0, beyond))
    rows = torch.cat([F.pad(bias, (0, beyond)).unsqueeze(0), whole.permute(2, 1, 0).flatten(0, 1)])
    return rows.view(len(rows), -1, TILE).transpose(0, 1).flatten()


def _stages(inputs: Tensor, layers: Iterable[Layer]) -> list[Tensor]:
    """Return what each stage gives for every channel as a case of its own, (B C, width, points)."""
    found, following = [], iter(layers)
    h = torch.relu(next(following)(inputs))
    for number in range(len(KERNELS)):
        if number:
            h = torch.relu(next(following)(h))
        first, second = next(following), next(following)
        h = torch.relu(h + second(torch.relu(first(h))))
        found.append(h)
    return found


def points_of(n_times: int) -> int:
    """Return how many points a channel of so many time steps is brought to."""
    return next((points for points in POINTS if points >= n_times), POINTS[-1])


def channel_inputs(x: Tensor) -> Tensor:
    """Turn cases (B, C, T) into the network's input (B C, 2, points): each channel and its difference, z-scored."""
    points = points_of(x.shape[2])
    values = x.flatten(0, 1).unsqueeze(1)
    values = values * lifts(values)
    series = values - values[..., :1]  # else a level far from 0 would be rounded with its small changes
    if x.shape[2] != points:
        series = F.interpolate(series, points, mode="linear", align_corners=True)
    return _with_change(_z_scored(series, NO_SPREAD * _largest(values)))


def _with_change(series: Tensor) -> Tensor:
    """Put the first difference, z-scored too, beside series (..., 1, points)."""
    change = series[..., 1:] - series[..., :-1]
    change = torch.cat([change[..., :1], change], dim=2)
    return torch.cat([series, _z_scored(change, NO_CHANGE * _largest(change))], dim=1)


class Looks(NamedTuple):
    """A channel looked at as a whole and, where it is long, in stretches as they are: V looks."""

    inputs: Tensor  # (B C V, 2, points), as `channel_inputs` makes them
    shares: Tensor  # (V,), how much each look counts in a vector


def looks_at(x: Tensor, *, only_whole: bool = False) -> Looks:
    """Look at the channels of cases (B, C, T) without a branch that T decides, for a graph that takes any T."""
    n_times, most = x.shape[2], POINTS[-1]
    # Formulas instead of branches: 256 points up to 256 time steps, else 512; stretches beyond 512 time steps.
    points = POINTS[0] * smaller(2, (n_times + POINTS[0] - 1) // POINTS[0])
    n_stretches = 0 if only_whole else STRETCHES * smaller(1, (n_times - 1) // most)

    steps = torch.arange(points)
    last = as_number(n_times - 1)
    places = (steps.double() * (last.double() / (points - 1))).unsqueeze(0)
    if not only_whole:
        starts = torch.arange(n_stretches) * (last + 1 - most).clamp(min=0) // (STRETCHES - 1)
        places = torch.cat([places, (starts.unsqueeze(1) + steps).double()])
    left = places.floor().long()  # (V, points)
    right = torch.minimum(left + 1, last)
    between = (places - left.double()).to(x.dtype)

    # Else a level far from 0 would be rounded with its small changes.
    series = x - x[..., :1]
    low, high = _at(series, left), _at(series, right)
    series = low + (high - low) * between  # (B, C, V, points)
    is_whole = torch.arange(places.shape[0]) == 0
    seen = _at(x.abs(), left).amax(dim=3)
    largest = torch.where(is_whole, torch.maximum(seen, _largest(x)), seen)  # (B, C, V)

    series = series.reshape(-1, 1, points)
    largest = largest.reshape(-1, 1, 1)
    lift = torch.where(largest < FAINT, LIFT, 1.0).to(x.dtype)
    series = _z_scored(series * lift, NO_SPREAD * (largest * lift))
    is_long = (last >= most).to(x.dtype)
    return Looks(_with_change(series), torch.where(is_whole, 1 - 0.5 * is_long, 0.5 / STRETCHES))


def _at(x: Tensor, places: Tensor) -> Tensor:
    """Read (B, C, T) at places (V, points), -> (B, C, V, points)."""
    return x.index_select(2, places.flatten()).unflatten(2, places.shape)  # type: ignore[no-untyped-call, no-any-return]


def lifts(x: Tensor) -> Tensor:
    """Return the factor (..., 1) that makes each row large enough for squares, a power of two that rounds nothing."""
    return torch.where(_largest(x) < FAINT, LIFT, 1.0).to(x.dtype)


def _largest(x: Tensor) -> Tensor:
    return x.abs().amax(dim=-1, keepdim=True)


def _z_scored(x: Tensor, least: Tensor) -> Tensor:
    """Give each row mean 0 and deviation 1; one whose deviation is not above `least` becomes 0."""
    centred = x - x.mean(dim=-1, keepdim=True)
    deviation = centred.square().mean(dim=-1, keepdim=True).sqrt()
    return torch.where(deviation > least, centred / deviation, 0.0)


def join_channels(x: Tensor, n_channels: int, floor: float = FLOOR) -> Tensor:
    """Join what was found for each channel, (B, C, n) -> (B, joined_dim).

    A few channels stand side by side. Of many, or of any number, mean and deviation over the channels are kept, the
    latter with `floor` under its root.
    """
    if 1 <= n_channels <= BESIDE:
        return x.flatten(1)
    mean = x.mean(dim=1, keepdim=True)
    # Not x.var(dim=1): over a few channels that lie apart in memory it takes ten to thirty times as long on a CPU.
    variance = (x - mean).square().mean(dim=1)
    return torch.cat([mean.squeeze(1), (variance + floor).sqrt()], dim=1)


def joined_dim(n_channels: int, n: int) -> int:
    """Return the length of what `join_channels` makes of n numbers for each channel."""
    return (n_channels if 1 <= n_channels <= BESIDE else 2) * n


def _stretching(before: int, after: int, like: Tensor) -> Tensor:
    """Return the matrix (before, after) that reads between points; a product has the same gradient every time."""
    if is_exporting():
        steps = torch.arange(after).to(like.dtype) / as_number(after - 1).clamp(min=1)
        places = steps * (before - 1)
    else:
        places = torch.linspace(0, before - 1, after, dtype=like.dtype, device=like.device)
    return (1 - (places - torch.arange(before, dtype=like.dtype, device=like.device).unsqueeze(1)).abs()).clamp_min(0)
