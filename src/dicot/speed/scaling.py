"""How the cost of our step grows: with the batch, the length, the number of sub-blocks and the number of cases."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dicot.encoders import InceptionTime
from dicot.methods import Method, build_method
from dicot.progress import Bar
from dicot.report.figures import power_curves
from dicot.speed.ours import our_seconds
from dicot.speed.sections import Section
from dicot.speed.shapes import Shape
from dicot.train import Recipe

RIVALS = ("dicot", "catt")  # the paper's figure of the batch size has these two
BATCHES = {"cpu": (8, 16, 32, 64), "cuda": (8, 16, 32, 64, 128, 256, 512)}
LENGTHS = {"cpu": (50, 100, 200, 400), "cuda": (50, 100, 200, 400, 800, 1600)}
CASES = (256, 1024, 4096, 16384)
BLOCKS = tuple(range(2, 11))
QUANTITIES = {"B": "batch size", "T": "time steps", "k": "sub-blocks", "N": "cases"}
BASE = {"cpu": Shape(8, 100, 3), "cuda": Shape(64, 100, 3)}
STEPS = {"cpu": 6, "cuda": 150}  # on a GPU three reads of the losses, of which the first is the warm-up


@dataclass(frozen=True)
class Curve:
    """Milliseconds of a step of a method against one quantity."""

    method: str
    quantity: str
    sizes: Sequence[int]
    point: Callable[[int], tuple[Shape, int, dict[str, int]]]  # size -> shape, number of cases, settings


def curves(kind: str) -> list[Curve]:
    """What is measured on this kind of device; k is fixed, so that all points are alike, but for the batch."""
    base, fixed = BASE[kind], {"k": 5}
    by_batch = [Curve(name, "B", BATCHES[kind], lambda n: (base._replace(batch=n), 1024, {})) for name in RIVALS]
    return [
        *by_batch,
        Curve("dicot", "T", LENGTHS[kind], lambda n: (base._replace(n_times=n), 1024, fixed)),
        Curve("dicot", "k", BLOCKS, lambda n: (base, 1024, {"k": n})),
        Curve("dicot", "N", CASES, lambda n: (base, n, fixed)),
    ]


def scaling_sections(
    precision: str, device: str, chosen: Sequence[Curve] | None = None, *, draw: bool = False
) -> list[Section]:
    """One table of points, one of exponents; with `draw` also figures, which need the extra `report`."""
    kind = torch.device(device).type
    chosen = curves(kind) if chosen is None else chosen
    found: dict[str, tuple[Sequence[int], list[float]]] = {}
    with Bar("scaling", sum(len(curve.sizes) for curve in chosen)) as bar:
        for curve in chosen:
            points: list[float] = []
            for size in curve.sizes:
                bar.update(sum(len(ms) for _, ms in found.values()) + len(points), f"{curve.method} {curve.quantity}")
                points.append(_milliseconds(curve, size, precision, device, STEPS[kind]))
            found[f"{curve.method} against {curve.quantity}"] = curve.sizes, points
    points_note = f"{precision}; C = 3, and but for the quantity in question batch, time steps = {_base(kind)}."
    rows = [
        (f"{name} = {n}", (ms,)) for name, (sizes, all_ms) in found.items() for n, ms in zip(sizes, all_ms, strict=True)
    ]
    table = Section(
        "scaling", "Cost of our step", ("quantity", "ms"), tuple(rows), points_note, _figures(found) if draw else {}
    )
    powers = [(name, (exponent(*curve), exponent(*_upper(*curve)))) for name, curve in found.items()]
    note = (
        "Slope of a straight line through the logarithms, over all points and over the larger half of them; k is drawn "
        "anew at each step where the batch grows, and 5 elsewhere. Small sizes are bound by overhead."
    )
    columns = ("cost of a step", "exponent", "exponent, larger half")
    return [table, Section("exponents", "How it grows", columns, tuple(powers), note)]


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """p of the power law values ~ sizes^p, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _upper(sizes: Sequence[int], values: Sequence[float]) -> tuple[Sequence[int], Sequence[float]]:
    start = max(0, min(len(sizes) // 2, len(sizes) - 2))  # a line needs two points
    return sizes[start:], values[start:]


def _milliseconds(curve: Curve, size: int, precision: str, device: str, steps: int) -> float:
    shape, n_cases, settings = curve.point(size)

    def make(n_channels: int) -> Method:
        return build_method(curve.method, InceptionTime(n_channels), settings)

    recipe = Recipe(steps, shape.batch, precision=precision)
    return 1e3 * statistics.median(our_seconds(make, shape.windows(n_cases), recipe, device).steps)


def _base(kind: str) -> str:
    return f"{BASE[kind].batch}, {BASE[kind].n_times}"


def _figures(found: Mapping[str, tuple[Sequence[int], list[float]]]) -> dict[str, str]:
    """One figure per quantity, by the file stem it gets."""
    figures = {}
    for quantity, words in QUANTITIES.items():
        lines = {name.split()[0]: curve for name, curve in found.items() if name.endswith(f"against {quantity}")}
        if lines:
            figures[f"scaling-{words.replace(' ', '-')}"] = power_curves(lines, words, "ms per step")
    return figures
