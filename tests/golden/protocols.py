"""protocols.npz: linear probe, 1-NN and k-means on given features; ranks and intervals on given accuracies."""

import numpy as np
import sklearn

from bench.report.stats import average_ranks, friedman, half_widths, nemenyi
from dicot.judge.protocols import Features, KMeansClustering, Probe
from dicot.judge.protocols.embeddings import fit_linear, fit_neighbours
from tests.golden.compare import Comparison, Vectors, cases


def check_protocols(vectors: Vectors) -> Comparison:
    out = Comparison()
    same_release = str(vectors["sklearn"]).split(".")[:2] == sklearn.__version__.split(".")[:2]
    for label, case in cases(vectors):
        _check_scores(out, label, case, same_release)
    for label, case in cases(vectors, "r", "n_rank_cases"):
        _check_ranks(out, label, case)
    return out


def _check_scores(out: Comparison, label: str, case: dict[str, np.ndarray], same_release: bool) -> None:
    train, test = Features(case["train"], case["ytrain"]), Features(case["test"], case["ytest"])
    probe = fit_linear(train)
    decision = probe.decision_function(test.x)
    # Two classes have one decision value per case, which may come as a column.
    out.close(f"{label} decision", np.reshape(decision, case["lr_decision"].shape), case["lr_decision"], absolute=1e-3)
    out.equal(f"{label} prediction", probe.predict(test.x), case["lr_pred"])
    linear = Probe("linear").score(train, test, seed=0)
    for ours, theirs in (  # accuracies are percentages in the file, the others fractions
        ("accuracy", "lr_acc"),
        ("macro_f1", "lr_macro_f1"),
        ("macro_precision", "lr_macro_precision"),
        ("macro_recall", "lr_macro_recall"),
    ):
        out.close(f"{label} {ours}", linear[ours], case[theirs] * (1 if ours == "accuracy" else 100), absolute=1e-6)
    neighbour = Probe("knn")
    out.equal(f"{label} 1-NN prediction", fit_neighbours(train).predict(test.x), case["knn_pred"])
    accuracy = neighbour.score(train, test, seed=0)["accuracy"]
    out.close(f"{label} 1-NN", accuracy, case["knn_acc"], absolute=1e-6)
    if same_release:  # k-means may start elsewhere in another release of scikit-learn
        clusters = KMeansClustering().score(train, test, seed=int(case["kmeans_seed"]))
        out.close(f"{label} nmi", clusters["nmi"], case["nmi"], absolute=1e-6)
        out.close(f"{label} ari", clusters["ari"], case["ari"], absolute=1e-6)


def _check_ranks(out: Comparison, label: str, case: dict[str, np.ndarray]) -> None:
    accuracy = case["acc"]
    n_sets, n_methods = accuracy.shape
    q, difference = nemenyi(n_methods, n_sets)
    statistic, p = friedman(accuracy)
    runs = case["runs"]
    half, _ = half_widths(runs.std(ddof=1), len(runs))
    ours = {"avg_rank": average_ranks(accuracy), "q_05": q, "cd": difference, "friedman_stat": statistic}
    ours |= {"friedman_p": p, "ci_mean": runs.mean(), "ci_half": half}
    for name, value in ours.items():
        out.close(f"{label} {name}", value, case[name], absolute=1e-9, relative=1e-6)
