"""What a vector holds beside the pooled features, as a graph: difference, bank, contests and compression.

Convolutions are products of the same matrices as in `embedding.convolution`, in the same order of taps and channels:
so they are rounded alike, and a comparison that is close is decided alike.
"""

from collections.abc import Callable

import numpy as np
from torch import Tensor

from dicot.data.policies import Array
from dicot.embedding import Composition
from dicot.embedding.bank import N_KERNELS, Bank
from dicot.embedding.contests import NOTHING, PER_GROUP, Contests
from dicot.embedding.convolution import N_TAPS, REACH, WIDEST
from dicot.export.graph import Graph, single, whole


def composed(graph: Graph, x: str, composition: Composition, pool: Callable[[str], str]) -> str:
    """Return the vectors (B, F) of prepared windows (B, C, T); `pool` gives the encoder's pooled features."""
    parts = [pool(x)]
    if composition.difference is not None:
        factor, shift = _numbers(composition.difference)[:, :, None]
        steps = graph.add("Mul", _first_difference(graph, x), factor)
        parts.append(pool(graph.add("Add", steps, shift)))
    if composition.bank is not None or composition.contests is not None:
        missing = graph.add("Max", graph.add("Sub", whole(N_TAPS), graph.length(x)), whole(0))
        x = graph.pad(x, 0, missing)  # with zeros to 9 time steps
    if composition.bank is not None:
        parts.append(_bank(graph, x, composition.bank))
    if composition.contests is not None:
        parts.append(_contests(graph, x, composition.contests))
    z = graph.add("Concat", *parts, axis=1)
    if composition.compression is None:
        return z
    mean, weight = _numbers(composition.compression.mean), _numbers(composition.compression.weight)
    return graph.add("MatMul", graph.add("Sub", z, mean), weight)


def _first_difference(graph: Graph, x: str) -> str:
    """Return what each time step adds to the one before it; the first is given the second's, a single one 0."""
    last = graph.add("Sub", graph.length(x), whole(1))
    steps = graph.add("Range", np.array(0, np.int64), graph.number(graph.length(x)), np.array(1, np.int64))
    later = graph.add("Min", graph.add("Max", steps, whole(1)), last)
    earlier = graph.add("Max", graph.add("Sub", later, whole(1)), whole(0))
    return graph.add("Sub", *(graph.add("Gather", x, place, axis=2) for place in (later, earlier)))


def _bank(graph: Graph, x: str, bank: Bank) -> str:
    """Return the shares of time steps at which convolutions exceed their biases, (B, n_features)."""
    n_times = graph.length(x)
    features, order, first = [], [], 0
    for number, (dilation, count) in enumerate(zip(bank.dilations, bank.counts, strict=True)):
        # Kernels that count only where they do not reach beyond the case, and the others: each kind side by side.
        inner = np.arange((number + 1) % 2, N_KERNELS, 2)
        kernels = np.concatenate([np.setdiff1d(np.arange(N_KERNELS), inner), inner])
        taps, channels = _numbers(bank.taps)[kernels], _numbers(bank.channels[number])[kernels]
        y = _convolved(graph, x, taps, channels, dilation)
        halves = graph.split("Split", y, whole(N_KERNELS - len(inner), len(inner)), outputs=2, axis=1)
        margin = whole(REACH * dilation)
        shorter = graph.add("Sub", n_times, margin)
        has_inside = graph.add("Greater", shorter, margin)
        halves[1] = graph.cut(
            halves[1],
            graph.add("Where", has_inside, margin, whole(0)),
            graph.add("Where", has_inside, shorter, n_times),
        )
        biases = _numbers(bank.biases)[kernels, first : first + count].T[:, :, None]  # (count, 84, 1)
        for half, own in zip(halves, np.split(biases, [N_KERNELS - len(inner)], axis=1), strict=True):
            above = graph.add("Greater", graph.add("Unsqueeze", half, whole(1)), own)  # (B, count, 42, T)
            shares = graph.over("ReduceMean", graph.cast(above, "FLOAT"), 3)
            features.append(graph.add("Flatten", shares))
        places = (first * N_KERNELS + np.arange(count * N_KERNELS).reshape(count, N_KERNELS))[:, kernels]
        order += [half.reshape(-1) for half in np.split(places, [N_KERNELS - len(inner)], axis=1)]
        first += count
    made = graph.add("Concat", *features, axis=1)
    return graph.add("Gather", made, np.argsort(np.concatenate(order)), axis=1)


