"""MiniRocket through aeon: fitted once, on the training cases."""

import importlib.util

import numpy as np
import pytest
import torch

from dicot.core.errors import InputError, MissingExtraError
from dicot.data.datasets import load
from dicot.judge.classical import MiniRocket
from dicot.judge.evaluation import contender, evaluate
from dicot.judge.protocols import Probe

needs_aeon = pytest.mark.skipif(importlib.util.find_spec("aeon") is None, reason="aeon is not installed")


@needs_aeon
@pytest.mark.slow
def test_gun_point_and_the_rules_of_a_fit():
    """One test, because the first call of a process compiles."""
    split, threads = load("GunPoint"), torch.get_num_threads()
    result = evaluate(split, [contender("minirocket")], [Probe("ridge")], [1], controls=False)
    assert result.results[0].values["accuracy"] >= 98.0
    assert torch.get_num_threads() == threads
    model = result.models["minirocket"]
    features = model.transform(split.test.x)
    assert features.shape == (150, 9996) and features.dtype == np.float32
    assert ((features >= 0) & (features <= 1)).all()
    alone = model.transform(split.test.x[3:5])  # a fit per batch, as in the authors' code, would change these
    assert np.array_equal(alone, features[3:5])
    again, other = (MiniRocket(random_state=seed).fit(split.train.x).transform(split.test.x[:5]) for seed in (1, 2))
    assert np.array_equal(again, features[:5])
    assert not np.array_equal(other, again)

    rng = np.random.default_rng(0)
    several = rng.normal(size=(6, 3, 20))  # channels stay apart: swapping two of them is seen
    model = MiniRocket().fit(several)
    features = model.transform(several)
    assert features.shape == (6, 9996)
    assert not np.array_equal(features, model.transform(several[:, [1, 0, 2]]))
    short = several[:, :, :5]
    padded = np.concatenate([short, np.zeros((6, 3, 4))], axis=2)
    assert np.array_equal(MiniRocket().fit(short).transform(short), MiniRocket().fit(padded).transform(padded))
    with pytest.raises(InputError, match="3, 20.*19"):
        model.transform(several[:, :, :19])


def test_says_how_to_install_aeon(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "aeon.transformations.collection.convolution_based", None)
    with pytest.raises(MissingExtraError, match=r"\.\[aeon\]"):
        MiniRocket().fit(np.zeros((4, 1, 9)))
