"""An ONNX graph that grows node by node. A value is known by its name; (B, C, T) as everywhere."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from dicot.core.errors import need_extra
from dicot.data.cases import Array

OPSET, IR_VERSION = 18, 9  # what onnxruntime 1.15 reads, and all later ones
Value = str | Array  # a value of the graph, or numbers that the file holds


@final
class Graph:
    """Nodes and numbers; the methods name what several parts of a model need."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise need_extra("onnx", "onnx", "An ONNX file") from error
        self.onnx: Any = onnx
        self.nodes: list[Any] = []
        self.numbers: dict[tuple[str, tuple[int, ...], bytes], str] = {}  # what the file holds -> its name, each once

    def add(self, op: str, *inputs: Value, **attributes: Any) -> str:
        """Add a node with one output, and return its name."""
        return self.split(op, *inputs, outputs=1, **attributes)[0]

    def split(self, op: str, *inputs: Value, outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs, and return their names."""
        names = [self.named(value) for value in inputs]
        made = [f"{op}_{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(op, names, made, name=f"{op}_{len(self.nodes)}", **attributes))
        return made

    def named(self, value: Value) -> str:
        """Return the name of a value; numbers are put into the file once, however often they are used."""
        if isinstance(value, str):
            return value
        value = np.asarray(value, order="C")
        return self.numbers.setdefault((value.dtype.str, value.shape, value.tobytes()), f"numbers_{len(self.numbers)}")

    def finish(
        self,
        inputs: dict[str, Sequence[Any]],
        outputs: dict[str, Sequence[Any]],
        *,
        double: bool = False,
        **about: Any,
    ) -> Any:
        """Return the model with these names and shapes; text in a shape is free.

        Outputs are float32, and so are inputs unless they are `double`.
        """
        helper, types = self.onnx.helper, self.onnx.TensorProto
        kinds = (types.DOUBLE if double else types.FLOAT, types.FLOAT)
        ends = [
            [helper.make_tensor_value_info(name, kind, list(shape)) for name, shape in some.items()]
            for kind, some in zip(kinds, (inputs, outputs), strict=True)
        ]
        numbers = [
            self.onnx.numpy_helper.from_array(np.frombuffer(data, dtype).reshape(shape), name)
            for (dtype, shape, data), name in self.numbers.items()
        ]
        graph = helper.make_graph(self.nodes, "dicot", *ends, numbers)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, **about)
        self.onnx.checker.check_model(model, full_check=True)
        return model

    def length(self, x: str) -> str:
        """Return the number of time steps, a tensor of one whole number."""
        return self.add("Shape", x, start=2, end=3)

    def cut(self, x: str, start: Value | int, stop: Value | int) -> str:
        """Return x from the time step `start` up to `stop`, which is not in it."""
        ends = [whole(end) if isinstance(end, int) else end for end in (start, stop)]
        return self.add("Slice", x, *ends, whole(2), whole(1))

    def pad(self, x: str, left: Value | int, right: Value | int, mode: str = "constant") -> str:
        """Continue x in time on both sides, by zeros or, with the mode "edge", by its outermost values."""
        if isinstance(left, int) and isinstance(right, int):
            return self.add("Pad", x, whole(0, 0, left, 0, 0, right), mode=mode)
        sides = [whole(side) if isinstance(side, int) else side for side in (left, right)]
        # For all axes, not with an input that names the third: onnxruntime's optimiser may take that for all of them.
        return self.add("Pad", x, self.add("Concat", whole(0, 0), sides[0], whole(0, 0), sides[1], axis=0), mode=mode)

    def over(self, op: str, x: str, *axes: int, keep: bool = False) -> str:
        """Reduce x over these axes, by "ReduceMean" or another one of ONNX's reductions."""
        return self.add(op, x, whole(*axes), keepdims=int(keep))

    def cast(self, x: str, kind: str) -> str:
        """Return x in another type: "FLOAT", "DOUBLE" or "INT64"."""
        return self.add("Cast", x, to=getattr(self.onnx.TensorProto, kind))


def whole(*values: int) -> Array:
    """Return whole numbers as ONNX takes them for shapes, axes and positions."""
    return np.array(values, np.int64)


def single(value: float) -> Array:
    """Return a number of float32 that is spread over whatever it meets."""
    return np.array(value, np.float32)


def double(value: float) -> Array:
    """Return a number of float64 that is spread over whatever it meets."""
    return np.array(value, np.float64)
