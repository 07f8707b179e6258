"""python -m benchmarks.stream [--cases 300] [--seconds 3]: milliseconds of a push that completes a window, on one core.

For each shape and model: by torch, by torch with a classifier and an outlier detector of as many windows, and by
onnxruntime. A push brings the samples of a whole window. The least time of the clock is the one that tells something on
a busy machine; the CPU's is a median.
"""

import argparse
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.deploy import cost
from dicot import EmbeddingOutlierDetector, FewLabelClassifier, OnnxEmbedder, Stream, TimeSeriesEmbedder, export_onnx

SHAPES = ((6, 128), (2, 720), (6, 500))


def main(n_cases: int, seconds: float) -> None:
    torch.set_num_threads(1)
    print("| window | model | numbers | by | least ms | median CPU ms |\n|---|---|---:|---|---:|---:|")
    for shape in SHAPES:
        x = np.random.default_rng(0).normal(size=(n_cases, *shape)).cumsum(axis=2).astype(np.float32)
        for name in ("dicot-base", "instant"):
            if name == "dicot-base":
                model = TimeSeriesEmbedder.from_pretrained(name, device="cpu")
            else:
                model = TimeSeriesEmbedder(preset=name, random_state=0, device="cpu", verbose=False).fit(x)
            z = model.transform(x)
            head, detector = FewLabelClassifier().fit(z, np.arange(n_cases) % 3), EmbeddingOutlierDetector().fit(z)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.onnx"
                export_onnx(model, path)
                cut: dict[str, Any] = {"window": shape[1], "stride": shape[1]}
                streams = {
                    "torch": Stream(model, **cut),
                    "torch, with class and outlier": Stream(model, head=head, detector=detector, **cut),
                    "onnxruntime": Stream(OnnxEmbedder(path, threads=1), **cut),
                }
            for by, stream in streams.items():
                numbers = count()
                _, least, cpu = cost(lambda: stream.push(x[next(numbers) % n_cases].T), seconds)  # noqa: B023
                print(f"| {shape} | {name} | {z.shape[1]:,} | {by} | {least:.1f} | {cpu:.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    main(arguments.cases, arguments.seconds)
