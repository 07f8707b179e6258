"""How fast training and embedding are, as ratios to a plain loop, and whether the numbers stay right."""

from dicot.speed.benchmark import Options, Result, run_benchmark
from dicot.speed.files import write_result
from dicot.speed.shapes import Shape, parse_shape

__all__ = ["Options", "Result", "Shape", "parse_shape", "run_benchmark", "write_result"]
