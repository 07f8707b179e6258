"""A whole model as one module, from raw windows to vectors and probabilities, and its conversion to ONNX."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import torch
from torch import Tensor, nn
from torch.onnx.utils import register_custom_op_symbolic

from dicot.core.errors import ExportError, brief, need_extra
from dicot.data.cases import Array
from dicot.model.deployed import INPUT
from dicot.model.export.windows import WindowPreparation
from dicot.model.head import SMALLEST, SPREADINGS, Head, Neighbours
from dicot.model.vector.module import Vector

OPSET, IR_VERSION = 18, 9  # what onnxruntime 1.15 reads, and all later ones
# Of the windows that the graph is recorded with: so long that a channel is looked at in stretches, too.
EXAMPLE_BATCH, EXAMPLE_CHANNELS, EXAMPLE_TIMES = 3, 5, 1037
# torch's exporter does not know that ONNX has this one.
register_custom_op_symbolic("aten::asinh", lambda graph, x: graph.op("Asinh", x), 9)


class Probabilities(nn.Module):
    """What a `Head` makes of vectors (B, F): probabilities (B, K) in float32, computed in float64."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.temperature = head.temperature
        self.mean = constant(head.mean)
        self.factor = constant(head.factor)
        self.coef = constant(head.coef)
        self.intercept = constant(head.intercept)
        self.neighbours = None if head.neighbours is None else NeighbourGraph(head.neighbours)

    def forward(self, z: Tensor) -> Tensor:
        scaled = (z.double() - self.mean) * self.factor
        scores = scaled @ self.coef.T + self.intercept
        if self.neighbours is not None:
            scores = self.neighbours(scaled, scores.softmax(dim=1))
        return (scores / self.temperature).softmax(dim=1).float()


class NeighbourGraph(nn.Module):
    """What the nearest cases of a head of earlier releases say, mixed with the guesses of its regression."""

    def __init__(self, neighbours: Neighbours) -> None:
        super().__init__()
        self.count = neighbours.count
        self.reach, self.weight = SPREADINGS[neighbours.spreading]
        self.places = constant(neighbours.places)
        self.settled = constant(neighbours.settled)
        self.directions = constant(neighbours.directions)

    def forward(self, scaled: Tensor, guesses: Tensor) -> Tensor:
        """Return logarithms (B, K) of the mixed probabilities."""
        places = scaled @ self.directions
        distances = places @ (-2 * self.places.T) + self.places.square().sum(dim=1)
        nearest = distances.topk(self.count, dim=1, largest=False).indices
        of_nearest = self.settled[nearest].mean(dim=1)
        mixed = (1 - self.reach) * self.weight * guesses + self.reach * of_nearest
        return mixed.clamp(min=SMALLEST).log()


def constant(values: Array) -> nn.Parameter:
    return nn.Parameter(torch.as_tensor(values).double(), requires_grad=False)


class WholeModel(nn.Module):
    """Raw windows (B, C, T) in, vectors and perhaps probabilities out; NaN where a window cannot be used."""

    def __init__(self, preparation: WindowPreparation, vector: Vector, head: Head | None) -> None:
        super().__init__()
        self.preparation = preparation
        self.vector = vector
        self.head = None if head is None else Probabilities(head)

    def forward(self, window: Tensor) -> tuple[Tensor, ...]:
        prepared = self.preparation(window)
        z = self.vector(prepared.x, prepared.offsets)
        outputs = (z,) if self.head is None else (z, self.head(z))
        return tuple(torch.where(prepared.is_usable, values, torch.nan) for values in outputs)


def converted(module: nn.Module, n_channels: int, is_double: bool, outputs: Sequence[str]) -> Any:
    """Return the ONNX model of a module whose input has any number of windows and time steps, and channels if 0."""
    onnx = _onnx()
    dtype = torch.float64 if is_double else torch.float32
    generator = torch.Generator().manual_seed(0)
    sides = (EXAMPLE_BATCH, n_channels or EXAMPLE_CHANNELS, EXAMPLE_TIMES)
    window = torch.randn(sides, dtype=dtype, generator=generator)
    free = {0: "batch", 2: "time"} if n_channels else {0: "batch", 1: "channels", 2: "time"}
    content = BytesIO()
    try:
        with _quietly(), torch.no_grad():
            # Not by dynamo=True, which takes 20 times as long for the same graph, and needs onnxscript.
            torch.onnx.export(
                module.eval(),
                (window,),
                content,  # type: ignore[arg-type]  # torch takes it, and its types do not say so
                dynamo=False,
                input_names=[INPUT],
                output_names=list(outputs),
                dynamic_axes={INPUT: free},
                opset_version=OPSET,
            )
    except Exception as error:  # torch has no common class for what its exporter meets
        raise ExportError(
            f"The network or pooling of this model cannot be written as ONNX. torch says: {brief(error)}"
        ) from error
    model = onnx.load_from_string(content.getvalue())
    model.ir_version = IR_VERSION
    _drop_notes(model)
    onnx.checker.check_model(model, full_check=True)
    return model


def name_sides(model: Any, shapes: Mapping[str, Sequence[Any]]) -> None:
    """Give inputs and outputs their shapes; text stands for a side that is free."""
    for value in (*model.graph.input, *model.graph.output):
        for side, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            if isinstance(size, str):
                side.dim_param = size
            else:
                side.dim_value = size


def set_about(model: Any, about: Mapping[str, str]) -> None:
    """Replace the metadata of a model."""
    del model.metadata_props[:]
    _onnx().helper.set_model_props(model, dict(about))


def _drop_notes(model: Any) -> None:
    """Leave out what the exporter notes at every node for those who look for its mistakes."""
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.doc_string = ""


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise need_extra("onnx", "onnx", "An ONNX file") from error
    return onnx


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the exporter's warnings about itself from those who export."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
