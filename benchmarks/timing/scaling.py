"""How the cost of our step grows with the sizes, and the peak memory of both loops."""

import multiprocessing
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.timing.plain import plain_seconds
from benchmarks.timing.sections import Section
from benchmarks.timing.shapes import HEAVY_ON_CPU, Shape
from benchmarks.timing.turns import counts, dicot, fresh_start, our_seconds
from dicot.core.progress import Bar
from dicot.judge.report.figures import svg
from dicot.methods import Method, build_method
from dicot.nets.encoders import InceptionTime
from dicot.train import Recipe

RIVALS = ("dicot", "catt")  # the paper's figure of the batch size has these two
BATCHES = {"cpu": (8, 16, 32, 64), "cuda": (8, 16, 32, 64, 128, 256, 512)}
LENGTHS = {"cpu": (50, 100, 200, 400), "cuda": (50, 100, 200, 400, 800, 1600)}
CASES = (256, 1024, 4096, 16384)
BLOCKS = tuple(range(2, 11))
QUANTITIES = {"B": "batch size", "T": "time steps", "k": "sub-blocks", "N": "cases"}
BASE = {"cpu": Shape(8, 100, 3), "cuda": Shape(64, 100, 3)}
STEPS = {"cpu": 6, "cuda": 150}  # on a GPU three reads of the losses, of which the first is the warm-up

MIB = 2**20
STATUS = Path("/proc/self/status")  # Linux
MEMORY_STEPS = 20  # nine of ten values of k occur among so many draws
HEAVY_MEMORY_STEPS = 2


@dataclass(frozen=True)
class Curve:
    """Which milliseconds are measured: those of a step of a method against one quantity."""

    method: str
    quantity: str
    sizes: Sequence[int]
    point: Callable[[int], tuple[Shape, int, dict[str, int]]]  # size -> shape, number of cases, settings


def curves(kind: str) -> list[Curve]:
    """List what is measured on this kind of device; k is fixed except where the batch grows."""
    base, fixed = BASE[kind], {"k": 5}
    by_batch = [Curve(name, "B", BATCHES[kind], lambda n: (base._replace(batch=n), 1024, {})) for name in RIVALS]
    return [
        *by_batch,
        Curve("dicot", "T", LENGTHS[kind], lambda n: (base._replace(n_times=n), 1024, fixed)),
        Curve("dicot", "k", BLOCKS, lambda n: (base, 1024, {"k": n})),
        Curve("dicot", "N", CASES, lambda n: (base, n, fixed)),
    ]


def scaling_sections(
    precision: str,
    device: str,
    chosen: Sequence[Curve] | None = None,
    *,
    steps: int | None = None,
    draw: bool = False,
) -> list[Section]:
    """Make one table of points, one of exponents; with `draw` also figures, which need the extra `report`."""
    kind = torch.device(device).type
    chosen = curves(kind) if chosen is None else chosen
    measured: dict[str, tuple[Sequence[int], list[float]]] = {}
    with Bar("scaling", sum(len(curve.sizes) for curve in chosen)) as bar:
        for curve in chosen:
            points: list[float] = []
            for size in curve.sizes:
                bar.update(
                    sum(len(ms) for _, ms in measured.values()) + len(points), f"{curve.method} {curve.quantity}"
                )
                points.append(_milliseconds(curve, size, precision, device, steps or STEPS[kind]))
            measured[f"{curve.method} against {curve.quantity}"] = curve.sizes, points
    points_note = f"{precision}; C = 3, and but for the quantity in question batch, time steps = {_base(kind)}."
    rows = [
        (f"{name} = {n}", (ms,))
        for name, (sizes, all_ms) in measured.items()
        for n, ms in zip(sizes, all_ms, strict=True)
    ]
    table = Section(
        "scaling", "Cost of our step", ("quantity", "ms"), tuple(rows), points_note, _figures(measured) if draw else {}
    )
    powers = [(name, (exponent(*curve), exponent(*_upper(*curve)))) for name, curve in measured.items()]
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


