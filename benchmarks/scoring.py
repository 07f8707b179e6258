"""python -m benchmarks.scoring [--cases 20000 100000] [--device cpu]: seconds of scikit-learn and of ours, as a ratio.

Correlated Gaussian classes, standardised; "same" is the share of test cases that get the same label from both, "gain"
the difference in accuracy, ours less scikit-learn's, in points.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier

from dicot.protocols.ridge import ALPHAS
from dicot.solvers import leave_one_out_ridge, nearest, one_vs_rest

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]  # training cases, their classes, test cases
Labels = Callable[[Arrays], np.ndarray]


def embeddings(n: int, n_test: int, f: int, k: int, seed: int = 0) -> tuple[Arrays, np.ndarray]:
    """The arrays and the classes of the test cases.

    Variances fall as a power, as those of an InceptionTime embedding do; the classes overlap.
    """
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(f, f)))[0] * np.arange(1, f + 1) ** -0.75
    centres = 0.25 * rng.normal(size=(k, f))
    y = rng.integers(0, k, n + n_test)
    x = (centres[y] + rng.normal(size=(n + n_test, f))) @ axes.T
    x = (x - x[:n].mean(axis=0)) / x[:n].std(axis=0)
    return (x[:n], y[:n], x[n:]), y[n:]


def sklearn_linear(tolerance: float) -> Labels:
    def labels(data: Arrays) -> np.ndarray:
        x, y, test = data
        models = [LogisticRegression(tol=tolerance, max_iter=1_000_000).fit(x, y == c) for c in np.unique(y)]
        return np.stack([model.decision_function(test) for model in models], axis=1).argmax(axis=1)

    return labels


def sklearn_ridge(data: Arrays) -> np.ndarray:
    return RidgeClassifierCV(alphas=ALPHAS).fit(*data[:2]).predict(data[2])


def sklearn_knn(data: Arrays) -> np.ndarray:
    return KNeighborsClassifier(n_neighbors=1).fit(*data[:2]).predict(data[2])


def our_linear(device: str) -> Labels:
    def labels(data: Arrays) -> np.ndarray:
        _, weights, intercepts = one_vs_rest(*data[:2], device=device)
        return (data[2] @ weights.T + intercepts).argmax(axis=1)

    return labels


def our_ridge(device: str) -> Labels:
    def labels(data: Arrays) -> np.ndarray:
        targets = np.where(data[1][:, None] == np.unique(data[1]), 1.0, -1.0)
        weights, intercepts, _ = leave_one_out_ridge(data[0], targets, ALPHAS, device=device)
        return (data[2] @ weights.T + intercepts).argmax(axis=1)

    return labels


def our_knn(device: str) -> Labels:
    return lambda data: data[1][nearest(data[0], data[2], device=device)]


def timed(labels: Labels, data: Arrays) -> tuple[float, np.ndarray]:
    started = time.perf_counter()
    found = labels(data)
    return time.perf_counter() - started, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, nargs="+", default=[10_000, 20_000, 100_000])
    parser.add_argument("--test-cases", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--classes", type=int, default=18)
    parser.add_argument("--device", default="auto", help="of our solvers; scikit-learn is on the CPU")
    parser.add_argument("--only", nargs="+", default=["linear", "ridge", "knn"], choices=["linear", "ridge", "knn"])
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of scikit-learn's logistic regression")
    options = parser.parse_args()
    pairs = {
        "linear": (sklearn_linear(options.tolerance), our_linear(options.device)),
        "ridge": (sklearn_ridge, our_ridge(options.device)),
        "knn": (sklearn_knn, our_knn(options.device)),
    }
    small, _ = embeddings(500, 100, options.features, options.classes)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, device {options.device}")
    print(f"{'protocol':10}{'cases':>9}{'sklearn s':>11}{'ours s':>9}{'ratio':>8}{'same %':>9}{'gain':>8}")
    for n in options.cases:
        data, truth = embeddings(n, options.test_cases, options.features, options.classes)
        for name in options.only:
            theirs, ours = pairs[name]
            ours(small)  # loads kernels and starts threads
            b, found = timed(ours, data)
            a, expected = timed(theirs, data)
            same = 100 * np.mean(found == expected)
            gain = 100 * (np.mean(found == truth) - np.mean(expected == truth))
            print(f"{name:10}{n:9}{a:11.2f}{b:9.2f}{a / b:8.1f}{same:9.2f}{gain:8.2f}", flush=True)


if __name__ == "__main__":
    main()
