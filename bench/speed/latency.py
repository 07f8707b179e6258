"""Milliseconds of a window: from raw values to its vector, and as a push of a stream."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from bench import options
from bench.clock import Cost, cost
from bench.options import Seconds, Threads
from bench.tables import Row, markdown
from dicot import EmbeddingOutlierDetector, FewLabelClassifier, OnnxEmbedder, Stream, TimeSeriesEmbedder, export_onnx
from dicot.core.errors import InputError
from dicot.model.kernels import MOST_FEATURES, Bank

BOXED = "dicot-base"  # the model that comes with dicot
MODELS = ("instant", BOXED)
BATCH = 64  # windows that are embedded at once

Way = tuple[str, str, Callable[[np.ndarray], np.ndarray]]  # model, what computes it, the function
Shapes = Annotated[str, typer.Option(help="channels x time steps, separated by commas.")]
Cases = Annotated[int, typer.Option(help="Windows that the models are fitted on.")]


def window(
    shapes: Shapes = "6x128,6x500",
    cases: Cases = 40,
    threads: Threads = 1,
    seconds: Seconds = 2.0,
) -> None:
    """Milliseconds from raw values to a vector, for a window alone and among 64."""
    torch.set_num_threads(threads)
    rows: list[Row] = []
    for shape in shapes.split(","):
        x = random_walks(shape, max(cases, BATCH))
        with tempfile.TemporaryDirectory() as folder:
            for model, by, transform in ways(x[:cases], Path(folder), threads):
                alone = cost(partial(transform, x[:1]), seconds)
                among = cost(partial(transform, x[:BATCH]), seconds, fewest=3)
                rows.append(
                    {
                        "model": model,
                        "by": by,
                        "window": shape,
                        "numbers": transform(x[:1]).shape[1],
                        "CPU ms alone": alone.processor,
                        f"CPU ms among {BATCH}": among.processor / BATCH,
                        "shortest ms alone": alone.shortest,
                    }
                )
    typer.echo(markdown(rows))


def random_walks(shape: str, n: int) -> np.ndarray:
    channels, n_times = options.shape(shape, "x")
    return np.random.default_rng(0).normal(size=(n, channels, n_times)).cumsum(axis=2).astype(np.float32)


def model_of(name: str, x: np.ndarray) -> TimeSeriesEmbedder:
    if name == BOXED:
        return TimeSeriesEmbedder.from_pretrained(name, device="cpu")
    return TimeSeriesEmbedder(preset=name, random_state=0, device="cpu", verbose=False).fit(x)


def ways(x: np.ndarray, folder: Path, threads: int) -> Iterator[Way]:
    """Every model by dicot and by onnxruntime, and MiniRocket by dicot and by aeon."""
    for name in MODELS:
        model = model_of(name, x)
        yield name, "dicot", model.transform
        with suppress(InputError):  # one that cannot be exported has no second row
            path = export_onnx(model, folder / "model.onnx").path
            yield name, "onnxruntime", OnnxEmbedder(path, threads=threads).transform
    bank = Bank.fit(x, MOST_FEATURES)
    yield "MiniRocket", "dicot", lambda x: bank(torch.from_numpy(x)).numpy()
    with suppress(ImportError):
        from aeon.transformations.collection.convolution_based import MiniRocket

        yield "MiniRocket", "aeon", MiniRocket(n_jobs=threads, random_state=0).fit(x).transform


def push(
    shapes: Shapes = "6x128,2x720,6x500",
    cases: Cases = 300,
    seconds: Seconds = 3.0,
) -> None:
    """Milliseconds of a push that completes a window of a stream, on one core."""
    torch.set_num_threads(1)
    rows: list[Row] = []
    for shape in shapes.split(","):
        x = random_walks(shape, cases)
        for name in MODELS:
            model = model_of(name, x)
            with tempfile.TemporaryDirectory() as folder:
                for by, stream in streams(model, x, Path(folder)):
                    taken = push_cost(stream, x, seconds)
                    times = {"shortest ms": taken.shortest, "CPU ms": taken.processor}
                    rows.append({"window": shape, "model": name, "by": by, **times})
    typer.echo(markdown(rows))


def streams(model: TimeSeriesEmbedder, x: np.ndarray, folder: Path) -> Iterator[tuple[str, Stream]]:
    """A stream by torch, with a classifier and an outlier detector of as many windows, and by onnxruntime."""
    z = model.transform(x)
    head = FewLabelClassifier().fit(z, np.arange(len(x)) % 3)
    detector = EmbeddingOutlierDetector().fit(z)
    n_times = x.shape[2]
    yield "torch", Stream(model, window=n_times, stride=n_times)
    with_class = Stream(model, head=head, detector=detector, window=n_times, stride=n_times)
    yield "torch, with class and outlier", with_class
    path = export_onnx(model, folder / "model.onnx").path
    yield "onnxruntime", Stream(OnnxEmbedder(path, threads=1), window=n_times, stride=n_times)


def push_cost(stream: Stream, x: np.ndarray, seconds: float) -> Cost:
    numbers = count()
    return cost(lambda: stream.push(x[next(numbers) % len(x)].T), seconds)
