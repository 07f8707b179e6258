"""FewLabelClassifier: what a few labels and many cases give, and that it is an estimator like any other."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from dicot import FewLabelClassifier
from dicot.core.errors import InputError
from dicot.model.fewlabels import Relabelled

# scikit-learn exempts its own semi-supervised estimators from this check by their names.
UNKNOWN = {"check_classifiers_classes": "asks for a class called -1, which stands for an unknown label"}


@parametrize_with_checks([FewLabelClassifier()], expected_failed_checks=lambda estimator: UNKNOWN)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_classes_as_scikit_learn_asks_of_its_own_semi_supervised_ones():
    check_classifiers_classes("LabelSpreading", FewLabelClassifier())


def moons(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaved arcs in ten features, which a line cannot part and a walk over neighbours can."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle = rng.uniform(0, np.pi, n)
    x = np.column_stack([np.cos(angle) + y, np.sin(angle) * (1 - 2 * y) + 0.4 * y]) + 0.05 * rng.normal(size=(n, 2))
    return x @ np.random.default_rng(9).normal(size=(2, 10)), y


def target(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A disc and a ring around it."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(y, 2.0, 0.5) + 0.1 * rng.normal(size=n)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), y


def few(y: np.ndarray, per_class: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(y == c), per_class, replace=False) for c in np.unique(y)]
    out = np.full(len(y), -1)
    out[np.concatenate(rows)] = y[np.concatenate(rows)]
    return out


def test_unlabelled_cases_help_where_classes_are_connected():
    (x, y), (new, truth) = target(80), target(200, 1)
    scores: dict[str, list[float]] = {"none": [], "labels": []}
    fitted: dict[str, list[float]] = {"none": [], "labels": []}
    for draw in range(5):
        for way in scores:
            model = FewLabelClassifier(spreading=way).fit(x, few(y, 1, draw))
            scores[way].append(model.score(new, truth))
            fitted[way].append(float(np.mean(model.transduction_ == y)))
    assert np.mean(scores["labels"]) > np.mean(scores["none"]) + 0.03
    assert np.mean(fitted["labels"]) > np.mean(fitted["none"]) + 0.03
    assert FewLabelClassifier().fit(x, few(y, 1)).spreading_ == "labels", "nothing can be held out"


def test_it_is_logistic_regression_on_features_scaled_by_all_cases():
    """The short way, through the span of the labelled cases, gives the weights of the long one."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    x = rng.normal(size=(300, 40)) * rng.uniform(0.1, 9, 40) + 2 * y[:, None]
    x[:, 7] = 4.0
    given = few(y, 4)
    model = FewLabelClassifier(spreading="none").fit(x, given)
    deviation = np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    z = (x - x.mean(axis=0)) / deviation / np.sqrt(39)
    known = given >= 0
    expected = LogisticRegression(C=30.0, max_iter=9999, tol=1e-9).fit(z[known], y[known])
    scores = expected.decision_function(z) / model.temperature_
    wanted = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(x), wanted, atol=2e-3)


def test_spreading_ends_where_a_linear_system_says():
    x, y = moons(60)
    given = few(y, 3)
    model = FewLabelClassifier(spreading="guesses").fit(x, given)
    guesses = FewLabelClassifier(spreading="none").fit(x, given)
    p = guesses.predict_proba(x) ** guesses.temperature_
    p /= p.sum(axis=1, keepdims=True)
    p[given >= 0] = np.eye(2)[given[given >= 0]]
    d = ((x - x.mean(0)) / x.std(0))[:, None] - ((x - x.mean(0)) / x.std(0))
    order = np.argsort((d**2).sum(axis=2) + np.diag(np.full(60, np.inf)), axis=1)[:, :5]
    edges = np.zeros((60, 60))
    edges[np.arange(60)[:, None], order] = 1
    edges = np.maximum(edges, edges.T)
    settled = np.linalg.solve(np.eye(60) - 0.5 * edges / edges.sum(axis=1, keepdims=True), 0.5 * p)
    wanted = settled ** (1 / model.temperature_)
    wanted /= wanted.sum(axis=1, keepdims=True)
    hidden = given < 0
    np.testing.assert_allclose(model.label_distributions_[hidden], wanted[hidden], atol=1e-4)


def test_the_temperature_lowers_the_log_loss_of_new_cases():
    rng = np.random.default_rng(3)
    y = np.arange(600) % 3
    x = rng.normal(size=(600, 30))
    x[:, :3] += 1.5 * np.eye(3)[y]
    model = FewLabelClassifier(C=1e4, spreading="none").fit(x[:300], few(y[:300], 20))
    p = model.predict_proba(x[300:])
    raw = p**model.temperature_
    assert model.temperature_ > 1.2, "nearly without a penalty it is far too sure"
    assert log_loss(y[300:], p) < log_loss(y[300:], raw / raw.sum(axis=1, keepdims=True)) - 0.05


