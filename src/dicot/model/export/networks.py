"""From prepared windows to vectors and classes as a graph: encoders, poolings, what stands beside them, compression.

ENCODER_GRAPHS and POOLED are where a new one is registered. Convolutions of the bank and the contests are exact, as in
`model.kernels`: a comparison is decided alike, however close it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.data.cases import Array
from dicot.model.export.graph import Graph, double, single, whole
from dicot.model.export.preparation import WindowValues
from dicot.model.head import SMALLEST, SPREADINGS, Head
from dicot.model.kernels import N_KERNELS, N_TAPS, NOTHING, PER_GROUP, REACH, ROOM, WIDEST, Bank, Contests
from dicot.model.vector.composition import Composition
from dicot.model.vector.levels import END, Levels
from dicot.nets.encoders import FCN, Encoder, InceptionTime, ResNet, Universal
from dicot.nets.encoders.backbones import ResidualBlock
from dicot.nets.encoders.base import folded, same_margins, scale_and_shift
from dicot.nets.encoders.inception.definition import KERNELS, InceptionBlock, InceptionModule
from dicot.nets.encoders.inception.frozen import Affine, affine
from dicot.nets.encoders.universal import BESIDE, FAINT, FLOOR, LIFT, NO_CHANGE, NO_SPREAD, POINTS, STRETCHES

Layers = dict[str, str]  # the name that `Encoder.features` gives a layer -> its value (B, F, T), the last one last
EncoderGraph = Callable[[Graph, str, Encoder], Layers]
OWN_MODULE = "A network of your own goes through torch.onnx.export, on cases that are scaled already."


def pooled(graph: Graph, x: str, encoder: Encoder, pooling: str) -> str:
    """Return the pooled features (B, F) of prepared windows (B, C, T)."""
    write = ENCODER_GRAPHS.get(type(encoder))
    if write is None:
        known = ", ".join(kind.__name__ for kind in ENCODER_GRAPHS)
        raise InputError(
            f"The encoder {encoder.describe()} cannot be exported: only {known} are written as ONNX. {OWN_MODULE}"
        )
    if not set(names := pooling.split("+")) <= POOLED.keys():
        raise InputError(f"The pooling {pooling!r} cannot be exported: only {', '.join(POOLED)} are written as ONNX.")
    if pooling == "own" and isinstance(encoder, Universal):
        return _universal_vector(graph, x, encoder)
    layers = write(graph, x, encoder)
    parts = [part for name in names for part in POOLED[name](graph, list(layers.values()))]
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _inception_time(graph: Graph, x: str, encoder: Encoder) -> Layers:
    assert isinstance(encoder, InceptionTime)
    entry = affine(encoder.input)
    layers = {"input": _mapped(graph, x, entry)}
    # As in `FrozenInception`: the linear maps behind the input projection read the input itself where that is narrower.
    joint = encoder.n_channels < len(entry.bias)
    layers |= _inception_block(graph, layers["input"], encoder.block0, "block0", (x, entry) if joint else None)
    return layers | _inception_block(graph, next(reversed(layers.values())), encoder.block1, "block1")


def _inception_block(
    graph: Graph, x: str, block: InceptionBlock, name: str, source: tuple[str, Affine] | None = None
) -> Layers:
    """`source` is a linear map in front of the block, with its input: x is what it gives."""
    layers, h = Layers(), x
    for number, module in enumerate((block.module0, block.module1, block.module2)):
        before = source if number == 0 else None
        h = layers[f"{name}.module{number}"] = _inception_module(graph, h, module, before)
    conv, norm = block.residual
    assert isinstance(conv, nn.Conv1d) and isinstance(norm, nn.BatchNorm1d)
    residual = affine(conv).scaled(*scale_and_shift(norm))
    layers[name] = graph.add("Relu", graph.add("Add", h, _behind(graph, x, residual, source)))
    return layers


def _inception_module(graph: Graph, x: str, module: InceptionModule, before: tuple[str, Affine] | None) -> str:
    left, right = same_margins(KERNELS[-1])
    narrow = graph.pad(_behind(graph, x, affine(module.bottleneck), before), left, right, mode="edge")
    pooled = graph.add("MaxPool", x, kernel_shape=[3], pads=[1, 1])
    scale, shift = scale_and_shift(module.bn)
    branches, first = [], 0
    for kernel in (*KERNELS, 1):
        conv = module.poolconv if kernel == 1 else module.get_submodule(f"conv{kernel}")
        assert isinstance(conv, nn.Conv1d)
        source = pooled
        if kernel > 1:
            start, stop = (wide - own for wide, own in zip((left, right), same_margins(kernel), strict=True))
            source = graph.cut(narrow, start, -stop or 2**62)
        own = slice(first, first := first + conv.out_channels)
        branches.append(_convolution(graph, source, conv, scale[own], shift[own]))
    return graph.add("Relu", graph.add("Concat", *branches, axis=1))


def _fcn(graph: Graph, x: str, encoder: Encoder) -> Layers:
    assert isinstance(encoder, FCN)
    h, back = _at_least_five(graph, x)
    layers = Layers()
    for number, (conv, norm) in enumerate(zip(encoder.convs, encoder.norms, strict=True)):
        h = graph.add("Relu", _same(graph, h, conv, norm))
        layers[f"layer{number}"] = back(h)
    return layers


def _resnet(graph: Graph, x: str, encoder: Encoder) -> Layers:
    assert isinstance(encoder, ResNet)
    h, back = _at_least_five(graph, x)
    layers = Layers()
    for number, block in enumerate(encoder.blocks):
        assert isinstance(block, ResidualBlock)
        h = _residual_block(graph, h, block)
        layers[f"blocks.{number}"] = back(h)
    return layers


def _residual_block(graph: Graph, x: str, block: ResidualBlock) -> str:
    y = x
    for conv, norm, active in zip(block.convs, block.norms, block.active, strict=True):
        y = _same(graph, y, conv, norm)
        y = graph.add("Relu", y) if active else y
    if isinstance(block.shortcut, nn.Conv1d):
        shortcut = _convolved(graph, x, block.shortcut, block.shortcut_norm)
    else:
        scale, shift = (_numbers(values)[:, None] for values in scale_and_shift(block.shortcut_norm))
        shortcut = graph.add("Add", graph.add("Mul", x, scale), shift)
    return graph.add("Relu", graph.add("Add", y, shortcut))


def _universal(graph: Graph, x: str, encoder: Encoder) -> Layers:
    assert isinstance(encoder, Universal)
    layers, n_times = Layers(), graph.length(x)
    for number, h in enumerate(
        _universal_stages(graph, _channel_inputs(graph, x, _Looks(graph, x, close=False)), encoder)
    ):
        mean = graph.over("ReduceMean", _by_channel(graph, h, x, encoder.widths[number], -1), 1)  # over channels
        sizes = graph.add("Concat", graph.add("Shape", mean, end=2), n_times, axis=0)
        ends: dict[str, str] = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
        layers[f"stage{number}"] = graph.add("Resize", mean, "", "", sizes, **ends)
    return layers


def _universal_vector(graph: Graph, x: str, encoder: Universal) -> str:
    """Return what `Universal.embed` does."""
    looks, parts = _Looks(graph, x), []
    for h in _universal_stages(graph, _channel_inputs(graph, x, looks), encoder):
        parts += [graph.over("ReduceMean", h, 2), graph.over("ReduceMax", h, 2), _deviation(graph, h, 2, FLOOR)]
    found = _by_channel(graph, graph.add("Concat", *parts, axis=1), x, -1, 3 * sum(encoder.widths))
    return _joined(graph, graph.over("ReduceSum", graph.add("Mul", found, looks.shares), 2), encoder.n_channels)


def _universal_stages(graph: Graph, inputs: str, encoder: Universal) -> list[str]:
    """Return what each stage gives for every channel as a case of its own, (B C, width, points)."""
    found: list[str] = []
    convs = iter(zip(encoder.convs, encoder.norms, strict=True))

    def convolved(h: str, pair: tuple[nn.Module, nn.Module]) -> str:
        conv, norm = pair
        assert isinstance(conv, nn.Conv1d) and isinstance(norm, nn.BatchNorm1d)
        weight, bias = map(_numbers, folded(conv, norm))
        pads = [*conv.padding, *conv.padding]
        return graph.add("Conv", h, weight, bias, kernel_shape=weight.shape[2:], strides=list(conv.stride), pads=pads)

    h = graph.add("Relu", convolved(inputs, next(convs)))
    for number in range(len(encoder.widths)):
        if number:
            h = graph.add("Relu", convolved(h, next(convs)))
        inner = graph.add("Relu", convolved(h, next(convs)))
        h = graph.add("Relu", graph.add("Add", h, convolved(inner, next(convs))))
        found.append(h)
    return found


class _Looks:
    """How a channel is looked at: as a whole, and where it is long, V - 1 times, in stretches.

    Attributes
    ----------
    left, right, share : (V, points): the two time steps that a point lies between, and where between them
    shares : (V, 1), how much each look counts in a vector
    whole : (V,), 1 for the look at the whole and 0 for the others
    """

    def __init__(self, graph: Graph, x: str, *, close: bool = True) -> None:
        n_times, most = graph.length(x), POINTS[-1]
        self.points = graph.add("Where", graph.add("LessOrEqual", n_times, whole(POINTS[0])), *map(whole, POINTS))
        last = graph.add("Sub", n_times, whole(1))
        step = graph.add(
            "Div", graph.cast(last, "DOUBLE"), graph.cast(graph.add("Sub", self.points, whole(1)), "DOUBLE")
        )
        places = graph.add("Mul", graph.add("Slice", np.arange(most, dtype=np.float64), whole(0), self.points), step)
        places, count = graph.add("Unsqueeze", places, whole(0)), graph.named(whole(0))
        if close:
            count = graph.add("Where", graph.add("Greater", n_times, whole(most)), whole(STRETCHES), whole(0))
            beyond = graph.add("Max", graph.add("Sub", n_times, whole(most)), whole(0))
            starts = graph.add("Div", graph.add("Mul", beyond, np.arange(STRETCHES)[:, None]), whole(STRETCHES - 1))
            starts = graph.add("Slice", starts, whole(0), count, whole(0))
            steps = graph.add("Slice", np.arange(most), whole(0), self.points)
            places = graph.add("Concat", places, graph.cast(graph.add("Add", starts, steps), "DOUBLE"), axis=0)
        self.left = graph.cast(graph.add("Floor", places), "INT64")
        self.right = graph.add("Min", graph.add("Add", self.left, whole(1)), last)
        self.share = graph.cast(graph.add("Sub", places, graph.cast(self.left, "DOUBLE")), "FLOAT")
        first, end = graph.add("Min", count, whole(1)), graph.add("Add", count, whole(1))
        table = np.array([[1.0], [0.5], *([0.5 / STRETCHES],) * STRETCHES], np.float32)
        self.shares = graph.add("Slice", table, first, graph.add("Add", end, first), whole(0))
        self.whole = graph.add("Slice", np.eye(STRETCHES + 1, dtype=np.float32)[0], whole(0), end)


def _channel_inputs(graph: Graph, x: str, looks: _Looks) -> str:
    """Return what `universal.channel_inputs` does, (B C V, 2, points)."""
    size = graph.add("Abs", x)
    seen = graph.over("ReduceMax", graph.add("Gather", size, looks.left, axis=2), 3)  # (B, C, V)
    largest = graph.add("Max", seen, graph.add("Mul", graph.over("ReduceMax", size, 2, keep=True), looks.whole))
    series = graph.add("Sub", x, graph.cut(x, 0, 1))
    low, high = (graph.add("Gather", series, place, axis=2) for place in (looks.left, looks.right))
    series = graph.add("Add", low, graph.add("Mul", graph.add("Sub", high, low), looks.share))  # (B, C, V, points)
    series = graph.add("Reshape", series, graph.add("Concat", whole(-1, 1), looks.points, axis=0))
    largest = graph.add("Reshape", largest, whole(-1, 1, 1))
    lift = _lift(graph, largest)
    series = graph.add("Mul", series, lift)
    least = graph.add("Mul", graph.add("Mul", largest, lift), single(NO_SPREAD))
    series = _z_scored(graph, series, least)
    change = graph.pad(graph.add("Sub", graph.cut(series, 1, 2**62), graph.cut(series, 0, -1)), 1, 0, mode="edge")
    largest = graph.over("ReduceMax", graph.add("Abs", change), 2, keep=True)
    change = _z_scored(graph, change, graph.add("Mul", largest, single(NO_CHANGE)))
    return graph.add("Concat", series, change, axis=1)


def _lift(graph: Graph, largest: str) -> str:
    """Return what `universal.lifts` does, by the largest value of each series."""
    return graph.add("Where", graph.add("Less", largest, single(FAINT)), single(LIFT), single(1))


def _z_scored(graph: Graph, x: str, least: str) -> str:
    centred = graph.add("Sub", x, graph.over("ReduceMean", x, 2, keep=True))
    deviation = graph.add("Sqrt", graph.over("ReduceMean", graph.add("Mul", centred, centred), 2, keep=True))
    return graph.add("Where", graph.add("Greater", deviation, least), graph.add("Div", centred, deviation), single(0))


def _by_channel(graph: Graph, h: str, x: str, *shape: int) -> str:
    """Return what was made of each channel of x alone, (B C, ...), as (B, C, *shape)."""
    return graph.add("Reshape", h, graph.add("Concat", graph.add("Shape", x, end=2), whole(*shape), axis=0))


def _joined(graph: Graph, x: str, n_channels: int, floor: float = FLOOR) -> str:
    """Return what `universal.join_channels` does."""
    if 1 <= n_channels <= BESIDE:
        return graph.add("Flatten", x)
    return graph.add("Concat", graph.over("ReduceMean", x, 1), _deviation(graph, x, 1, floor), axis=1)


def _deviation(graph: Graph, x: str, axis: int, floor: float = 0.0) -> str:
    """Return the root of the variance over an axis, with `floor` added to it."""
    centred = graph.add("Sub", x, graph.over("ReduceMean", x, axis, keep=True))
    variance = graph.over("ReduceMean", graph.add("Mul", centred, centred), axis)
    return graph.add("Sqrt", graph.add("Add", variance, single(floor)) if floor else variance)


def _at_least_five(graph: Graph, x: str) -> tuple[str, Callable[[str], str]]:
    """Add zeros on both sides of fewer than 5 time steps, and return what cuts features back (see `backbones`)."""
    n_times = graph.length(x)
    missing = graph.add("Max", graph.add("Sub", whole(5), n_times), whole(0))
    left = graph.add("Div", missing, whole(2))
    end = graph.add("Add", left, n_times)
    return graph.pad(x, left, graph.add("Sub", missing, left)), lambda h: graph.cut(h, left, end)


def _same(graph: Graph, x: str, conv: nn.Module, norm: nn.Module) -> str:
    """Convolve with edge values repeated, so that the length stays, and normalise."""
    assert isinstance(conv, nn.Conv1d)
    return _convolved(graph, graph.pad(x, *same_margins(conv.kernel_size[0]), mode="edge"), conv, norm)


def _convolved(graph: Graph, x: str, conv: nn.Module, norm: nn.Module) -> str:
    """Convolve, with the BatchNorm behind it folded into the weights."""
    assert isinstance(norm, nn.BatchNorm1d)
    return _convolution(graph, x, conv, *scale_and_shift(norm))


def _convolution(graph: Graph, x: str, conv: nn.Module, scale: Tensor, shift: Tensor) -> str:
    assert isinstance(conv, nn.Conv1d) and conv.bias is not None
    weight, bias = (values.detach().cpu().double() for values in (conv.weight, conv.bias))
    weight, bias = weight * scale[:, None, None], bias * scale + shift
    return graph.add("Conv", x, _numbers(weight), _numbers(bias), kernel_shape=list(conv.kernel_size))


def _behind(graph: Graph, x: str, linear: Affine, source: tuple[str, Affine] | None) -> str:
    """Map x, or what x was made of by `source`, by both maps at once."""
    return _mapped(graph, x, linear) if source is None else _mapped(graph, source[0], linear.after(source[1]))


def _mapped(graph: Graph, x: str, linear: Affine) -> str:
    """Map every time step of (B, C, T) alike."""
    weight, bias = linear
    return graph.add("Conv", x, _numbers(weight.T.unsqueeze(2)), _numbers(bias), kernel_shape=[1])


def _numbers(values: Tensor) -> Array:
    return values.detach().cpu().numpy().astype(np.float32)


ENCODER_GRAPHS: Mapping[type[Encoder], EncoderGraph] = {
    InceptionTime: _inception_time,
    FCN: _fcn,
    ResNet: _resnet,
    Universal: _universal,
}
# What the parts of a pooling's name stand for.
POOLED: Mapping[str, Callable[[Graph, list[str]], list[str]]] = {
    "own": lambda graph, layers: [graph.over("ReduceMean", layers[-1], 2)],  # but for `_universal_vector`
    "mean": lambda graph, layers: [graph.over("ReduceMean", layers[-1], 2)],
    "max": lambda graph, layers: [graph.over("ReduceMax", layers[-1], 2)],
    "std": lambda graph, layers: [_deviation(graph, layers[-1], 2)],
    "layers": lambda graph, layers: [graph.over("ReduceMean", layer, 2) for layer in layers],
}


def composed(
    graph: Graph, prepared: WindowValues, composition: Composition, encoder: Encoder, pool: Callable[[str], str]
) -> str:
    """Return the vectors (B, F) of prepared windows (B, C, T); `pool` gives the encoder's pooled features."""
    x = whole_case = prepared.x
    with_levels = x
    if encoder.needs_levels and prepared.offsets is not None:
        with_levels = graph.add("Add", x, prepared.offsets)
    parts = [pool(with_levels)]
    if composition.box is not None:
        parts.append(_universal_vector(graph, x, composition.box))
    if composition.bank is not None or composition.contests is not None:
        missing = graph.add("Max", graph.add("Sub", whole(N_TAPS), graph.length(x)), whole(0))
        x = graph.pad(x, 0, missing)  # with zeros to 9 time steps
    if composition.bank is not None:
        parts.append(_bank(graph, x, composition.bank))
    if composition.contests is not None:
        parts.append(_contests(graph, x, composition.contests))
    if composition.levels is not None:
        parts.append(_levels(graph, whole_case, prepared.offsets, composition.levels))
    z = graph.add("Concat", *parts, axis=1)
    if composition.compression is None:
        return z
    mean, *factors = map(_numbers, composition.compression.state_dict().values())
    z = graph.add("Sub", z, mean)
    for factor in factors:
        z = graph.add("MatMul", z, factor)
    return z


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
    # Every other kernel counts only where it does not reach beyond the case, unless it always does (`kernels._shares`).
    n_times, reach = graph.length(x), REACH * np.array(bank.dilations, np.int64)[:, None, None]
    odd = (np.arange(len(bank.dilations))[:, None] + np.arange(2)) % 2
    edges = graph.add("Where", graph.add("Greater", n_times, 2 * reach), reach * odd[..., None], whole(0))
    stops, time = graph.add("Sub", n_times, edges), _time(graph, x)  # (D, 2, 1)
    inside = graph.add("And", graph.add("GreaterOrEqual", time, edges), graph.add("Less", time, stops))  # (D, 2, T)
    n_dilations, sides = len(bank.dilations), graph.add("Transpose", graph.cast(inside, "FLOAT"), perm=[0, 2, 1])
    each = graph.split("Split", sides, outputs=n_dilations, num_outputs=n_dilations) if n_dilations > 1 else [sides]
    biases, counts = iter(_numbers(bank.biases).T[..., None].astype(np.float64)), []
    convolved = _dilated(graph, _on_grid(graph, x), taps, _numbers(bank.channels), bank.dilations)
    for y, side, n_biases in zip(convolved, each, bank.counts, strict=True):  # (B, 84, T)
        above = [graph.cast(graph.add("Greater", y, next(biases)), "FLOAT") for _ in range(n_biases)]
        counts += [graph.add("Unsqueeze", graph.add("MatMul", one, side), whole(1)) for one in above]  # (B, 1, 84, 2)
    owners = np.repeat(np.arange(len(bank.dilations)), bank.counts)
    lengths = graph.add("Transpose", graph.add("Sub", stops, edges), perm=[0, 2, 1])
    lengths = graph.cast(graph.add("Gather", lengths, owners, axis=0), "FLOAT")  # (n, 1, 2)
    shares = graph.add("Div", graph.add("Concat", *counts, axis=1), lengths)
    own = np.tile(np.eye(2, dtype=np.float32), (N_KERNELS // 2, 1))
    return graph.add("Flatten", graph.over("ReduceSum", graph.add("Mul", shares, own), 3))


def _contests(graph: Graph, x: str, contests: Contests) -> str:
    """Return by how much kernels win, and how often they come last, (B, n_features)."""
    both = (x, graph.add("Sub", graph.cut(x, 1, 2**62), graph.cut(x, 0, -1)))
    found: list[str] = []
    for series, values in enumerate(_on_grid(graph, series) for series in both):
        largest = graph.over("ReduceMax", graph.add("Abs", values), 2, keep=True)
        nothing = graph.add("Mul", graph.over("ReduceSum", largest, 1, keep=True), double(NOTHING))  # (B, 1, 1)
        nothing = graph.add("Unsqueeze", nothing, whole(3))
        taps = _numbers(contests.taps[:, series].flatten(1, 2))  # (D, 8 G, 9)
        mixed = np.repeat(_numbers(contests.channels[:, series]), PER_GROUP, axis=1)  # (D, 8 G, C)
        groups = whole(0, taps.shape[1] // PER_GROUP, PER_GROUP, -1)
        convolved = _dilated(graph, values, taps, mixed, contests.dilations)
        outcomes = [one for y in convolved for one in _outcomes(graph, graph.add("Reshape", y, groups), nothing)]
        sums = graph.add("Reshape", graph.add("Concat", *outcomes, axis=1), whole(0, len(taps), 2 * taps.shape[1]))
        found.append(graph.add("Div", sums, graph.cast(graph.length(values), "DOUBLE")))
    together = graph.add("Flatten", graph.add("Concat", *found, axis=2))  # of (B, D, 4 x 8 G)
    return graph.add("Sqrt", graph.cast(graph.add("Max", together, double(0)), "FLOAT"))


def _outcomes(graph: Graph, y: str, nothing: str) -> tuple[str, str]:
    """Return by how much each kernel of y (B, G, 8, T) wins, and how often it comes last, sums (B, G, 8, 1) each."""
    best, worst = (graph.over(op, y, 2, keep=True) for op in ("ReduceMax", "ReduceMin"))  # (B, G, 1, T)
    nobody = [graph.add("LessOrEqual", graph.add("Abs", end), nothing) for end in (best, worst)]
    best = graph.add("Where", nobody[0], double(0), best)
    worst = graph.add("Where", nobody[1], double(np.nan), worst)  # equal to nothing
    wins = graph.cast(graph.add("Equal", y, best), "DOUBLE")
    won = graph.add("MatMul", wins, graph.add("Reshape", best, whole(0, 0, -1, 1)))
    losses = graph.cast(graph.add("Equal", y, worst), "FLOAT")
    return won, graph.cast(graph.over("ReduceSum", losses, 3, keep=True), "DOUBLE")


def _levels(graph: Graph, x: str, offsets: str | None, levels: Levels) -> str:
    """Return what `Levels.transform` does."""
    mean, largest, smallest = (graph.over(op, x, 2, keep=True) for op in ("ReduceMean", "ReduceMax", "ReduceMin"))
    centred, n_times = graph.add("Sub", x, mean), graph.length(x)
    part = graph.add("Max", graph.add("Div", n_times, whole(END)), whole(1))
    ends = graph.cut(centred, graph.add("Neg", part), 2**62), graph.cut(centred, 0, part)
    trend = graph.add("Sub", *(graph.over("ReduceMean", end, 2, keep=True) for end in ends))
    in_units = [mean, largest, smallest]
    if offsets is not None:
        in_units = [graph.add("Add", level, offsets) for level in in_units]
    units = graph.add("Concat", *in_units, trend, axis=2)
    size = graph.add("Max", graph.add("Abs", largest), graph.add("Abs", smallest))
    least = graph.add("Add", graph.add("Mul", size, single(NO_SPREAD)), single(float(np.finfo(np.float32).tiny)))
    longer = graph.pad(x, 0, graph.add("Max", graph.add("Sub", whole(2), n_times), whole(0)), mode="edge")
    change = graph.add("Sub", graph.cut(longer, 1, 2**62), graph.cut(longer, 0, -1))
    lift = _lift(graph, size)
    lifted = [graph.add("Mul", series, lift) for series in (centred, change)]
    deviations = [graph.add("Unsqueeze", _deviation(graph, series, 2), whole(2)) for series in lifted]
    deviation, rough = (graph.add("Add", graph.add("Div", one, lift), least) for one in deviations)
    logs = [graph.add("Log", values) for values in (deviation, graph.add("Div", rough, deviation))]
    units = graph.add("Asinh", units) if levels.squashed else units
    return _joined(graph, graph.add("Concat", units, *logs, axis=2), levels.n_channels, floor=0.0)


def _dilated(graph: Graph, x: str, taps: Array, channels: Array, dilations: Sequence[int]) -> Iterator[str]:
    """Convolve (B, C, T) -> (B, K, T) for each dilation, with kernels (D, K, 9) over channels (D, K, C), in float64.

    One dilation after the other, so that what is made of it stays in a processor's cache.
    """
    furthest = REACH * max(dilations)
    padded = graph.pad(x, furthest, furthest)
    for own, mixed, dilation in zip(taps.astype(np.float64), channels.astype(np.float64), dilations, strict=True):
        narrow = mixed.shape[1] <= WIDEST
        source = padded if narrow else graph.add("MatMul", mixed, padded)  # or channels are added up first, then taps
        shifts = [dilation * (tap - REACH) for tap in range(N_TAPS)]
        taken = [graph.cut(source, furthest + shift, (shift - furthest) or 2**62) for shift in shifts]
        if narrow:  # onnxruntime has no Conv of float64
            weights = (own[..., None] * mixed[:, None]).reshape(len(own), -1)
            yield graph.add("MatMul", weights, graph.add("Concat", *taken, axis=1))  # of (B, 9 C, T)
        else:
            yield graph.add("Sum", *(graph.add("Mul", *both) for both in zip(taken, own.T[..., None], strict=True)))


def _on_grid(graph: Graph, x: str) -> str:
    """Return what `kernels.on_grid` does."""
    x = graph.cast(x, "DOUBLE")
    largest = graph.over("ReduceMax", graph.over("ReduceMax", graph.add("Abs", x), 2, keep=True), 1, keep=True)
    room = graph.add("Mul", largest, double(ROOM))
    return graph.add("Sub", graph.add("Add", x, room), room)


def _time(graph: Graph, x: str) -> str:
    """Return 0, 1, 2 ... for the time steps of x."""
    return graph.add(
        "Range", np.array(0, np.int64), graph.add("Squeeze", graph.length(x), whole(0)), np.array(1, np.int64)
    )
