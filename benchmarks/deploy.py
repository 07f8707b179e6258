"""python -m benchmarks.deploy [SET ...] [--threads 2] [--cases 200]: the time of a window, and int8.

First the time of a window, from raw values to its vector, alone and among others, for several models and shapes, in
Python and by onnxruntime: milliseconds of the clock (the median, and the fastest) and of the CPU, all threads together.
The models are fitted on so many drawn cases, of long windows on 20. With data sets instead, size, time and
the accuracy of a linear probe with the weights of the convolutions as they are and rounded to 8 bits: "dynamic", where
the scale of activations is found window by window, and "static", where training windows have fixed it. A clock on a
busy machine tells little: see the CPU's, with one thread.
"""

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dicot.core.errors import InputError
from dicot.data.datasets import load
from dicot.judge.protocols import Features
from dicot.judge.protocols.embeddings import fit_linear
from dicot.model.deployed import CHANGED, INPUT, SEAL, OnnxEmbedder
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.export import export_onnx
from dicot.model.kernels import MOST_FEATURES, Bank

MODELS = ("instant", "best-2026.11", "dicot-base")  # presets, and the model in the box
SHAPES = ((6, 128), (1, 150), (1, 3000))  # C, T; the first is that of HAPT
PRESETS = ("instant", "best-2026.11", "paper")
SETS = ("ItalyPowerDemand", "TwoLeadECG", "Plane", "Coffee")
LONG = 1000  # time steps from which on few cases are drawn: more would take minutes to fit
CALIBRATION = 50  # training windows that the scale of activations is taken from
Way = Callable[[np.ndarray], object]


def cost(run: Callable[[], object], seconds: float = 2.0, least: int = 10) -> tuple[float, float, float]:
    """Return milliseconds of a call: median and least of the clock, median of the CPU; two calls go before."""
    run()
    run()
    clock, cpu = list[float](), list[float]()
    started = time.perf_counter()
    while len(clock) < least or time.perf_counter() - started < seconds:
        now, worked = time.perf_counter(), time.process_time()
        run()
        clock.append(1000 * (time.perf_counter() - now))
        cpu.append(1000 * (time.process_time() - worked))
    return float(np.median(clock)), min(clock), float(np.median(cpu))


def ways_of(x: np.ndarray, folder: Path, threads: int) -> Iterator[tuple[str, str, int, Way, float]]:
    """Give each model, what computes it, the length of its vectors, the function, and its file's megabytes or 0."""
    for name in MODELS:
        if name == "dicot-base":
            model = TimeSeriesEmbedder.from_pretrained(name, device="cpu")
        else:
            model = TimeSeriesEmbedder(preset=name, steps=1, random_state=0, device="cpu", verbose=False).fit(x)
        model.verbose = False
        torch.set_num_threads(threads)
        yield name, "dicot", model.transform(x[:1]).shape[1], model.transform, 0.0
        with suppress(InputError):  # one that cannot be exported has no second row
            made = export_onnx(model, folder / "model.onnx")
            deployed = OnnxEmbedder(made.path, threads=threads)
            yield name, "onnxruntime", deployed.n_features, deployed.transform, made.n_bytes / 1e6
    bank = Bank.fit(x, MOST_FEATURES)
    yield "MiniRocket", "dicot", bank.n_features, lambda x: bank(torch.from_numpy(x)), 0.0
    try:
        from aeon.transformations.collection.convolution_based import MiniRocket
    except ImportError:
        return
    rocket = MiniRocket(n_jobs=threads, random_state=0).fit(x)
    yield "MiniRocket", "aeon", MOST_FEATURES, rocket.transform, 0.0


def windows(folder: Path, threads: int, cases: int, batch: int, shapes: list[tuple[int, int]], seconds: float) -> None:
    print(f"ms of a window alone and of {batch} at once, {threads} thread(s), models fitted on {cases} windows")
    titles = f"{'median':>10}{'least':>10}{'CPU':>10}{'at once':>10}{'CPU':>10}{'MB':>8}"
    print(f"{'model':14}{'channels, time':>16}{'vector':>8}{'by':>14}{titles}")
    for shape in shapes:
        n_cases = min(cases, 20) if shape[1] >= LONG else cases
        drawn = np.random.default_rng(0).normal(size=(max(n_cases, batch), *shape))
        x = drawn.cumsum(axis=2).astype(np.float32)
        for name, by, length, way, size in ways_of(x[:n_cases], folder, threads):
            alone = cost(partial(way, x[:1]), seconds)
            together = cost(partial(way, x[:batch]), seconds, 3)
            times = "".join(f"{ms:10.2f}" for ms in (*alone, together[0] / batch, together[2] / batch))
            print(f"{name:14}{shape!s:>16}{length:8}{by:>14}{times}{f'{size:8.1f}' if size else ''}", flush=True)