@pytest.mark.parametrize("spreading", ["none", "guesses", "labels"])
def test_a_case_does_not_depend_on_the_others_of_a_call(spreading):
    (x, y), (new, _) = moons(300), moons(50, 1)
    model = FewLabelClassifier(spreading=spreading).fit(x, few(y, 4))
    alone = np.concatenate([model.predict_proba(row[None]) for row in new])
    np.testing.assert_allclose(alone, model.predict_proba(new), rtol=1e-9)


NAMES = np.array(["sit", "walk"])


@pytest.mark.parametrize(
    "hide",
    [
        lambda y: np.where(y < 0, "", NAMES[y]),
        lambda y: [None if v < 0 else str(NAMES[v]) for v in y],
        lambda y: np.array([-1 if v < 0 else str(NAMES[v]) for v in y], dtype=object),
        lambda y: [-1 if v < 0 else str(NAMES[v]) for v in y],
        lambda y: [float("nan") if v < 0 else str(NAMES[v]) for v in y],
        lambda y: np.where(y < 0, np.nan, y),
        lambda y: y.astype(float),
        lambda y: y.astype(np.int8),
    ],
    ids=["empty", "None", "-1 among objects", "-1 in a list", "NaN in a list", "NaN", "-1.0", "-1"],
)
def test_unknown_labels_in_every_form(hide):
    x, y = moons(100)
    given = few(y, 4)
    model = FewLabelClassifier().fit(x, hide(given))
    assert len(model.classes_) == 2
    assert np.array_equal(model.predict_proba(x), FewLabelClassifier().fit(x, given).predict_proba(x))
    known = given >= 0
    text = model.classes_.dtype.kind == "U"
    assert (model.transduction_[known] == (NAMES[given[known]] if text else given[known])).all()
    assert set(model.transduction_) <= set(model.classes_)


def test_no_label_and_one_class_are_refused():
    x, _ = moons(20)
    with pytest.raises(InputError, match="0 label"):
        FewLabelClassifier().fit(x, np.full(20, -1))
    with pytest.raises(InputError, match="3 label.* 1 class"):
        FewLabelClassifier().fit(x, np.array([7] * 3 + [-1] * 17))


@pytest.mark.slow
def test_many_cases_take_bounded_memory():
    """20,000 x 1,000 as float32 are 76 MiB, one copy as float64 is 153."""
    code = """
import numpy as np
from dicot import FewLabelClassifier
rng = np.random.default_rng(0)
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
x, y = rng.standard_normal((20_000, 1000), np.float32), np.arange(20_000) % 5
for c, centre in enumerate(rng.standard_normal((5, 1000), np.float32)):
    x[c::5] += centre
FewLabelClassifier().fit(x[:300], y[:300])
given = np.where(np.arange(20_000) < 50, y, -1)
before = peak()
model = FewLabelClassifier(graph_cases=1000).fit(x, given)
assert np.mean(model.transduction_ == y) > 0.9
print(peak() - before)
"""
    if sys.platform != "linux":
        pytest.skip("peak memory is read from /proc")
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(told) < 110


def test_without_unlabelled_cases_nothing_is_spread_over_other_classes():
    """One label per class and no other case: all neighbours of a case are of other classes."""
    rng = np.random.default_rng(0)
    middles = 3 * rng.normal(size=(18, 40))
    x, new = (middles + 0.5 * rng.normal(size=middles.shape) for _ in range(2))
    model = FewLabelClassifier().fit(x, np.arange(18))
    assert model.spreading_ == "none"
    assert (model.predict(new) == np.arange(18)).mean() > 0.9


@pytest.mark.parametrize("shape", [(200, 140), (60, 5)])  # with principal components, and without
def test_labelling_the_same_cases_again_is_a_fit_of_its_own(shape):
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=shape[0])
    x = (rng.normal(size=shape) + truth[:, None]).astype(np.float32)
    again = Relabelled(x)
    for first in (0, 7, 15):
        y = np.where((np.arange(len(x)) >= first) & (np.arange(len(x)) < first + 24), truth, -1)
        mine, own = again.fit(y), FewLabelClassifier().fit(x, y)
        np.testing.assert_array_equal(mine.label_distributions_, own.label_distributions_)
        np.testing.assert_array_equal(mine.predict_proba(x + 0.1), own.predict_proba(x + 0.1))
        assert (mine.spreading_, mine.temperature_) == (own.spreading_, own.temperature_)
