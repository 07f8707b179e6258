"""Missing values, lengths and scale inside a graph, as `dicot.data.cases` has them for arrays.

What numpy computes in float64 is computed in float64 here too, so that the network is given the same numbers.
"""

from typing import NamedTuple

import numpy as np

from dicot.data.cases import Array
from dicot.data.conversion import LARGEST_VALUE
from dicot.data.offsets import COARSE, HALF_STEP, LOST, NOISE
from dicot.data.preparation import Preparation
from dicot.model.export.graph import Graph, single, whole
from dicot.model.export.graph import double as double_number


class WindowValues(NamedTuple):
    """What a network is given of raw windows."""

    x: str  # (B, C, T) float32
    usable: str  # (B, 1)
    offsets: str | None  # (B, C, 1) float32, what was subtracted from the channels; None where nothing ever is


def prepare(graph: Graph, x: str, preparation: Preparation, *, double: bool = False) -> WindowValues:
    """Turn raw windows (B, C, T), of float64 if they are `double`, into what the network is given.

    A window cannot be used where `transform` would refuse it: NaN without a policy for it, inf, huge values, nothing
    but NaN, and under "interpolate" a channel without any value.
    """
    usable, offsets = None, None
    if preparation.missing != "error":
        gap = graph.add("IsNaN", x)
        usable = _in_any(graph, graph.add("Not", gap))
        if preparation.missing == "zero":
            x = graph.add("Where", gap, _number(0, double), x)
        else:
            x = _interpolate(graph, x, gap, double)
    if preparation.unequal == "pad":
        missing = graph.add("Max", graph.add("Sub", whole(preparation.n_times), graph.length(x)), whole(0))
        x = graph.pad(x, 0, missing)
    elif preparation.unequal == "crop":
        x = graph.cut(x, 0, preparation.n_times)
    elif preparation.unequal == "resample":
        x = _resample(graph, x, preparation.n_times)
    lost = None
    if double and preparation.scale is None:
        lost = _is_lost(graph, x)
    if preparation.scale == "case":
        x = _scale_each_case(graph, x)
    elif preparation.statistics is not None:
        mean, std = (values[:, None].astype(np.float64) for values in vars(preparation.statistics).values())
        raw = graph.cast(x, "DOUBLE")
        x = graph.add("Div", graph.add("Sub", raw, mean), std)
        noise = NOISE if double else COARSE * 2 * HALF_STEP
        lost = graph.add("And", _varies(graph, raw, noise), _is_lost(graph, x))
    if lost is not None:
        subtracted = graph.add("Where", lost, graph.over("ReduceMean", x, 2, keep=True), double_number(0))
        x, offsets = graph.add("Sub", x, subtracted), graph.cast(subtracted, "FLOAT")
    x = graph.cast(x, "FLOAT")
    fits = graph.add("LessOrEqual", graph.add("Abs", x), single(LARGEST_VALUE))  # NaN does not
    all_fit = graph.add("Not", _in_any(graph, graph.add("Not", fits)))
    return WindowValues(x, all_fit if usable is None else graph.add("And", all_fit, usable), offsets)


def _is_lost(graph: Graph, x: str) -> str:
    """Tell of channels (B, C, T) in float64 whether float32 would lose how they vary, as `data.offsets` does."""
    high, low = (graph.over(op, x, 2, keep=True) for op in ("ReduceMax", "ReduceMin"))
    allowed = graph.add("Mul", graph.add("Sub", high, low), double_number(LOST))
    rounded = graph.cast(graph.cast(x, "FLOAT"), "DOUBLE")
    error = graph.over("ReduceMax", graph.add("Abs", graph.add("Sub", rounded, x)), 2, keep=True)
    return graph.add("And", _varies(graph, x, NOISE), graph.add("Greater", error, allowed))


def _varies(graph: Graph, x: str, noise: float) -> str:
    """Tell of channels (B, C, T) in float64 whether they vary by more than noise of this size, relative to theirs."""
    high, low = (graph.over(op, x, 2, keep=True) for op in ("ReduceMax", "ReduceMin"))
    size = graph.add("Max", graph.add("Abs", high), graph.add("Abs", low))
    return graph.add("Greater", graph.add("Sub", high, low), graph.add("Mul", size, double_number(noise)))


