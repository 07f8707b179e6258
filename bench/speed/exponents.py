"""python -m bench exponents --device cuda --out results/exponents.csv: how the cost of loss and step grows.

The paper says that Di-COT's loss takes O(B k^2 d) and CaTT's O(B^2 T^2 d). A row is the time of one of them, forward
and backward, or of a whole training step, at one size of the quantity in question; all others keep their base. The
exponents are fitted where the file is shown, on the paper's page. Noise, so no data set.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import typer
from torch import Tensor

from bench.options import Device, Out
from bench.speed.walk import alone, timing, wait
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


def exponents(
    out: Out,
    device: Device = "auto",
    steps: Annotated[int | None, typer.Option(min=2, help="Steps of a run; default 30, on a CPU 3.")] = None,
) -> None:
    """Time loss and step against B, T, k and d, and write the file after each curve."""
    resolved = resolve_device(device)
    steps = steps or (30 if resolved.type == "cuda" else 3)
    load_optimisers()
    rows: list[dict[str, Any]] = []
    for curve in curves(resolved.type):
        for size in curve.sizes:
            try:
                rows.append(measured(curve, size, resolved, steps))
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                break  # larger ones do not fit either
        write_atomic(out, pd.DataFrame(rows).to_csv(index=False).encode())
        typer.echo(f"{curve.what} of {curve.method} against {curve.quantity}")


def curves(kind: str) -> Iterator[Curve]:
    """List what is measured on this kind of device: on a CPU smaller sizes, and fewer."""
    for curve in CUDA:
        if kind == "cuda":
            yield curve
            continue
        is_step = curve.what == "step"
        base = curve.base._replace(B=max(8, curve.base.B // (16 if is_step else 64)), T=curve.base.T // 4)
        sizes = curve.sizes
        if sizes[0] == 512:
            sizes = tuple(size // 16 for size in sizes)
        yield curve._replace(sizes=sizes[:4] if is_step else sizes[:-1], base=base)


def measured(curve: Curve, size: int, device: torch.device, steps: int) -> dict[str, Any]:
    """A row of the file."""
    sizes = curve.base._replace(**{curve.quantity: size})
    ms = loss_ms(curve, sizes, device) if curve.what == "loss" else step_ms(curve, sizes, device, steps)
    others = curve.base._replace(**{curve.quantity: 0})._asdict()
    return {
        "what": curve.what,
        "method": curve.method,
        "quantity": curve.quantity,
        "size": size,
        "ms": f"{ms:.5g}",
        "paper": "" if curve.paper is None else curve.paper,
        "base": ", ".join(f"{name} = {value}" for name, value in others.items() if value),
        "precision": PRECISION,
        "device": describe_device(device, alone=True),
        "torch": torch.__version__,
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def loss_ms(curve: Curve, sizes: Sizes, device: torch.device) -> float:
    """Milliseconds of a loss of random embeddings and its gradient; on a GPU as a CUDA graph, as in a training."""
    shape = (sizes.B, sizes.k if curve.method == "dicot" else sizes.T, sizes.d)
    z = torch.randn(shape, device=device, requires_grad=True)

    def work() -> Tensor:
        z.grad = None
        loss = adjacent_block(z, 0.1) if curve.method == "dicot" else adjacent_step(z, 0.5)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    def seconds(repeats: int) -> float:
        started = time.perf_counter()
        for _ in range(repeats):
            run()
        wait(device)
        return (time.perf_counter() - started) / repeats

    run: Any = work
    with alone(device, PRECISION):
        work()
        work()
        if device.type == "cuda":
            graph, _ = capture(work)
            run = graph.replay
            run()
        wait(device)
        repeats = int(np.clip(SECONDS / seconds(1), 3, REPEATS))
        return 1e3 * min(seconds(repeats) for _ in range(3))


def step_ms(curve: Curve, sizes: Sizes, device: torch.device, steps: int) -> float:
    """Milliseconds of a training step."""
    torch.manual_seed(1)
    params = {"k": sizes.k} if curve.method == "dicot" else {}
    method = build_method(curve.method, InceptionTime(CHANNELS), params)
    x = np.random.default_rng(0).standard_normal((2 * sizes.B, CHANNELS, sizes.T), dtype=np.float32)
    recipe = Recipe(steps, sizes.B, precision=PRECISION)
    return timing(method, Windows(x, name="noise"), recipe, device, max(1, steps // 3), SECONDS).step_ms
