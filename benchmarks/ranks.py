"""python -m benchmarks.ranks: pretraining by several processes of this machine, beside one process.

Each process has one thread on a CPU, or a GPU of its own. Scaling efficiency is the time of a step in one process,
divided by n times that of n processes: 1 is perfect. `clock` takes the fastest steps on the clock, which needs as many
idle cores as processes. `work` takes the processor time of all processes together: what dividing costs, waiting aside,
and therefore of use on a machine that others use too (CPU only). Processes beyond the number of cores share cores.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dicot.core.processes.launcher import launch

SHAPES = ((8, 24, 1), (8, 150, 1), (128, 100, 6), (128, 24, 1), (64, 500, 3))  # batch, time steps, channels


@dataclass(frozen=True)
class Settings:
    """What is trained."""

    shape: tuple[int, int, int]
    method: str
    steps: int
    precision: str
    device: str


def measure(settings: Settings, out: str) -> None:
    """Train in this process and its fellows; each writes the losses, and the seconds of every step but the first."""
    import torch

    from dicot.methods import Batch, build_method
    from dicot.nets.encoders import build_encoder
    from dicot.train import Recipe, join_ranks, pretrain

    batch_size, n_times, n_channels = settings.shape
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4 * batch_size, n_channels, n_times)).cumsum(axis=2)
    x = ((x - x.mean()) / x.std()).astype(np.float32)
    torch.manual_seed(0)
    encoder = build_encoder("inception_time", {"n_channels": n_channels, "dim": 256})
    method = build_method(settings.method, encoder, {})
    recipe = Recipe(settings.steps, batch_size, precision=settings.precision)
    ticks: list[float] = []
    work: list[float] = []
    original = method.after_step

    def after_step(given: Batch, progress: float) -> None:
        original(given, progress)
        if given.x.is_cuda:
            torch.cuda.synchronize()
        ticks.append(time.perf_counter())
        work.append(time.process_time())

    method.__dict__["after_step"] = after_step
    with join_ranks(device=settings.device) as ranks:
        history = pretrain(method, x, recipe, seed=1, device=settings.device)
        found = {"loss": history.loss, "seconds": np.diff(ticks).tolist(), "work": np.diff(work).tolist()}
        Path(out, f"rank{ranks.place.rank}.json").write_text(json.dumps(found))


def run(world: int, settings: Settings) -> dict[str, list[float]]:
    """Losses of a run by so many processes, seconds of its fastest steps, and processor seconds of all processes."""
    with tempfile.TemporaryDirectory() as folder:
        code = launch(world, ["--worker", json.dumps(asdict(settings)), "--out", folder], "", module="benchmarks.ranks")
        if code:
            sys.exit(code)
        found = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("rank*.json"))]
    # Steps differ (Di-COT draws k), and each is the same step whatever the number of processes.
    return {
        "loss": found[0]["loss"],
        "seconds": found[0]["seconds"],
        "work": np.sum([one["work"] for one in found], axis=0).tolist(),
    }


def fastest(runs: list[dict[str, list[float]]], what: str) -> float:
    """Mean over steps of the shortest time that each step took in any repetition."""
    return statistics.fmean(min(step) for step in zip(*(one[what] for one in runs), strict=True))


def main() -> None:
    """Print one row for each shape and number of processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--shape", type=lambda text: tuple(map(int, text.split(","))), action="append", help="B,T,C")
    parser.add_argument("--method", default="across")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        measure(Settings(**json.loads(options.worker)), options.out)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(f"{options.method}, {options.precision}, {options.device}, {os.cpu_count()} cores, {options.repeats} repeats")
    print("shape (B, T, C)    processes  ms/step   clock   work   largest difference of a loss")
    for shape in options.shape or SHAPES[:3]:
        way = (options.method, options.steps, options.precision, options.device)
        settings = Settings(shape, *way)
        runs: dict[int, list[dict[str, list[float]]]] = {world: [] for world in dict.fromkeys([1, *options.processes])}
        for _ in range(options.repeats):  # in turns: what else the machine does then hits all of them
            for world, found in runs.items():
                found.append(run(world, settings))
        alone = {what: fastest(runs[1], what) for what in ("seconds", "work")}
        for world, found in runs.items():
            seconds, work = fastest(found, "seconds"), fastest(found, "work")
            pairs = zip(found[0]["loss"], runs[1][0]["loss"], strict=True)
            off = max(abs(here - there) / abs(there) for here, there in pairs)
            clock = alone["seconds"] / (world * seconds)
            print(f"{shape!s:18} {world:9d} {1e3 * seconds:8.1f} {clock:7.2f} {alone['work'] / work:6.2f}   {off:.0e}")


if __name__ == "__main__":
    main()