def _contests(graph: Graph, x: str, contests: Contests) -> str:
    """Return by how much kernels win, and how often they come last, (B, n_features)."""
    both = (x, graph.add("Sub", graph.cut(x, 1, 2**62), graph.cut(x, 0, -1)))
    rounding = []
    for values in both:
        largest = graph.over("ReduceMax", graph.add("Abs", values), 2, keep=True)
        rounding.append(graph.add("Mul", graph.over("ReduceSum", largest, 1, keep=True), single(NOTHING)))  # (B, 1, 1)
    features: list[str] = []
    for taps, channels, dilation in zip(contests.taps, contests.channels, contests.dilations, strict=True):
        for series, values in enumerate(both):
            mixed = np.repeat(_numbers(channels[series]), PER_GROUP, axis=0)  # (8 G, C)
            y = _convolved(graph, values, _numbers(taps[series].flatten(0, 1)), mixed, dilation)
            y = graph.add("Reshape", y, whole(0, taps.shape[1], PER_GROUP, -1))  # (B, G, 8, T)
            features += _outcomes(graph, y, rounding[series])
    return graph.add("Sqrt", graph.add("Max", graph.add("Concat", *features, axis=1), single(0)))


def _outcomes(graph: Graph, y: str, rounding: str) -> tuple[str, str]:
    """Return by how much each kernel of y (B, G, 8, T) wins, and how often it comes last, (B, 8 G) each."""
    best, worst = (graph.over(op, y, 2) for op in ("ReduceMax", "ReduceMin"))  # (B, G, T)
    nobody = [graph.add("LessOrEqual", graph.add("Abs", end), rounding) for end in (best, worst)]
    best = graph.add("Unsqueeze", graph.add("Where", nobody[0], single(0), best), whole(2))
    worst = graph.add("Unsqueeze", graph.add("Where", nobody[1], single(np.nan), worst), whole(2))  # equal to nothing
    wins, losses = (graph.cast(graph.add("Equal", y, end), "FLOAT") for end in (best, worst))
    won = graph.over("ReduceMean", graph.add("Mul", wins, best), 3)
    return graph.add("Flatten", won), graph.add("Flatten", graph.over("ReduceMean", losses, 3))


def _convolved(graph: Graph, x: str, taps: Array, channels: Array, dilation: int) -> str:
    """Convolve (B, C, T) -> (B, K, T) with kernels (K, 9) over channels (K, C), as `embedding.convolution` does."""
    margin = REACH * dilation
    if channels.shape[1] > WIDEST:
        return graph.add(
            "Conv",
            graph.add("MatMul", channels, x),
            taps[:, None],
            kernel_shape=[N_TAPS],
            dilations=[dilation],
            pads=[margin, margin],
            group=len(taps),
        )
    padded = graph.pad(x, margin, margin)
    ends = [(tap * dilation, tap * dilation - 2 * margin or 2**62) for tap in range(N_TAPS)]
    windows = graph.add("Concat", *(graph.cut(padded, *end) for end in ends), axis=1)
    weight = (taps[:, :, None] * channels[:, None]).reshape(len(taps), -1)
    return graph.add("MatMul", weight, windows)


def _numbers(values: Tensor) -> Array:
    return values.detach().cpu().numpy().astype(np.float32)
