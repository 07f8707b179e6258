"""What a vector holds beside the pooled features, as a graph: bank, contests, compression; and its classes.

Convolutions are exact, as in `embedding.counting`: a comparison is decided alike, however close it is.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from torch import Tensor

from dicot.data.cases import Array
from dicot.model.composition import Composition
from dicot.model.export.graph import Graph, double, whole
from dicot.model.heads import SMALLEST, SPREADINGS, Head
from dicot.model.kernels import N_KERNELS, N_TAPS, NOTHING, PER_GROUP, REACH, ROOM, WIDEST, Bank, Contests


def composed(graph: Graph, x: str, composition: Composition, pool: Callable[[str], str]) -> str:
    """Return the vectors (B, F) of prepared windows (B, C, T); `pool` gives the encoder's pooled features."""
    parts = [pool(x)]
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


def probabilities(graph: Graph, vectors: str, head: Head) -> str:
    """Return (B, K) in float32 of embeddings (B, F)."""
    exact = graph.cast(vectors, "DOUBLE")
    scaled = graph.add("Mul", graph.add("Sub", exact, head.mean), head.factor)
    scores = graph.add("Add", graph.add("MatMul", scaled, head.coef.T), head.intercept)
    if (neighbours := head.neighbours) is not None:
        own = scaled if neighbours.directions is None else graph.add("MatMul", scaled, neighbours.directions)
        products = graph.add("MatMul", own, -2 * neighbours.places.T)
        distances = graph.add("Add", products, (neighbours.places**2).sum(axis=1))
        count = np.array([neighbours.count], np.int64)
        _, near = graph.split("TopK", distances, count, outputs=2, largest=0)
        found = graph.over("ReduceMean", graph.add("Gather", neighbours.settled, near), 1)  # of (B, k, K)
        reach, weight = SPREADINGS[neighbours.spreading]
        guesses = graph.add("Mul", graph.add("Softmax", scores, axis=1), double((1 - reach) * weight))
        together = graph.add("Add", guesses, graph.add("Mul", found, double(reach)))
        scores = graph.add("Log", graph.add("Max", together, double(SMALLEST)))
    tempered = graph.add("Div", scores, double(head.temperature))
    return graph.cast(graph.add("Softmax", tempered, axis=1), "FLOAT")