class Calibration:
    """Training windows, one at a time, as onnxruntime's quantisation asks for them."""

    def __init__(self, x: np.ndarray) -> None:
        self.windows: Iterator[np.ndarray] = iter(x[:CALIBRATION, None])

    def get_next(self) -> dict[str, np.ndarray] | None:
        window = next(self.windows, None)
        return None if window is None else {INPUT: window}


def in_8_bits(source: Path, x: np.ndarray) -> dict[str, Path]:
    """Write the file with the weights of its convolutions in 8 bits, and return both ways by name."""
    import onnx
    from onnxruntime import quantization as q

    logging.getLogger().setLevel(logging.ERROR)  # it advises to optimise the file before, which changes nothing here
    convolutions = [node.name for node in onnx.load(source).graph.node if node.op_type == "Conv"]
    made = {f"int8, {way}": source.with_name(f"{way}.onnx") for way in ("dynamic", "static")}
    settings: dict[str, Any] = {
        "nodes_to_quantize": convolutions,
        "per_channel": True,
        "weight_type": q.QuantType.QInt8,
    }
    q.quantize_dynamic(source, made["int8, dynamic"], **settings)
    q.quantize_static(source, made["int8, static"], Calibration(x), quant_format=q.QuantFormat.QDQ, **settings)
    for path in made.values():  # changed on purpose
        model = onnx.load(path)
        kept = {entry.key: entry.value for entry in model.metadata_props}
        onnx.helper.set_model_props(model, {**kept, SEAL: CHANGED})
        onnx.save(model, path)
    return made


def accuracies(folder: Path, sets: list[str], preset: str, threads: int, seed: int, steps: int | None) -> None:
    trained = "" if steps is None else f", {steps} training steps"
    print(f"linear probe on embeddings of the preset {preset}{trained}, {threads} thread(s)")
    print(f"{'set':18}{'file':>16}{'MB':>8}{'CPU ms':>10}{'accuracy':>10}{'difference':>12}")
    for name in sets:
        split = load(name)
        assert split.test is not None and split.train.y is not None and split.test.y is not None
        train, test = (np.asarray(part.x[:], np.float32) for part in (split.train, split.test))
        model = TimeSeriesEmbedder(preset=preset, steps=steps, random_state=seed, device="cpu").fit(train)
        source = export_onnx(model, folder / "float.onnx").path
        whole = np.empty(0)
        for title, path in {"float32": source, **in_8_bits(source, train)}.items():
            deployed = OnnxEmbedder(path, threads=threads)
            z, vectors = deployed.transform(train), deployed.transform(test)
            whole = vectors if title == "float32" else whole
            apart = np.linalg.norm(vectors - whole, axis=1) / np.linalg.norm(whole, axis=1)
            predicted = fit_linear(Features(z, split.train.y)).predict(vectors)
            accuracy = 100 * float(np.mean(predicted == split.test.y))
            cpu = cost(partial(deployed.transform, test[:1]))[2]
            size = path.stat().st_size / 1e6
            print(f"{name:18}{title:>16}{size:8.1f}{cpu:10.1f}{accuracy:10.1f}{apart.mean():12.4f}", flush=True)


def shapes_of(text: str) -> list[tuple[int, int]]:
    """Parse shapes such as 6x128,1x150."""
    pairs = [tuple(map(int, part.split("x"))) for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} are no shapes such as 6x128,1x150")
    return [(channels, times) for channels, times in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=[], help="data sets for int8; 'all' stands for the usual ones")
    parser.add_argument("--preset", choices=PRESETS, default=PRESETS[0], help="of the models for int8")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", type=int, default=200, help="that the models of drawn cases are fitted on")
    parser.add_argument("--batch", type=int, default=64, help="windows that are embedded at once")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="that each way is called for; more on a busy machine"
    )
    parser.add_argument("--shapes", type=shapes_of, default=list(SHAPES), help="CxT, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="training steps on the data sets; default: the preset's")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.sets:
            sets = list(SETS) if options.sets == ["all"] else options.sets
            accuracies(Path(folder), sets, options.preset, options.threads, options.seed, options.steps)
        else:
            windows(Path(folder), options.threads, options.cases, options.batch, options.shapes, options.seconds)


if __name__ == "__main__":
    main()
