"""python -m benchmarks.exponents --device cuda --out results/exponents.csv: how the cost of loss and step grows.

The paper says that Di-COT's loss takes O(B k^2 d) and CaTT's O(B^2 T^2 d). A row is the time of one of them, forward
and backward, or of a whole training step, at one size of the quantity in question; all others keep their base. The
exponents are fitted where the file is shown, by `dicot paper`. Noise, so no data set. Needs torch and numpy.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.tables import as_csv
from benchmarks.timing.walk import alone, timing, wait
from dicot.core.device import describe_device, load_optimisers, out_of_memory, resolve_device
from dicot.core.storage import write_atomic
from dicot.core.transfer import capture
from dicot.data import Windows
from dicot.methods import build_method
from dicot.methods.catt import adjacent_step
from dicot.nets.encoders import InceptionTime
from dicot.nets.losses import adjacent_block
from dicot.train.recipe import Recipe

PRECISION = "tf32"
CHANNELS = 3
SECONDS = 0.4  # that a point is repeated for
REPEATS = 50
STEPS, WARM_UP = 30, 10


class Sizes(NamedTuple):
    """What the cost may depend on."""

    B: int  # cases of a batch
    T: int  # time steps of a case
    k: int  # sub-blocks of a case
    d: int  # numbers of a vector


class Curve(NamedTuple):
    """What is timed, against which quantity, and what the paper says of it."""

    what: str  # "loss" or "step"
    method: str
    quantity: str
    sizes: tuple[int, ...]
    base: Sizes
    paper: int | None  # the exponent; None where it says nothing


LOSS, CATT_LOSS = Sizes(4096, 0, 32, 256), Sizes(16, 256, 0, 256)
STEP, CATT_STEP = Sizes(128, 512, 10, 256), Sizes(16, 256, 0, 256)
CUDA = (
    Curve("loss", "dicot", "B", (512, 1024, 2048, 4096, 8192, 16384, 32768), LOSS, 1),
    Curve("loss", "dicot", "k", (8, 16, 32, 64, 128, 256, 512, 1024), LOSS._replace(B=64), 2),
    Curve("loss", "dicot", "d", (32, 64, 128, 256, 512, 1024, 2048), LOSS, 1),
    Curve("loss", "catt", "B", (4, 8, 16, 32, 64, 128), CATT_LOSS, 2),
    Curve("loss", "catt", "T", (64, 128, 256, 512, 1024, 2048), CATT_LOSS, 2),
    Curve("step", "dicot", "B", (8, 16, 32, 64, 128, 256, 512), STEP, None),
    Curve("step", "dicot", "T", (64, 128, 256, 512, 1024, 2048), STEP, None),
    Curve("step", "dicot", "k", (2, 3, 5, 10, 15, 20), STEP, None),
    Curve("step", "catt", "B", (4, 8, 16, 32, 64, 128), CATT_STEP, None),
    Curve("step", "catt", "T", (64, 128, 256, 512, 1024, 2048), CATT_STEP, None),
)


def curves(kind: str) -> Iterator[Curve]:
    """List what is measured on this kind of device: on a CPU smaller sizes, and fewer."""
    for curve in CUDA:
        step = curve.what == "step"
        if kind == "cuda":
            yield curve
        else:
            base = curve.base._replace(B=max(8, curve.base.B // (16 if step else 64)), T=curve.base.T // 4)
            sizes = tuple(size // 16 for size in curve.sizes) if curve.sizes[0] == 512 else curve.sizes
            yield curve._replace(sizes=sizes[:4] if step else sizes[:-1], base=base)


def loss_of(curve: Curve, sizes: Sizes, device: torch.device) -> Callable[[], object]:
    """Give what computes the loss of random embeddings and its gradient."""
    shape = (sizes.B, sizes.k if curve.method == "dicot" else sizes.T, sizes.d)
    z = torch.randn(shape, device=device, requires_grad=True)

    def work() -> Tensor:
        z.grad = None
        loss = adjacent_block(z, 0.1) if curve.method == "dicot" else adjacent_step(z, 0.5)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    return work


def loss_ms(curve: Curve, sizes: Sizes, device: torch.device) -> float:
    """Milliseconds of a loss and its gradient; on a GPU as a CUDA graph, as in a training, so that the host is out."""
    with alone(device, PRECISION):
        work = loss_of(curve, sizes, device)
        for _ in range(2):
            work()
        if device.type == "cuda":
            graph, _ = capture(work)
            work = graph.replay
            work()
        wait(device)
        started = time.perf_counter()
        work()
        wait(device)
        repeats = int(np.clip(SECONDS / (time.perf_counter() - started), 3, REPEATS))
        times = []
        for _ in range(3):
            started = time.perf_counter()
            for _ in range(repeats):
                work()
            wait(device)
            times.append((time.perf_counter() - started) / repeats)
    return 1e3 * min(times)


def step_ms(curve: Curve, sizes: Sizes, device: torch.device, steps: int) -> float:
    """Milliseconds of a training step."""
    torch.manual_seed(1)
    method = build_method(curve.method, InceptionTime(CHANNELS), {"k": sizes.k} if curve.method == "dicot" else {})
    x = np.random.default_rng(0).standard_normal((2 * sizes.B, CHANNELS, sizes.T), dtype=np.float32)
    recipe = Recipe(steps, sizes.B, precision=PRECISION)
    return timing(method, Windows(x, name="noise"), recipe, device, max(1, steps // 3), SECONDS).step_ms


def main() -> None:
    """Measure all curves, and write the file after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, help=f"of a run; default {STEPS}, on a CPU 3")
    options = parser.parse_args()
    if options.steps is not None and options.steps < 2:
        parser.error(f"--steps must be 2 or more, one of them to warm up; got {options.steps}.")
    device, started = resolve_device(options.device), time.perf_counter()
    steps = options.steps or (STEPS if device.type == "cuda" else 3)
    load_optimisers()
    rows: list[dict[str, Any]] = []
    for curve in curves(device.type):
        for size in curve.sizes:
            sizes = curve.base._replace(**{curve.quantity: size})
            try:
                ms = loss_ms(curve, sizes, device) if curve.what == "loss" else step_ms(curve, sizes, device, steps)
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                break  # larger ones do not fit either
            facts = {"precision": PRECISION, "device": describe_device(device, alone=True), "torch": torch.__version__}
            facts["recorded"] = datetime.now(UTC).isoformat(timespec="seconds")
            base = ", ".join(
                f"{name} = {value}" for name, value in curve.base._asdict().items() if value and name != curve.quantity
            )
            paper = "" if curve.paper is None else curve.paper
            row = {
                "what": curve.what,
                "method": curve.method,
                "quantity": curve.quantity,
                "size": size,
                "ms": f"{ms:.5g}",
            }
            rows.append({**row, "paper": paper, "base": base, **facts})
        write_atomic(options.out, as_csv(rows))
        print(
            f"{time.perf_counter() - started:6.1f} s  {curve.what} of {curve.method} against {curve.quantity}",
            flush=True,
        )
    print(f"Wrote {len(rows)} rows to {options.out}")


if __name__ == "__main__":
    main()
