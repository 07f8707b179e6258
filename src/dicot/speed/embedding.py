"""Cases per second of `embed`, beside the plain way: eager float32 in batches of 256 from a DataLoader."""

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from dicot.embedding import embed
from dicot.encoders import Encoder, InceptionTime
from dicot.fitting import seeded_weights
from dicot.progress import Bar
from dicot.speed.ours import fresh_start
from dicot.speed.plain import PlainEncoder, plain_settings
from dicot.speed.reference import Definition
from dicot.speed.sections import Section
from dicot.speed.shapes import Shape

BATCH = 256
N_CASES = {"cpu": 256, "cuda": 32768}
TURNS = {"cpu": 3, "cuda": 5}


def embedding_section(
    shapes: Sequence[Shape], precisions: Sequence[str], device: str, n_cases: int | None = None
) -> Section:
    """Medians of whole passes over the cases, plain and ours in turns, after one pass that does not count."""
    kind = torch.device(device).type
    lengths = dict.fromkeys(shape._replace(batch=BATCH) for shape in shapes)
    units = [(shape, precision) for precision in precisions for shape in lengths]
    rows = []
    with Bar("embedding", len(units)) as bar:
        for number, (shape, precision) in enumerate(units):
            label = f"{shape.n_times}, {shape.n_channels} {precision}"
            bar.update(number, label)
            x = shape.windows(n_cases or N_CASES[kind]).x
            plain, ours = _in_turns(shape, x, precision, device, TURNS[kind])
            deviation = _deviation(shape, x[:BATCH], precision, device)
            rows.append((label, (len(x) / plain, len(x) / ours, plain / ours, deviation)))
    return Section(
        "embedding",
        "Embedding",
        ("T, C, precision", "plain cases/s", "ours cases/s", "ratio", "largest deviation"),
        tuple(rows),
        f"Eval mode, batches of {BATCH}, from host memory and back. The deviation is that of ours from eager float32 "
        "through the encoder's definition with the same weights, relative to the largest value.",
    )


def _in_turns(shape: Shape, x: np.ndarray, precision: str, device: str, turns: int) -> tuple[float, float]:
    encoder = _encoder(InceptionTime, shape)
    plain: list[float] = []
    ours: list[float] = []
    for _ in range(turns + 1):
        fresh_start(device)
        with plain_settings():
            network = PlainEncoder(shape.n_channels).to(device).eval()
            plain.append(_seconds(lambda network=network: plain_embed(network, x, device)))  # type: ignore[misc]
        fresh_start(device)
        ours.append(_seconds(lambda: embed(encoder, x, batch_size=BATCH, device=device, precision=precision)))
    return statistics.median(plain[1:]), statistics.median(ours[1:])


def plain_embed(network: torch.nn.Module, x: np.ndarray, device: str) -> np.ndarray:
    """(N, C, T) -> (N, 256) as a research script would."""
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
