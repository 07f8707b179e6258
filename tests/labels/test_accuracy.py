"""honest_accuracy: held-out labels stay hidden, groups stay together, and the interval holds what it says."""

import math

import numpy as np
import pytest
from sklearn.metrics import f1_score
from tests.labels.simulated import Setting, coverage

from dicot import FewLabelClassifier, honest_accuracy
from dicot.core.errors import InputError
from dicot.use.labels import accuracy
from dicot.use.labels.accuracy import class_scores


def classes(n=120, distance=2.0, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 4)) + distance * np.eye(4)[y], y


def hide(y, n_labelled):
    return np.where(np.arange(len(y)) < n_labelled, y, -1)


class Recorded:
    """Fits classifiers, and keeps what they were fitted to."""

    fits: list

    def fit(self, x, y):
        Recorded.fits.append((x, np.array(y)))
        return FewLabelClassifier().fit(x, y)


@pytest.fixture
def fits(monkeypatch):
    Recorded.fits = []
    monkeypatch.setattr(accuracy, "FewLabelClassifier", Recorded)
    return Recorded.fits


def test_the_result_is_that_of_a_cross_validation_by_hand(fits):
    x, y = classes()
    given = hide(y, 60)
    said = honest_accuracy(x, given, repeats=2)
    right, scores, others = np.zeros(60), [], np.zeros(3)
    for repeat in (fits[:5], fits[5:]):
        answers = np.full(60, -1)
        for seen_x, seen in repeat:
            held = np.flatnonzero((seen[:60] < 0) & (given[:60] >= 0))
            assert len(seen_x) == 120 and (seen[60:] == -1).all(), "all cases are in the fit"
            assert np.array_equal(seen[:60][seen[:60] >= 0], y[:60][seen[:60] >= 0])
            assert (answers[held] == -1).all() and np.bincount(y[held], minlength=3).tolist() == [4, 4, 4], "stratified"
            all_answers = FewLabelClassifier().fit(seen_x, seen).transduction_
            answers[held] = all_answers[held]
            others += np.bincount(all_answers[60:], minlength=3)
        right += answers == y[:60]
        scores.append(f1_score(y[:60], answers, average="macro"))
    assert len(fits) == 10 and not np.array_equal(fits[0][1], fits[5][1]), "dealt out anew"
    recall = [right[y[:60] == c].mean() / 2 for c in range(3)]
    assert said.accuracy == pytest.approx(others @ recall / others.sum()), "each class by its share of the others"
    assert said.macro_f1 == pytest.approx(np.mean(scores))
    assert (said.n_labelled, said.n_scored, said.n_groups, said.repeats) == (60, 60, 0, 2)
    assert said.low < said.accuracy < said.high and said.warnings == ()


def test_no_group_is_on_both_sides(fits):
    x, y = classes(n=160)
    group = np.array([f"person {i}" for i in np.random.default_rng(0).integers(9, size=160)])
    given = hide(y, 80)
    said = honest_accuracy(x, given, group, repeats=3)
    assert said.n_groups == 9 and len(fits) == 15
    for repeat in (fits[:5], fits[5:10], fits[10:]):
        tested = []
        for _, seen in repeat:
            held = (seen < 0) & (given >= 0)
            assert not set(group[held]) & set(group[seen >= 0])
            tested += np.flatnonzero(held).tolist()
        assert sorted(tested) == list(range(80)), "each labelled case once"


def test_groups_tell_what_single_cases_hide():
    """Labels follow groups, each in a place of its own: cases beside labelled ones are easy, new groups are not."""
    rng = np.random.default_rng(0)
    group = np.arange(240) // 12
    y = rng.integers(3, size=20)[group]
    x = 5 * rng.normal(size=(20, 30))[group] + 0.1 * rng.normal(size=(240, 30))
    given = np.where(np.arange(240) % 2 == 0, y, -1)
    single, grouped = honest_accuracy(x, given, repeats=1), honest_accuracy(x, given, group, repeats=1)
    assert single.accuracy > 0.95 and grouped.accuracy < 0.7 and grouped.high < single.low
    assert grouped.high - grouped.low > 2 * (single.high - single.low), "20 groups are no 120 cases"
    assert single.n_groups == 0 and grouped.n_groups == 20


def test_a_class_with_one_label_is_not_scored_but_named():
    x, y = classes()
    given = hide(y, 60)
    given[(given == 2) & (np.arange(120) > 2)] = -1
    said = honest_accuracy(x, given, repeats=1)
    assert said.n_labelled == 41 and said.n_scored == 40
    assert len(said.warnings) == 1 and "'2'" in said.warnings[0]


