"""python -m benchmarks.features [SET ...] [--method calibrated] [--seed 1] [--most 400]: what a vector should hold.

One fit per data set; its vectors with and without every part, compressed or not, scored by a ridge classifier and by
the linear probe. "whitened" are principal components as they are: the heads standardise, and so whiten them. At the end
the CPU seconds of `embed` as multiples of those of the mean, for drawn cases of several shapes.
"""

import argparse
import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from dicot.data.datasets import load
from dicot.judge.protocols import Features
from dicot.judge.protocols.embeddings import fit_linear, fit_ridge
from dicot.model.embedding import embed, fit_composition
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.vector.compression import Compression
from dicot.nets.encoders import InceptionTime

SETS = ("Beef", "BirdChicken", "Coffee", "DistalPhalanxTW", "ItalyPowerDemand", "Plane", "SmoothSubspace", "TwoLeadECG")
POOLING, BANK = "mean+max+std", 2016  # features of the bank, which are those of the mixed bank too
SHAPES = ((200, 1, 150), (200, 6, 128), (600, 1, 24), (30, 1, 1000))  # N, C, T
COMPONENTS = (2048, 256)
Pair = tuple[np.ndarray, np.ndarray]
Parts = list[int]


def vectors_of(
    train: np.ndarray, test: np.ndarray, model: TimeSeriesEmbedder, seed: int
) -> dict[str, tuple[Pair, Parts]]:
    """Return training and test vectors by what they hold, and the lengths of the parts they consist of."""
    encoder = model.encoder_
    composition = fit_composition(encoder, train, pooling=POOLING, bank="mixed", seed=seed, device=model.device)
    mean, pooled, whole = (
        [embed(encoder, x, pooling=name, composer=composer, device=model.device) for x in (train, test)]
        for name, composer in (("mean", None), (POOLING, None), (POOLING, composition))
    )
    n = pooled[0].shape[1]
    starts = np.cumsum([0, n, BANK, whole[0].shape[1] - n - BANK])
    multi, bank, contests = (np.arange(*ends) for ends in itertools.pairwise(starts.tolist()))

    def joined(*parts: np.ndarray) -> tuple[Pair, Parts]:
        columns = np.concatenate(parts)
        return (whole[0][:, columns], whole[1][:, columns]), [len(part) for part in parts]

    return {
        "mean": ((mean[0], mean[1]), [mean[0].shape[1]]),
        "multi": ((pooled[0], pooled[1]), [n]),
        "multi + bank": joined(multi, bank),
        "multi + mixed bank": joined(multi, bank, contests),
        "bank": joined(bank),
        "contests": joined(contests),
        "mixed bank": joined(bank, contests),
    }


def compressed(pair: Pair, n: int, parts: Parts) -> Pair:
    compression = Compression.fit(pair[0], n, parts=[(size, 1.0) for size in parts])
    first, second = (compression(torch.from_numpy(z)).numpy() for z in pair)
    return first, second


def whitened(pair: Pair, n: int, parts: Parts) -> Pair:
    """Undo the rotation: principal components of what the compression keeps."""
    first, second = compressed(pair, n, parts)
    turn = np.linalg.svd(first - first.mean(axis=0), full_matrices=False)[2].T
    return first @ turn, second @ turn


def score(train: np.ndarray, labels: np.ndarray, test: np.ndarray, truth: np.ndarray) -> list[float]:
    heads = [fit(Features(train, labels)) for fit in (fit_ridge, fit_linear)]
    return [100 * float(np.mean(head.predict(test) == truth)) for head in heads]


def accuracies(names: list[str], method: str, seed: int, most: int) -> None:
    rows: dict[str, list[list[float]]] = {}
    for name in names:
        split = load(name)
        assert split.test is not None
        model = TimeSeriesEmbedder(method, family=split.family, random_state=seed, device="cpu").fit(split.train)
        chosen = np.random.default_rng(0).permutation(len(split.test))[:most]
        test, truth = np.asarray(split.test.x[:], np.float32)[chosen], np.asarray(split.test.y)[chosen]
        train, labels = np.asarray(split.train.x[:], np.float32), np.asarray(split.train.y)
        for what, (pair, parts) in vectors_of(train, test, model, seed).items():
            variants = {what: pair}
            for n in COMPONENTS:
                variants |= {
                    f"{what}, {n}": compressed(pair, n, parts),
                    f"{what}, {n} whitened": whitened(pair, n, parts),
                }
            for title, (x, z) in variants.items():
                rows.setdefault(title, []).append(score(x, labels, z, truth))
        print(f"{name}: {len(train)} training cases, {len(test)} test cases", flush=True)
    print(f"\n{'mean over sets':34}{'ridge':>8}{'linear':>8}")
    for title, scores in rows.items():
        ridge, linear = np.mean(scores, axis=0)
        print(f"{title:34}{ridge:8.1f}{linear:8.1f}")


def seconds(run: Callable[[], object]) -> float:
    """Return the CPU seconds of the fastest of four runs after a first one."""
    run()
    times = []
    for _ in range(4):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return min(times)


def costs() -> None:
    settings: dict[str, dict[str, Any]] = {
        "multi": {},
        "+ bank": {"bank": BANK},
        "+ mixed": {"bank": "mixed"},
        "+ 2048": {"bank": "mixed", "n_components": 2048},
    }
    print(f"\n{'CPU seconds, mean = 1':24}" + "".join(f"{title:>12}" for title in settings))
    for shape in SHAPES:
        torch.manual_seed(0)
        x = np.random.default_rng(0).normal(size=shape).cumsum(axis=2).astype(np.float32)
        encoder = InceptionTime(shape[1]).eval()
        base = seconds(partial(embed, encoder, x, device="cpu"))
        line = f"{shape!s:24}"
        for given in settings.values():
            composition = fit_composition(encoder, x, pooling=POOLING, device="cpu", **given)
            taken = seconds(partial(embed, encoder, x, pooling=POOLING, composer=composition, device="cpu"))
            line += f"{taken / base:12.2f}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--method", default="calibrated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=400, help="test cases of a set")
    options = parser.parse_args()
    accuracies(options.sets, options.method, options.seed, options.most)
    costs()


if __name__ == "__main__":
    main()
