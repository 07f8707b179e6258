"""Fine-tuning beside the frozen probe: `python benchmarks/tuning.py ItalyPowerDemand CBF --seeds 1 2`.

For every data set, embedder, seed and number of labels: accuracy of the frozen probe, of all weights trained at once,
and of gradual tuning, on at most --test test cases. One thread.
"""

import argparse
import time
from itertools import product
from typing import Any

import numpy as np
import torch

from dicot import TimeSeriesClassifier, TimeSeriesEmbedder, load
from dicot.data import Windows
from dicot.judge.protocols.base import fixed_per_class

WAYS: dict[str, dict[str, Any]] = {"probe": {"steps": 0}, "all": {"tuning": "all"}, "gradual": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--embedders", nargs="+", default=["calibrated", "dicot"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--per-class", nargs="+", type=int, default=[0], help="labels per class; 0 is all")
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--steps", type=int, default=60, help="of pretraining")
    parser.add_argument("--test", type=int, default=200, help="test cases, drawn with seed 0")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| set | labels per class | embedder | seed | probe | all | gradual | kept | seconds |\n" + "|---" * 9 + "|")
    table = []
    for name, kind, seed, count in product(arguments.sets, arguments.embedders, arguments.seeds, arguments.per_class):
        split = load(name)
        assert split.test is not None and split.train.y is not None
        test = some(split.test, arguments.test)
        settings: dict[str, Any] = {"random_state": seed, "device": "cpu", "verbose": False}
        embedder = TimeSeriesEmbedder(kind, family="ucr", dim=arguments.dim, steps=arguments.steps, **settings)
        embedder.fit(split.train.x)
        train = split.train
        if count:
            train = train.subset(fixed_per_class(split.train.y, count, seed))
        accuracies, seconds, kept = [], [], ""
        for way in WAYS.values():
            started = time.perf_counter()
            model = TimeSeriesClassifier(embedder, **settings, **way).fit(train, train.y)
            seconds.append(f"{time.perf_counter() - started:.1f}")
            accuracies.append(model.score(test.x, test.y))
            if hasattr(model, "tuned_"):
                kept = f"{model.tuned_.kept} {model.tuned_.step}"
        table.append(accuracies)
        cells = [name, str(count or "all"), kind, str(seed), *(f"{100 * a:.1f}" for a in accuracies), kept]
        print("| " + " | ".join([*cells, " / ".join(seconds)]) + " |", flush=True)
    print("mean: " + ", ".join(f"{way} {100 * a:.1f}" for way, a in zip(WAYS, np.mean(table, axis=0), strict=True)))


def some(windows: Windows, most: int) -> Windows:
    return windows.subset(np.sort(np.random.default_rng(0).permutation(len(windows))[:most]))


if __name__ == "__main__":
    main()