def _bank(graph: Graph, x: str, bank: Bank) -> str:
    """Return the shares of time steps at which convolutions exceed their biases, (B, n_features)."""
    taps = np.broadcast_to(_numbers(bank.taps), (len(bank.dilations), N_KERNELS, N_TAPS))
    y = _convolved(graph, _on_grid(graph, x), taps, _numbers(bank.channels), bank.dilations)  # (B, D, 84, T)
    # Every other kernel counts only where it does not reach beyond the case, unless it always does: see `bank._shares`.
    n_times, reach = graph.length(x), REACH * np.array(bank.dilations, np.int64)[:, None, None, None]
    odd = (np.arange(len(bank.dilations))[:, None] + np.arange(2)) % 2
    edges = graph.add("Where", graph.add("Greater", n_times, 2 * reach), reach * odd[:, None, :, None], whole(0))
    stops = graph.add("Sub", n_times, edges)  # (D, 1, 2, 1)
    time = _time(graph, x)
    inside = graph.add("And", graph.add("GreaterOrEqual", time, edges), graph.add("Less", time, stops))
    y = graph.add("Reshape", y, whole(0, 0, N_KERNELS // 2, 2, -1))
    y = graph.add("Add", y, graph.add("Where", inside, double(0), double(-np.inf)))  # exceeds nothing outside
    # Each dilation as often as it has biases.
    owners = np.repeat(np.arange(len(bank.dilations)), bank.counts)
    biases = _numbers(bank.biases).T.reshape(-1, N_KERNELS // 2, 2, 1).astype(np.float64)
    above = graph.add("Greater", graph.add("Gather", y, owners, axis=1), biases)
    counts = graph.over("ReduceSum", graph.cast(above, "FLOAT"), 4)  # (B, n, 42, 2)
    lengths = graph.cast(graph.add("Gather", graph.add("Sub", stops, edges), owners, axis=0), "FLOAT")  # (n, 1, 2, 1)
    return graph.add("Flatten", graph.add("Div", counts, graph.add("Squeeze", lengths, whole(3))))


def _contests(graph: Graph, x: str, contests: Contests) -> str:
    """Return by how much kernels win, and how often they come last, (B, n_features)."""
    both = (x, graph.add("Sub", graph.cut(x, 1, 2**62), graph.cut(x, 0, -1)))
    outcomes: list[str] = []
    for series, values in enumerate(_on_grid(graph, series) for series in both):
        largest = graph.over("ReduceMax", graph.add("Abs", values), 2, keep=True)
        nothing = graph.add("Mul", graph.over("ReduceSum", largest, 1, keep=True), double(NOTHING))  # (B, 1, 1)
        taps = _numbers(contests.taps[:, series].flatten(1, 2))  # (D, 8 G, 9)
        mixed = np.repeat(_numbers(contests.channels[:, series]), PER_GROUP, axis=1)  # (D, 8 G, C)
        y = _convolved(graph, values, taps, mixed, contests.dilations)
        n_groups = taps.shape[0] * taps.shape[1] // PER_GROUP
        y = graph.add("Reshape", y, whole(0, n_groups, PER_GROUP, -1))  # (B, D G, 8, T)
        outcomes += [graph.add("Reshape", part, whole(0, *taps.shape[:2])) for part in _outcomes(graph, y, nothing)]
    together = graph.add("Flatten", graph.add("Concat", *outcomes, axis=2))  # of (B, D, 4 x 8 G)
    return graph.add("Sqrt", graph.cast(graph.add("Max", together, double(0)), "FLOAT"))


def _outcomes(graph: Graph, y: str, nothing: str) -> tuple[str, str]:
    """Return by how much each kernel of y (B, G, 8, T) wins, and how often it comes last, (B, G, 8) each."""
    best, worst = (graph.over(op, y, 2) for op in ("ReduceMax", "ReduceMin"))  # (B, G, T)
    nobody = [graph.add("LessOrEqual", graph.add("Abs", end), nothing) for end in (best, worst)]
    best = graph.add("Unsqueeze", graph.add("Where", nobody[0], double(0), best), whole(2))
    worst = graph.add("Unsqueeze", graph.add("Where", nobody[1], double(np.nan), worst), whole(2))  # equal to nothing
    wins, losses = (graph.cast(graph.add("Equal", y, end), "DOUBLE") for end in (best, worst))
    return graph.over("ReduceMean", graph.add("Mul", wins, best), 3), graph.over("ReduceMean", losses, 3)


def _convolved(graph: Graph, x: str, taps: Array, channels: Array, dilations: Sequence[int]) -> str:
    """Convolve (B, C, T) -> (B, D, K, T) with kernels (D, K, 9) over channels (D, K, C), all in float64.

    All dilations at once: one window is a small thing, and a graph of many nodes takes longer than their arithmetic.
    """
    n_channels = channels.shape[2]
    taps, channels = taps.astype(np.float64), channels.astype(np.float64)
    if n_channels > WIDEST:
        return graph.add("Concat", *_one_by_one(graph, x, taps, channels, dilations), axis=1)
    furthest = REACH * max(dilations)
    offsets = furthest + np.array(dilations, np.int64)[:, None] * (np.arange(N_TAPS) - REACH)  # (D, 9)
    time = graph.add("Unsqueeze", _time(graph, x), whole(1))
    places = graph.add("Add", offsets[:, None], time)  # (D, T, 9)
    steps = graph.add("Transpose", graph.pad(x, furthest, furthest), perm=[0, 2, 1])
    windows = graph.add(
        "Gather", steps, places, axis=1
    )  # (B, D, T, 9, C): all channels of a time step are copied at once
    windows = graph.add("Reshape", windows, whole(0, len(dilations), -1, N_TAPS * n_channels))
    windows = graph.add("Transpose", windows, perm=[0, 1, 3, 2])  # onnxruntime makes it a part of the product
    return graph.add("MatMul", (taps[..., None] * channels[:, :, None]).reshape(*taps.shape[:2], -1), windows)


def _one_by_one(graph: Graph, x: str, taps: Array, channels: Array, dilations: Sequence[int]) -> Iterator[str]:
    """Add up channels first, then taps: onnxruntime has no Conv of float64."""
    time, furthest = graph.add("Unsqueeze", _time(graph, x), whole(1)), REACH * max(dilations)
    steps = graph.add("Transpose", graph.pad(x, furthest, furthest), perm=[0, 2, 1])
    for own, mixed, dilation in zip(taps, channels, dilations, strict=True):
        places = graph.add("Add", time, furthest + dilation * (np.arange(N_TAPS) - REACH))  # (T, 9)
        windows = graph.add("Gather", graph.add("MatMul", steps, mixed.T), places, axis=1)  # (B, T, 9, K)
        y = graph.over("ReduceSum", graph.add("Mul", windows, own.T), 2)
        yield graph.add("Unsqueeze", graph.add("Transpose", y, perm=[0, 2, 1]), whole(1))


def _on_grid(graph: Graph, x: str) -> str:
    """Return what `convolution.on_grid` does."""
    x = graph.cast(x, "DOUBLE")
    largest = graph.over("ReduceMax", graph.over("ReduceMax", graph.add("Abs", x), 2, keep=True), 1, keep=True)
    room = graph.add("Mul", largest, double(ROOM))
    return graph.add("Sub", graph.add("Add", x, room), room)


def _time(graph: Graph, x: str) -> str:
    """Return 0, 1, 2 ... for the time steps of x."""
    return graph.add("Range", np.array(0, np.int64), graph.number(graph.length(x)), np.array(1, np.int64))


def _numbers(values: Tensor) -> Array:
    return values.detach().cpu().numpy().astype(np.float32)