def _number(value: float, double: bool) -> Array:
    return double_number(value) if double else single(value)


def _in_any(graph: Graph, where: str) -> str:
    """Tell of every window whether something is true of any of its values, (B, C, T) -> (B, 1)."""
    most = graph.over("ReduceMax", graph.over("ReduceMax", graph.cast(where, "FLOAT"), 2), 1, keep=True)
    return graph.add("Greater", most, single(0))


def _interpolate(graph: Graph, x: str, gap: str, double: bool) -> str:
    """Fill NaN linearly in time and extend the edges; a channel without any value stays NaN.

    The known time steps of a channel are numbered; where[n] is the place of number n. A gap lies between the number
    that was counted last and the next one.
    """
    one = graph.onnx.numpy_helper.from_array(whole(1))
    n_times, ones = graph.length(x), graph.add("ConstantOfShape", graph.add("Shape", x), value=one)
    time = graph.add("Sub", graph.add("CumSum", ones, np.array(2, np.int64)), whole(1))  # 0, 1, 2 ... in every channel
    known = graph.cast(graph.add("Not", gap), "INT64")
    count = graph.add("CumSum", known, np.array(2, np.int64))  # up to and with each time step
    total = graph.cut(count, -1, 2**62)
    # A place for every number from 1 on, and number 0 for gaps, whose place is not read.
    room = graph.pad(graph.add("Mul", time, whole(0)), 0, 1)
    where = graph.add("ScatterElements", room, graph.add("Mul", count, known), time, axis=2)
    before = graph.add("Max", graph.add("Min", count, total), whole(1))  # edges have one neighbour, taken twice
    after = graph.add("Max", graph.add("Min", graph.add("Add", count, whole(1)), total), whole(1))
    places = [
        graph.add("Min", graph.add("GatherElements", where, number, axis=2), graph.add("Sub", n_times, whole(1)))
        for number in (before, after)
    ]
    values = [graph.cast(graph.add("GatherElements", x, place, axis=2), "DOUBLE") for place in places]
    first, last = (graph.cast(place, "DOUBLE") for place in places)
    apart = graph.add("Max", graph.add("Sub", last, first), double_number(1))
    slope = graph.add("Div", graph.add("Sub", values[1], values[0]), apart)
    filled = graph.add("Add", graph.add("Mul", slope, graph.add("Sub", graph.cast(time, "DOUBLE"), first)), values[0])
    return graph.add("Where", gap, filled if double else graph.cast(filled, "FLOAT"), x)


def _resample(graph: Graph, x: str, length: int) -> str:
    """Interpolate linearly onto `length` points, both ends included."""
    last = graph.add("Sub", graph.length(x), whole(1))
    apart = graph.add("Div", graph.cast(last, "DOUBLE"), double_number(max(1, length - 1)))
    at = graph.add("Mul", np.arange(length, dtype=np.float64), apart)
    left = graph.add("Max", graph.add("Min", graph.cast(graph.add("Floor", at), "INT64"), last), whole(0))
    right = graph.add("Min", graph.add("Add", left, whole(1)), last)
    low, high = (graph.cast(graph.add("Gather", x, place, axis=2), "DOUBLE") for place in (left, right))
    share = graph.add("Sub", at, graph.cast(left, "DOUBLE"))
    return graph.add("Add", graph.add("Mul", graph.add("Sub", high, low), share), low)


def _scale_each_case(graph: Graph, x: str) -> str:
    """Scale channels window by window to mean 0 and standard deviation 1, constant ones to 0."""
    constant = graph.add("Equal", *(graph.over(op, x, 2, keep=True) for op in ("ReduceMax", "ReduceMin")))
    exact = graph.cast(x, "DOUBLE")
    centred = graph.add("Sub", exact, graph.over("ReduceMean", exact, 2, keep=True))
    std = graph.add("Sqrt", graph.over("ReduceMean", graph.add("Mul", centred, centred), 2, keep=True))
    flat = graph.add("Or", constant, graph.add("Equal", std, double_number(0)))
    scaled = graph.add("Div", centred, graph.add("Where", flat, double_number(1), std))
    return graph.add("Where", constant, double_number(0), scaled)
