"""python -m benchmarks.scoring [--cases 20000 100000] [--classes 6 18] [--file FILE.npz]: cost of scoring.

Each protocol by the ways to solve it, the one that it uses first: CPU seconds, which a busy machine changes least, the
objective reached by logistic regression, the accuracy, and the share of test cases that get the label of the first.

The cases are correlated Gaussian classes, or embeddings from a file with x, y (training) and xt, yt (test).
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from dicot.judge.protocols.embeddings import ALPHAS


class Data(NamedTuple):
    """Training cases, their classes from 0, test cases and theirs."""

    x: np.ndarray
    y: np.ndarray
    test: np.ndarray
    truth: np.ndarray


class Answer(NamedTuple):
    """Labels of the test cases, and what the solver minimises, at its solution, per case."""

    labels: np.ndarray
    objective: float = float("nan")


def gaussian(n: int, n_test: int, f: int, k: int, seed: int = 0) -> Data:
    """Draw overlapping classes whose variances fall as a power, as those of an InceptionTime embedding do."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(f, f)))[0] * np.arange(1, f + 1) ** -0.75
    centres = 0.25 * rng.normal(size=(k, f))
    y = rng.integers(0, k, n + n_test)
    x = (centres[y] + rng.normal(size=(n + n_test, f))) @ axes.T
    x = (x - x[:n].mean(axis=0)) / x[:n].std(axis=0)
    return Data(x[:n], y[:n], x[n:], y[n:])


def from_file(path: Path) -> Data:
    """Read embeddings with their labels, and standardise them."""
    with np.load(path, allow_pickle=False) as file:
        scaler = StandardScaler().fit(file["x"].astype(np.float64))
        classes, y = np.unique(file["y"], return_inverse=True)
        x, test = (scaler.transform(file[part].astype(np.float64)) for part in ("x", "xt"))
        return Data(x, y, test, np.searchsorted(classes, file["yt"]))


def linear_answer(data: Data, weights: np.ndarray, intercepts: np.ndarray) -> Answer:
    """The labels and the objective of one-vs-rest logistic regression with C = 1."""
    scores = data.test @ weights.T + intercepts
    two = len(weights) == 1
    signs = np.where(data.y[:, None] == ([1] if two else np.arange(len(weights))), 1.0, -1.0)
    losses = np.logaddexp(0, -signs * (data.x @ weights.T + intercepts)).sum() + 0.5 * np.square(weights).sum()
    return Answer((scores[:, 0] > 0).astype(int) if two else scores.argmax(axis=1), losses / len(data.x))


def sklearn_linear(solver: str, tolerance: float) -> Callable[[Data], tuple[np.ndarray, np.ndarray]]:
    def solve(data: Data) -> tuple[np.ndarray, np.ndarray]:
        classes = np.unique(data.y)
        models = [
            LogisticRegression(solver=solver, tol=tolerance, max_iter=1_000_000).fit(data.x, data.y == c)
            for c in (classes if len(classes) > 2 else classes[1:])
        ]
        return np.concatenate([m.coef_ for m in models]), np.concatenate([m.intercept_ for m in models])

    return solve


Ways = dict[str, Callable[[Data], Any]]

LINEAR: Ways = {
    "lbfgs, 1e-4": sklearn_linear("lbfgs", 1e-4),
    "newton-cholesky, 1e-4": sklearn_linear("newton-cholesky", 1e-4),
    "lbfgs, 1e-8": sklearn_linear("lbfgs", 1e-8),
}
RIDGE: Ways = {
    "scikit-learn": lambda data: RidgeClassifierCV(alphas=ALPHAS).fit(data.x, data.y).predict(data.test),
}
KNN: Ways = {
    "scikit-learn": lambda data: KNeighborsClassifier(n_neighbors=1).fit(data.x, data.y).predict(data.test),
}
PROTOCOLS = {"linear": LINEAR, "ridge": RIDGE, "knn": KNN}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[6, 18])
    parser.add_argument("--test-cases", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--file", type=Path, help="embeddings instead of drawn cases")
    parser.add_argument("--only", nargs="+", default=list(PROTOCOLS), choices=list(PROTOCOLS))
    options = parser.parse_args()
    drawn = [(n, k) for n in options.cases for k in options.classes]
    columns = ("CPU s", "objective", "accuracy", "same %")
    print(f"{'protocol':10}{'cases':>8}{'classes':>8}  {'by':24}" + "".join(f"{column:>11}" for column in columns))
    for n, k in drawn if options.file is None else [(0, 0)]:
        data = from_file(options.file) if options.file else gaussian(n, options.test_cases, options.features, k)
        for name in options.only:
            first = None
            for way, solve in PROTOCOLS[name].items():
                started = time.process_time()
                solution = solve(data)
                seconds = time.process_time() - started
                answer = linear_answer(data, *solution) if name == "linear" else Answer(solution)
                first = answer.labels if first is None else first
                size = f"{len(data.x):8}{len(np.unique(data.y)):8}"
                right, same = (100 * np.mean(answer.labels == labels) for labels in (data.truth, first))
                numbers = f"{seconds:11.2f}{answer.objective:11.6f}{right:11.2f}{same:11.3f}"
                print(f"{name:10}{size}  {way:24}{numbers}", flush=True)


if __name__ == "__main__":
    main()
