"""Cases per second of `embed` beside those of a plain loop: eager float32 in batches of 256 from a DataLoader."""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.timing.plain import PlainEncoder, plain_settings
from benchmarks.timing.reference import Definition
from benchmarks.timing.sections import Section
from benchmarks.timing.shapes import Shape
from benchmarks.timing.turns import fresh_start
from dicot.core.progress import Bar
from dicot.model.embedding import EMBED_PRECISIONS, embed
from dicot.model.fitting import seeded_weights
from dicot.nets.encoders import Encoder, InceptionTime

BATCH = 256
N_CASES = {"cpu": 256, "cuda": 32768}
MOST_TIMES = 2**24  # time steps of all cases together
MEASURED_PRECISIONS = {"cpu": ("float32",), "cuda": EMBED_PRECISIONS}
TURNS = 3


def embedding_section(shapes: Sequence[Shape], device: str, n_cases: int | None = None, turns: int = TURNS) -> Section:
    """Time whole passes over the cases, plain and ours in turns, after one pass that does not count."""
    kind = torch.device(device).type
    precisions = MEASURED_PRECISIONS[kind]
    lengths = list(dict.fromkeys(shape._replace(batch=BATCH) for shape in shapes))
    rows = []
    with Bar("embedding", len(lengths)) as bar:
        for number, shape in enumerate(lengths):
            bar.update(number, f"{shape.n_times}, {shape.n_channels}")
            count = n_cases or min(N_CASES[kind], MOST_TIMES // shape.n_times)
            x = shape.windows(count).x[:count]
            plain, *ours = _in_turns(shape, x, precisions, device, turns)
            for precision, seconds in zip(precisions, ours, strict=True):
                deviation = _deviation(shape, x[:BATCH], precision, device)
                label = f"{shape.n_times}, {shape.n_channels} {precision}"
                rows.append((label, (len(x) / plain, len(x) / seconds, plain / seconds, deviation)))
    return Section(
        "embedding",
        "Embedding",
        ("T, C, precision", "plain cases/s", "ours cases/s", "ratio", "largest deviation"),
        tuple(rows),
        f"Eval mode, batches of {BATCH}, from host memory and back. The deviation is that of ours from eager float32 "
        "through the encoder's definition with the same weights, relative to the largest value.",
    )


def _in_turns(shape: Shape, x: np.ndarray, precisions: Sequence[str], device: str, turns: int) -> list[float]:
    """Return the seconds of the plain loop, and of ours in each precision."""
    encoder = _encoder(InceptionTime, shape)

    def plain() -> float:
        with plain_settings():
            network = PlainEncoder(shape.n_channels).to(device).eval()
            return _seconds(lambda: plain_embed(network, x, device))

    def ours(precision: str) -> float:
        return _seconds(lambda: embed(encoder, x, batch_size=BATCH, device=device, precision=precision))

    ways: list[Callable[[], float]] = [plain, *(partial(ours, precision) for precision in precisions)]
    passes = []
    for _ in range(turns + 1):
        seconds = []
        for way in ways:
            fresh_start(device)
            seconds.append(way())
        passes.append(seconds)
    return [statistics.median(of_way) for of_way in zip(*passes[1:], strict=True)]


def plain_embed(network: torch.nn.Module, x: np.ndarray, device: str) -> np.ndarray:
    """Embed (N, C, T) -> (N, 256) as a research script would."""
    loader = DataLoader(TensorDataset(torch.from_numpy(x.transpose(0, 2, 1).copy())), batch_size=BATCH)
    with torch.no_grad():
        return np.concatenate([network(batch.to(device)).cpu().numpy() for (batch,) in loader])


def _deviation(shape: Shape, x: np.ndarray, precision: str, device: str) -> float:
    encoder, reference = _encoder(InceptionTime, shape), _encoder(Definition, shape)
    ours = embed(encoder, x, batch_size=BATCH, device=device, precision=precision)
    with torch.no_grad():
        exact = reference.eval().embed(torch.from_numpy(x)).numpy()
    return float(np.abs(ours - exact).max() / np.abs(exact).max())


def _encoder(kind: Callable[[int], Encoder], shape: Shape) -> Encoder:
    with seeded_weights(0):
        return kind(shape.n_channels)


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
