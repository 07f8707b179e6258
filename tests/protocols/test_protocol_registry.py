"""Every registered protocol keeps the contract."""

import math

import numpy as np
import pytest

from dicot.errors import InputError
from dicot.protocols import PROTOCOLS, Features


def case(n, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return Features(rng.normal(size=(n, 4)) + y[:, None], y)


def test_the_keys_are_the_promised_ones():
    counts = [f"knn_{n}" for n in (5, 10, 50, 100, 500, "all")]
    assert list(PROTOCOLS) == ["linear", "ridge", "forest", "few_1pct", "few_5", "few_10", *counts, "clustering"]


@pytest.mark.parametrize("key", PROTOCOLS)
def test_every_protocol_keeps_the_contract(key):
    protocol = PROTOCOLS[key]()
    assert protocol.name == key
    assert protocol.description
    assert "\n" not in protocol.description
    train, test = case(60, 1), case(45, 2)
    scores = protocol.score(train, test, seed=7)
    assert tuple(scores) == tuple(metric.name for metric in protocol.metrics)
    assert all(type(v) is float and math.isfinite(v) and -1 <= v <= 100 for v in scores.values())
    assert protocol.score(train, test, seed=7) == scores


@pytest.mark.parametrize("key", [k for k in PROTOCOLS if k != "clustering"])
def test_features_of_another_width_are_refused(key):
    wide = Features(np.ones((6, 5)), np.arange(6) % 3)
    with pytest.raises(InputError, match="same number of features; got 4 and 5"):
        PROTOCOLS[key]().score(case(60, 1), wide, seed=1)
