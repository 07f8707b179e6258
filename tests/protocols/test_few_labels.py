"""Probes with few labels: which cases they see, and that they are the probes of all labels on these."""

import numpy as np
import pytest
from tests.protocols.contract import overlapping

from dicot import FewLabelClassifier
from dicot.judge.protocols import Features, Probe
from dicot.judge.protocols.base import stratified_fraction


def labelled(protocol, train, seed):
    return [train.rows(rows) for rows in protocol.run_draws(train.y, seed)]


def test_few_labels_is_the_mean_of_probes_on_ten_subsets():
    train, test = overlapping(300, 1), overlapping(90, 2)
    few = Probe("linear", per_class=5)
    subsets = labelled(few, train, 1)
    assert [np.bincount(subset.y).tolist() for subset in subsets] == [[5, 5, 5]] * 10
    expected = [Probe("linear").score(subset, test, seed=1) for subset in subsets]
    assert few.score_draws(train, test, seed=1) == expected
    assert len({draw["accuracy"] for draw in expected}) > 1
    assert few.score(train, test, seed=1)["accuracy"] == pytest.approx(np.mean([d["accuracy"] for d in expected]))
    assert few.score(train, test, seed=1) != few.score(train, test, seed=2)
    assert len(Probe("linear", per_class=5, draws=3).score_draws(train, test, seed=1)) == 3


def test_the_authors_subset_is_the_same_for_every_run():
    train, test = overlapping(300, 1), overlapping(90, 2)
    paper = Probe("linear", fraction=0.05).on_subset(42)
    (subset,) = labelled(paper, train, 7)
    assert (subset.x == train.x[stratified_fraction(train.y, 0.05, 42)]).all()
    assert paper.score(train, test, seed=1) == paper.score(train, test, seed=2)


def test_a_forest_sees_the_same_cases_as_the_linear_probe():
    train, test = overlapping(300, 1), overlapping(90, 2)
    linear, forest = (Probe(probe, fraction=0.05).on_subset("run") for probe in ("linear", "forest"))
    (cases,), (same,) = (labelled(protocol, train, 3) for protocol in (linear, forest))
    assert (cases.x == same.x).all()
    assert forest.score(train, test, seed=3) == Probe("forest").score(cases, test, seed=1)


def test_with_no_class_larger_than_asked_for_it_is_the_linear_probe():
    y = np.repeat([0, 1], [5, 3])
    assert Probe("linear", per_class=5).without_draws(y).name == "linear"
    assert Probe("linear", per_class=4).without_draws(y).name == "few_4"
    assert Probe("forest", per_class=5).without_draws(y).name == "forest"
    assert Probe("linear", fraction=0.9).without_draws(y).name == "few_90pct"
    assert Probe("linear", fraction=0.1).without_draws(np.arange(4)).name == "linear"


def test_the_few_label_classifier_sees_the_same_labels_and_all_cases():
    train, test = overlapping(300, 1), overlapping(90, 2)
    semi, few = (Probe(probe, per_class=5, draws=2) for probe in ("semi", "linear"))
    for ours, theirs in zip(labelled(semi, train, 3), labelled(few, train, 3), strict=True):
        assert (ours.x == theirs.x).all()
    (rows,) = Probe("semi", per_class=5).on_subset(42).run_draws(train.y, 1)
    y = np.full(300, -1)
    y[rows] = train.y[rows]
    expected = FewLabelClassifier().fit(train.x, y).predict(test.x)
    scores = semi.on_subset(42).score(train, test, seed=1)
    assert scores["accuracy"] == pytest.approx(100 * np.mean(expected == test.y))
    moved = Features(train.x, train.y - 1)  # -1 is a class like any other here
    assert semi.on_subset(42).score(moved, Features(test.x, test.y - 1), seed=1) == pytest.approx(scores)
    assert semi.name == "semi_5" and semi.without_draws(np.arange(4)).draws == 1
