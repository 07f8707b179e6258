"""A protocol that a user adds keeps the contract (that of the registered ones is asked in tests/contracts)."""

from collections.abc import Iterator

import numpy as np
import pytest
from tests.protocols.contract import CHECKS

from dicot.judge.protocols import PROTOCOLS, Features, Metric, Protocol, find_metric
from dicot.judge.protocols.base import check_classes


class Distance(Protocol):
    """A protocol with a metric of its own, of which less is better."""

    metrics = (Metric("distance", higher_is_better=False, decimals=1),)
    name = "distance"
    description = "mean distance from a test case to the middle of its class in training"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        check_classes(train, "Distance")
        middles = {label: train.x[train.y == label].mean(axis=0) for label in np.unique(train.y)}
        own = np.stack([middles[label] for label in test.y])
        return {"distance": float(np.linalg.norm(test.x - own, axis=1).mean())}


@pytest.fixture
def registered() -> Iterator[None]:
    PROTOCOLS["distance"] = Distance
    yield
    del PROTOCOLS["distance"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.usefixtures("registered")
def test_a_protocol_of_ones_own_keeps_it_too(check):
    check(PROTOCOLS["distance"])


def test_a_metric_is_what_its_protocol_declares():
    assert find_metric("distance") == Metric("distance"), "unknown: printed as usual"
    assert find_metric("accuracy").higher_is_better
    assert find_metric("nmi").decimals == 3
    assert not find_metric("macro_recall").headline
    assert not find_metric("step_ms").higher_is_better