def test_one_group_alone_cannot_speak_for_others():
    x, y = classes()
    said = honest_accuracy(x, hide(y, 60), np.where(np.arange(120) < 60, "Ada", "Grace"), repeats=1)
    assert said.n_groups == 0 and said.n_scored == 60 and len(said.warnings) == 1 and "one group" in said.warnings[0]
    assert said.accuracy == honest_accuracy(x, hide(y, 60), repeats=1).accuracy


def test_a_class_of_one_group_is_not_scored_but_named(fits):
    x, y = classes(n=180)
    group = np.where(y == 2, 0, np.arange(180) // 30)
    said = honest_accuracy(x, hide(y, 90), group, repeats=1)
    assert said.n_scored == 60 and len(said.warnings) == 1 and "'2'" in said.warnings[0]
    for _, seen in fits:
        assert not set(group[(seen < 0) & (np.arange(180) < 90)]) & set(group[seen >= 0])


def test_what_nobody_can_know_is_said_and_not_guessed():
    x, y = classes(n_classes=2)
    one_each = honest_accuracy(x, hide(y, 2))
    apart = honest_accuracy(x, hide(y, 40), y)  # each group has one class: without it one class is left
    for said in (one_each, apart):
        assert math.isnan(said.accuracy) and math.isnan(said.macro_f1)
        assert (said.low, said.high, said.n_scored) == (0.0, 1.0, 0)
        assert any("not known" in sentence for sentence in said.warnings) and "not known" in str(said)


def test_mistakes_are_named():
    x, y = classes()
    with pytest.raises(InputError, match="2 classes"):
        honest_accuracy(x, hide(y, 1))
    with pytest.raises(InputError, match="groups.*119"):
        honest_accuracy(x, y, y[:-1])
    with pytest.raises(InputError, match="groups has no value"):
        honest_accuracy(x, y, [None, *y[1:]])
    with pytest.raises(ValueError, match="NaN"):
        honest_accuracy(np.full((4, 2), np.nan), [0, 1, 0, 1])


def interval(shares, members):
    """Of cases that weigh the same and count whole."""
    return accuracy._interval(shares, members, np.full(len(shares), 1 / len(shares)), 1.0)


def test_the_interval_is_wilsons():
    low, high = interval(np.repeat([1.0, 0.0], [8, 2]), None)
    assert (low, high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))  # as in tables of it
    low, high = interval(np.ones(20), None)
    assert high == 1 and low == pytest.approx(0.8389, abs=1e-4)


def test_alike_groups_count_as_many_cases_and_groups_of_one_kind_as_one_each():
    alternating, blocks = np.tile([1.0, 0.0], 60), np.repeat([1.0, 0.0], 60)
    group = np.arange(120) // 10
    bare, alike, apart = (
        np.ptp(interval(shares, members)) for shares, members in ((blocks, None), (alternating, group), (blocks, group))
    )
    assert alike == pytest.approx(bare) and bare < apart
    twelve = np.ptp(interval(np.repeat([1.0, 0.0], 6), None))
    assert twelve < apart < 1.3 * twelve, "and a little wider, for the deviation is not known"


@pytest.mark.parametrize(("n", "share"), [(20, 0.6), (40, 0.9), (100, 0.95)])
def test_the_interval_covers_independent_cases(n, share):
    rng = np.random.default_rng(0)
    pairs = [interval(rng.binomial(1, share, n).astype(float), None) for _ in range(2000)]
    assert 0.925 < np.mean([low <= share <= high for low, high in pairs]) < 0.985


@pytest.mark.parametrize(("n_groups", "share"), [(4, 0.7), (8, 0.9), (20, 0.8)])
def test_the_interval_covers_groups_that_differ(n_groups, share):
    """A naive interval, which takes cases for independent, holds the truth far too seldom."""
    rng, group = np.random.default_rng(0), np.repeat(np.arange(n_groups), 15)
    inside, naive = [], []
    for _ in range(1000):
        own = rng.beta(4 * share, 4 * (1 - share), n_groups)[group]
        shares = (rng.random(len(group)) < own).astype(float)
        for kept, members in ((inside, group), (naive, None)):
            low, high = interval(shares, members)
            kept.append(low <= share <= high)
    assert np.mean(naive) < 0.85 < 0.9 < np.mean(inside)


