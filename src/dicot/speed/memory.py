"""Peak memory of training steps, by the plain loop and by ours, weights and optimiser included."""

import multiprocessing
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from dicot.progress import Bar
from dicot.speed.ours import counts, dicot, fresh_start, our_seconds
from dicot.speed.plain import plain_seconds
from dicot.speed.sections import Section
from dicot.speed.shapes import HEAVY_ON_CPU, Shape
from dicot.train import Recipe

MIB = 2**20
STATUS = Path("/proc/self/status")  # Linux
STEPS = 20  # nine of ten values of k occur among so many draws
HEAVY_STEPS = 2


def memory_section(shapes: Sequence[Shape], device: str, steps: int = STEPS) -> Section:
    """MiB at the highest point, both with the same draws of k."""
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
        note = (
            "Allocated by tensors and, as reserved, held by the allocator, graphs included; ours keeps the data there."
        )
        columns += ("plain reserved MiB", "ours reserved MiB")
    else:
        note = "Growth of the resident memory of a fresh process after a warm-up with a tiny batch."
    return Section("memory", "Peak memory", ("B, T, C", *columns, "ours / plain"), tuple(rows), note)


def train_some(which: str, shape: Shape, device: str, steps: int) -> None:
    """A few training steps with the same draws of k for both."""
    train = shape.windows()
    if which == "plain":
        plain_seconds(train.x, shape.batch, counts(0, steps), device)
    else:
        our_seconds(dicot, train, Recipe(steps, shape.batch), device)


def cuda_peak(which: str, shape: Shape, device: str, steps: int) -> list[float]:
    fresh_start(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    train_some(which, shape, device, steps)
    allocated, reserved = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    return [(allocated - before) / MIB, reserved / MIB]


def cpu_peak(which: str, shape: Shape, device: str, steps: int) -> list[float]:
    """In a process of its own, because the peak of a process never falls."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        heavy = shape.batch * shape.n_times > HEAVY_ON_CPU
        return [pool.apply(resident_growth, (which, shape, device, min(steps, HEAVY_STEPS) if heavy else steps))]


def resident_growth(which: str, shape: Shape, device: str, steps: int) -> float:
    train_some(which, Shape(2, 24, shape.n_channels), device, 2)  # what is loaded once does not count
    before = _status()["VmRSS"]
    train_some(which, shape, device, steps)
    return _status()["VmHWM"] - before


def _status() -> dict[str, float]:
    """MiB in memory now (VmRSS) and at most so far (VmHWM); getrusage would count the parent process in."""
    lines = (line.split() for line in STATUS.read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) / 1024 for words in lines if words[-1] == "kB"}
