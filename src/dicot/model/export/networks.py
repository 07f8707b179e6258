"""Encoders and poolings as graphs. ENCODER_GRAPHS and POOLED are where a new one is registered."""

from collections.abc import Callable, Mapping

import numpy as np
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.data.cases import Array
from dicot.model.export.graph import Graph, whole
from dicot.nets.encoders import FCN, Encoder, InceptionTime, ResNet
from dicot.nets.encoders.backbones import ResidualBlock
from dicot.nets.encoders.base import same_margins
from dicot.nets.encoders.inception.definition import KERNELS, InceptionBlock, InceptionModule
from dicot.nets.encoders.inception.frozen import Affine, affine, scale_and_shift

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


def _at_least_five(graph: Graph, x: str) -> tuple[str, Callable[[str], str]]:
    """Add zeros on both sides of fewer than 5 time steps, and return what cuts features back (see `padding`)."""
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


def _std(graph: Graph, layers: list[str]) -> list[str]:
    centred = graph.add("Sub", layers[-1], graph.over("ReduceMean", layers[-1], 2, keep=True))
    return [graph.add("Sqrt", graph.over("ReduceMean", graph.add("Mul", centred, centred), 2))]


ENCODER_GRAPHS: Mapping[type[Encoder], EncoderGraph] = {InceptionTime: _inception_time, FCN: _fcn, ResNet: _resnet}
# What the parts of a pooling's name stand for.
POOLED: Mapping[str, Callable[[Graph, list[str]], list[str]]] = {
    "mean": lambda graph, layers: [graph.over("ReduceMean", layers[-1], 2)],
    "max": lambda graph, layers: [graph.over("ReduceMax", layers[-1], 2)],
    "std": _std,
    "layers": lambda graph, layers: [graph.over("ReduceMean", layer, 2) for layer in layers],
}