def _figures(measured: Mapping[str, tuple[Sequence[int], list[float]]]) -> dict[str, str]:
    """Draw one figure per quantity, by the file stem it gets."""
    figures = {}
    for quantity, words in QUANTITIES.items():
        lines = {name.split()[0]: curve for name, curve in measured.items() if name.endswith(f"against {quantity}")}
        if lines:
            figures[f"scaling-{words.replace(' ', '-')}"] = _log_log(lines, words)
    return figures


def _log_log(lines: Mapping[str, tuple[Sequence[int], list[float]]], quantity: str) -> str:
    """Draw lines on logarithmic axes, where a power law is straight, as svg text."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for method, (sizes, milliseconds) in lines.items():
            axes.loglog(sizes, milliseconds, marker="o", markersize=4, linewidth=1.2, label=method)
        ticks = sorted({size for sizes, _ in lines.values() for size in sizes})
        axes.set_xticks(ticks, [str(size) for size in ticks])
        axes.minorticks_off()
        axes.set(xlabel=quantity, ylabel="ms per step")
        axes.legend(frameon=False)

    return svg(draw, (5.4, 3.4), f"ms per step against {quantity}: {', '.join(lines)}")


def memory_section(shapes: Sequence[Shape], device: str, steps: int = MEMORY_STEPS) -> Section:
    """Measure MiB at the highest point, both with the same draws of k, weights and optimiser included."""
    kind = torch.device(device).type
    peak: Callable[[str, Shape, str, int], list[float]] = cuda_peak if kind == "cuda" else cpu_peak
    if kind == "cpu" and not STATUS.exists():
        return Section("memory", "Peak memory", ("B, T, C",), (), f"Not measured: this system has no {STATUS}.")
    rows = []
    with Bar("memory", 2 * len(shapes)) as bar:
        for number, shape in enumerate(shapes):
            bar.update(2 * number, f"plain {shape}")
            plain = peak("plain", shape, device, steps)
            bar.update(2 * number + 1, f"ours {shape}")
            ours = peak("ours", shape, device, steps)
            cells = [value for pair in zip(plain, ours, strict=True) for value in pair]
            rows.append((str(shape), (*cells, ours[0] / plain[0])))
    columns: tuple[str, ...] = ("plain MiB", "ours MiB")
    if kind == "cuda":
        note = "Allocated by tensors and reserved by the allocator, graphs included; ours keeps the data there."
        columns += ("plain reserved MiB", "ours reserved MiB")
    else:
        note = "Growth of the resident memory of a fresh process after a warm-up with a tiny batch."
    return Section("memory", "Peak memory", ("B, T, C", *columns, "ours / plain"), tuple(rows), note)


def train_some(which: str, shape: Shape, device: str, steps: int) -> None:
    """Run a few training steps with the same draws of k for both."""
    train = shape.windows()
    if which == "plain":
        plain_seconds(train.x, shape.batch, counts(0, steps), device)
    else:
        our_seconds(dicot, train, Recipe(steps, shape.batch), device)


def cuda_peak(which: str, shape: Shape, device: str, steps: int) -> list[float]:
    """Return MiB allocated and reserved."""
    fresh_start(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    train_some(which, shape, device, steps)
    allocated, reserved = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    return [(allocated - before) / MIB, reserved / MIB]


def cpu_peak(which: str, shape: Shape, device: str, steps: int) -> list[float]:
    """Measure in a process of its own, because the peak of a process never falls."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        heavy = shape.batch * shape.n_times > HEAVY_ON_CPU
        return [pool.apply(resident_growth, (which, shape, device, min(steps, HEAVY_MEMORY_STEPS) if heavy else steps))]


def resident_growth(which: str, shape: Shape, device: str, steps: int) -> float:
    """Return MiB by which the memory of this process grows at most."""
    train_some(which, Shape(2, 24, shape.n_channels), device, 2)  # what is loaded once does not count
    before = _status()["VmRSS"]
    train_some(which, shape, device, steps)
    return _status()["VmHWM"] - before


def _status() -> dict[str, float]:
    """Read MiB in memory now (VmRSS) and at most so far (VmHWM); getrusage would count the parent process in."""
    lines = (line.split() for line in STATUS.read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) / 1024 for words in lines if words[-1] == "kB"}