def test_labels_chosen_by_class_do_not_say_how_frequent_each_is():
    """Nine of ten cases are of an easy class, the others hard to tell apart: five labels of each are mostly hard."""
    inside, gaps = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y = rng.choice(3, size=300, p=[0.9, 0.05, 0.05])
        x = rng.normal(size=(300, 4)) + np.array([[6.0, 0, 0, 0], [-6, 0.3, 0, 0], [-6, -0.3, 0, 0]])[y]
        known = np.concatenate([np.flatnonzero(y == c)[:5] for c in range(3)])
        given = np.full(300, -1)
        given[known] = y[known]
        said = honest_accuracy(x, given, repeats=1)
        rest = given < 0
        truth = np.mean(FewLabelClassifier().fit(x, given).transduction_[rest] == y[rest])
        inside.append(said.low <= truth <= said.high)
        gaps.append(said.accuracy - truth)
    assert np.mean(inside) > 0.9 and abs(np.mean(gaps)) < 0.03


@pytest.mark.parametrize("n_groups", [0, 6, 12])
@pytest.mark.parametrize("by_class", [0, 5])
@pytest.mark.parametrize("unequal", [False, True])
def test_the_interval_covers_the_truth_of_its_own_question(n_groups, by_class, unequal):
    """Labels drawn or five of each class, of frequent and rare ones, asked about other cases or about new groups."""
    inside, width, said, truth = coverage(Setting(60, n_groups, 2.5, 6, by_class, unequal), 100)
    assert inside >= 0.9 and width < 0.7
    assert said - truth < 0.03, "it may be too low where few labels are in few groups, and not too high"


@pytest.mark.parametrize(
    ("n_labelled", "suggested", "by_class"), [(80, False, False), (80, True, True), (81, False, True)]
)
def test_only_labels_that_were_drawn_say_how_frequent_a_class_is(n_labelled, suggested, by_class):
    """80 labels of three classes, and 81, which are as many of each: nobody draws that."""
    x, y = classes(n=160)
    said = honest_accuracy(x, hide(y, n_labelled), repeats=1, suggested=suggested)
    assert said.by_class == by_class == ("Each class counts by its estimated share" in str(said))


def rare(n=400, n_rare=12):
    """Return windows of which a few are falls that look like everything else, in ten groups."""
    y = np.array(["daily"] * n, dtype=object)
    y[np.linspace(0, n - 1, n_rare).astype(int)] = "fall"
    return np.random.default_rng(3).normal(size=(n, 8)), y.astype(str), np.arange(n) % 10


def test_where_a_class_is_rare_macro_f1_comes_first_and_a_constant_answer_is_beside_it():
    x, y, groups = rare()
    given = np.where(np.arange(400) < 300, y, "")
    said = honest_accuracy(x, given, groups, repeats=1)
    assert str(said).startswith("Macro-F1 ") and ", accuracy " in str(said)
    assert "Always answering 'daily' would score: accuracy 97.0 %, macro-F1 49.2 %." in str(said)
    x, y = classes()
    assert str(honest_accuracy(x, hide(y, 60), repeats=1)).startswith("Accuracy ")


def test_recall_and_precision_of_each_class_come_from_the_hidden_labels():
    x, y, groups = rare()
    x[y == "fall"] += 1.2
    given = np.where(np.arange(400) < 300, y, "")
    said = honest_accuracy(x, given, groups, repeats=2)
    confusion = np.array(said.confusion)
    assert confusion.sum() == pytest.approx(said.n_scored)
    assert confusion.sum(axis=1).tolist() == pytest.approx([291, 9])
    daily, fall = said.per_class
    assert (daily.label, fall.label) == ("daily", "fall")
    assert fall.recall == pytest.approx(confusion[1, 1] / 9)
    assert fall.precision == pytest.approx(confusion[1, 1] / confusion[:, 1].sum())
    assert np.diag(confusion).sum() / said.n_scored == pytest.approx(said.accuracy)


def test_precision_counts_the_classes_as_frequent_as_they_are():
    even = [[90, 10], [0, 100]]
    assert class_scores("ab", even)[1].precision == pytest.approx(100 / 110)
    assert class_scores("ab", even, [0.99, 0.01])[1].precision == pytest.approx(0.01 / (0.01 + 0.099))
    assert np.isnan(class_scores("ab", [[5, 0], [0, 0]])[1].recall)


def test_of_many_cases_a_sample_stands_for_all(fits, monkeypatch):
    monkeypatch.setattr(accuracy, "MOST_CASES", 90)
    x, y = classes()
    given = np.where(np.arange(120) % 4 == 0, y, -1)
    said = honest_accuracy(x, given, np.arange(120) % 5, repeats=1)
    assert {len(seen) for seen, _ in fits} == {90} and said.n_labelled == said.n_scored == 30
