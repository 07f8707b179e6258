"""k-means on the test embeddings against stored values."""

from pathlib import Path

import numpy as np
import pytest
import sklearn

from dicot.judge.protocols import Features, KMeansClustering

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "protocols.npz", allow_pickle=False)
CASES = range(int(GOLDEN["n_cases"]))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.skipif(sklearn.__version__ != str(GOLDEN["sklearn"]), reason="k-means starts differ between versions")
def test_golden_scores(case):
    train, test = (Features(GOLDEN[f"c{case}_{s}"], GOLDEN[f"c{case}_y{s}"]) for s in ("train", "test"))
    got = KMeansClustering().score(train, test, seed=int(GOLDEN[f"c{case}_kmeans_seed"]))
    assert got["nmi"] == pytest.approx(float(GOLDEN[f"c{case}_nmi"]), abs=1e-6)
    assert got["ari"] == pytest.approx(float(GOLDEN[f"c{case}_ari"]), abs=1e-6)


def test_far_groups_are_found_whatever_their_names():
    y = np.array(["b", "a"] * 20)
    x = np.where(y == "a", 1.0, -1.0)[:, None] * 100 + np.random.default_rng(0).normal(size=(40, 3))
    test = Features(x, y)
    assert KMeansClustering().score(test, test, seed=1) == pytest.approx({"nmi": 1.0, "ari": 1.0})


def test_the_training_embeddings_play_no_part():
    rng = np.random.default_rng(0)
    test = Features(rng.normal(size=(40, 3)), np.arange(40) % 3)
    other = Features(rng.normal(size=(5, 8)), np.zeros(5, int))
    assert KMeansClustering().score(other, test, seed=3) == KMeansClustering().score(test, test, seed=3)
