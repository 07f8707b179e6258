"""python -m benchmarks.embedding [--device cpu]: milliseconds per embedded case beside the plain way, as a ratio.

The plain way is the module stack of `benchmarks.plain` in eval mode: eager, float32, batches of 256. Both have the same
weights, are measured in turns in one run, and must agree; the ratio is that of the medians.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.plain import Block, PlainEncoder
from dicot.embedding import embed
from dicot.encoders import InceptionTime

SHAPES = ((2048, 1, 150), (2048, 6, 100), (512, 6, 500))  # cases, channels, time steps
BATCH = 256
TOLERANCE = 1e-5  # between the embeddings of the two


def pair(n_channels: int) -> tuple[InceptionTime, PlainEncoder]:
    """The same weights twice, with BatchNorm statistics as after a training."""
    torch.manual_seed(0)
    ours, plain = InceptionTime(n_channels), PlainEncoder(n_channels)
    with torch.no_grad():
        ours.train()(torch.randn(32, n_channels, 100))
        plain.project.weight.copy_(ours.input.weight[..., 0])
        plain.project.bias.copy_(ours.input.bias)
    for block, ours_block in zip(plain.blocks, (ours.block0, ours.block1), strict=True):
        assert isinstance(block, Block)
        block.skip[0].load_state_dict(ours_block.residual.conv.state_dict())
        block.skip[1].load_state_dict(ours_block.residual.bn.state_dict())
        for number, module in enumerate(block.path):
            source = getattr(ours_block, f"module{number}")
            for name, other in (("bottleneck", "bottleneck"), ("pool_conv", "poolconv"), ("norm", "bn")):
                getattr(module, name).load_state_dict(getattr(source, other).state_dict())
            for branch, name in zip(module.branches, source.branches, strict=True):
                branch.load_state_dict(getattr(source, name).state_dict())
    return ours.eval(), plain.eval()


def plain_embed(encoder: PlainEncoder, x: np.ndarray, device: str) -> np.ndarray:
    encoder.to(device)
    cases = torch.from_numpy(x.transpose(0, 2, 1).copy())
    with torch.no_grad():
        return np.concatenate([encoder(batch.to(device)).cpu().numpy() for batch in cases.split(BATCH)])


def duration(function: Callable[..., np.ndarray], *args: object, **options: object) -> float:
    started = time.perf_counter()
    function(*args, **options)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    ratios = []
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {options.device}, {options.turns} turns")
    print(f"{'cases, channels, time':24}{'plain ms':>10}{'ours ms':>10}{'ratio':>8}{'difference':>12}")
    for shape in SHAPES:
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        ours, plain = pair(shape[1])
        z, expected = embed(ours, x[:BATCH], device=options.device), plain_embed(plain, x[:BATCH], options.device)
        difference = float(np.abs(z - expected).max())
        assert difference < TOLERANCE or options.device != "cpu", f"the two differ by {difference}"
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(options.turns):
            seconds[0].append(duration(plain_embed, plain, x, device=options.device))
            seconds[1].append(duration(embed, ours, x, device=options.device))
        a, b = (statistics.median(times) * 1e3 / len(x) for times in seconds)
        ratios.append(a / b)
        print(f"{', '.join(map(str, shape)):24}{a:10.3f}{b:10.3f}{a / b:8.2f}{difference:12.1e}", flush=True)
    print(f"min ratio {min(ratios):.2f}")


if __name__ == "__main__":
    main()
