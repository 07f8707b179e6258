"""Cases per second of `embed` beside those of a plain loop: eager float32 in batches of 256 from a DataLoader."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from bench.speed.plain import PlainEncoder, plain_settings
from bench.speed.reference import Definition
from bench.speed.shapes import Shape
from bench.speed.steps import fresh_start
from bench.tables import Row
from dicot.model.embedding import EMBED_PRECISIONS, embed
from dicot.model.fitting import seeded_weights
from dicot.nets.encoders import Encoder, InceptionTime

BATCH = 256
N_CASES = {"cpu": 256, "cuda": 32768}
MOST_TIMES = 2**24  # time steps of all cases together
PRECISIONS = {"cpu": ("float32",), "cuda": EMBED_PRECISIONS}
TURNS = 3


def embedding_rows(shape: Shape, device: str) -> Iterator[Row]:
    """Time whole passes over the cases, plain and ours in turns, after one pass that does not count."""
    kind = torch.device(device).type
    n_cases = min(N_CASES[kind], MOST_TIMES // shape.n_times)
    x = shape.windows(n_cases).x[:n_cases]
    encoder = _seeded(InceptionTime, shape)

    def ours(precision: str) -> np.ndarray:
        return embed(encoder, x, batch_size=BATCH, device=device, precision=precision)

    ways = [partial(_plain, shape, x, device), *(partial(ours, precision) for precision in PRECISIONS[kind])]
    plain, *seconds = _in_turns(ways, device)
    for precision, taken in zip(PRECISIONS[kind], seconds, strict=True):
        yield {
            "T, C, precision": f"{shape.n_times}, {shape.n_channels} {precision}",
            "plain cases/s": n_cases / plain,
            "ours cases/s": n_cases / taken,
            "ratio": plain / taken,
            "largest deviation": _deviation(shape, x[:BATCH], precision, device),
        }


def _in_turns(ways: Sequence[Callable[[], object]], device: str) -> list[float]:
    """Median seconds of each way."""
    passes = []
    for _ in range(TURNS + 1):
        seconds = []
        for way in ways:
            fresh_start(device)
            started = time.perf_counter()
            way()
            seconds.append(time.perf_counter() - started)
        passes.append(seconds)
    return [statistics.median(of_way) for of_way in zip(*passes[1:], strict=True)]


def _plain(shape: Shape, x: np.ndarray, device: str) -> np.ndarray:
    """Embed (N, C, T) -> (N, 256) as a research script would."""
    with plain_settings():
        network = PlainEncoder(shape.n_channels).to(device).eval()
        loader = DataLoader(TensorDataset(torch.from_numpy(x.transpose(0, 2, 1).copy())), batch_size=BATCH)
        with torch.no_grad():
            return np.concatenate([network(batch.to(device)).cpu().numpy() for (batch,) in loader])


def _deviation(shape: Shape, x: np.ndarray, precision: str, device: str) -> float:
    encoder, reference = _seeded(InceptionTime, shape), _seeded(Definition, shape)
    ours = embed(encoder, x, batch_size=BATCH, device=device, precision=precision)
    with torch.no_grad():
        exact = reference.eval().embed(torch.from_numpy(x)).numpy()
    return float(np.abs(ours - exact).max() / np.abs(exact).max())


def _seeded(kind: Callable[[int], Encoder], shape: Shape) -> Encoder:
    with seeded_weights(0):
        return kind(shape.n_channels)
