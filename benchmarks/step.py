"""python -m benchmarks.step [--device cpu]: milliseconds of a training step beside the plain loop's, as a ratio.

Both are measured in the same run, in turns, on the same data; the ratio is that of the medians.
"""

import argparse
import statistics
import time

import numpy as np
import torch

from benchmarks.plain import plain_seconds
from dicot.encoders import InceptionTime
from dicot.methods.dicot import DiCOT
from dicot.train import History, Recipe, pretrain
from dicot.train.draws import plan_generator
from dicot.windows import Windows

SHAPES = ((8, 24, 1), (8, 150, 1), (8, 100, 6))  # batch, time steps, channels
N_CASES = 1024
WARM_UP = 3


def our_seconds(data: np.ndarray, batch: int, steps: int, device: str, seed: int = 0) -> list[float]:
    """Seconds of each step of `pretrain` after the warm-up."""
    torch.manual_seed(seed)
    stamps: list[float] = []

    def stamp(history: History) -> None:
        stamps.append(time.perf_counter())

    method = DiCOT(InceptionTime(data.shape[1]))
    pretrain(method, Windows(data), Recipe(WARM_UP + steps, batch), seed=seed, device=device, on_step=stamp)
    return np.diff(stamps)[WARM_UP - 1 :].tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu"], help="the GPU has its own benchmark")
    parser.add_argument("--steps", type=int, default=6, help="timed steps per turn")
    parser.add_argument("--turns", type=int, default=8, help="many short turns, so that both see the same machine")
    options = parser.parse_args()
    ratios = []
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {options.turns} x {options.steps} steps")
    print(f"{'batch, time, channels':24}{'plain ms':>10}{'ours ms':>10}{'ratio':>8}")
    for batch, n_times, n_channels in SHAPES:
        data = np.random.default_rng(0).normal(size=(N_CASES, n_channels, n_times)).astype(np.float32)
        plain: list[float] = []
        ours: list[float] = []
        for turn in range(options.turns):
            # The cost of a step depends on k, so both draw the same.
            counts = [int(plan_generator(turn, step).integers(2, 11)) for step in range(WARM_UP + options.steps)]
            plain += plain_seconds(data, batch, counts, options.device, seed=turn)[WARM_UP:]
            ours += our_seconds(data, batch, options.steps, options.device, seed=turn)
        a, b = (statistics.median(seconds) * 1e3 for seconds in (plain, ours))
        ratios.append(a / b)
        print(f"{f'{batch}, {n_times}, {n_channels}':24}{a:10.1f}{b:10.1f}{a / b:8.2f}", flush=True)
    print(f"min ratio {min(ratios):.2f}")


if __name__ == "__main__":
    main()
