"""FewLabelClassifier: what a few labels give, and that it is an estimator like any other."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from dicot import FewLabelClassifier
from dicot.core.errors import InputError
from dicot.model.head import Head

EARLIER = Path(__file__).parent / "golden" / "classifiers"

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


def few(y: np.ndarray, per_class: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(y == c), per_class, replace=False) for c in np.unique(y)]
    out = np.full(len(y), -1)
    out[np.concatenate(rows)] = y[np.concatenate(rows)]
    return out


def test_it_is_logistic_regression_on_features_scaled_by_all_cases():
    """The short way, through the span of the labelled cases, gives the weights of the long one."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    x = rng.normal(size=(300, 40)) * rng.uniform(0.1, 9, 40) + 2 * y[:, None]
    x[:, 7] = 4.0
    given = few(y, 4)
    model = FewLabelClassifier(C=30.0).fit(x, given)
    deviation = np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    z = (x - x.mean(axis=0)) / deviation / np.sqrt(39)
    known = given >= 0
    expected = LogisticRegression(C=30.0, max_iter=9999, tol=1e-9).fit(z[known], y[known])
    scores = expected.decision_function(z) / model.temperature_
    wanted = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(x), wanted, atol=2e-3)


def test_the_temperature_lowers_the_log_loss_of_new_cases():
    rng = np.random.default_rng(3)
    y = np.arange(600) % 3
    x = rng.normal(size=(600, 30))
    x[:, :3] += 1.5 * np.eye(3)[y]
    model = FewLabelClassifier(C=1e4).fit(x[:300], few(y[:300], 20))
    p = model.predict_proba(x[300:])
    raw = p**model.temperature_
    assert model.temperature_ > 1.2, "nearly without a penalty it is far too sure"
    assert log_loss(y[300:], p) < log_loss(y[300:], raw / raw.sum(axis=1, keepdims=True)) - 0.05


def test_the_strength_is_the_one_that_gives_the_fewest_errors_on_held_out_labels():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    x = rng.normal(size=(400, 60)) + 0.4 * y[:, None]  # the difference of the means is the best direction
    noisy = FewLabelClassifier().fit(x[:200], few(y[:200], 40))
    assert noisy.C_ == 10.0 and sorted(noisy.log_losses_) == [10.0, 100.0, 1000.0]
    assert FewLabelClassifier().fit(x, few(y, 1)).C_ == 100.0, "nothing can be held out"
    assert FewLabelClassifier(C=7.0).fit(x, few(y, 5)).C_ == 7.0


def test_settings_of_the_graph_that_is_gone_have_no_effect_and_say_so():
    x, y = moons(60)
    plain = FewLabelClassifier().fit(x, few(y, 3))
    with pytest.warns(FutureWarning, match="no longer spreads labels"):
        other = FewLabelClassifier(spreading="labels", n_neighbors=3).fit(x, few(y, 3))
    assert np.array_equal(other.predict_proba(x), plain.predict_proba(x))


@pytest.mark.parametrize("spreading", ["none", "guesses", "labels"])
def test_a_file_of_an_earlier_release_gives_the_probabilities_of_then(spreading, tmp_path):
    """The files and the probabilities were written by the release that spread labels over a graph."""
    then = np.load(EARLIER / "probabilities.npz")
    head = Head.load(EARLIER / f"{spreading}.safetensors")
    np.testing.assert_allclose(head.predict_proba(then["x"]), then[spreading], rtol=0, atol=1e-12)
    again = Head.load(head.save(tmp_path / "again.safetensors"))
    np.testing.assert_array_equal(again.predict_proba(then["x"]), head.predict_proba(then["x"]))


def test_a_case_does_not_depend_on_the_others_of_a_call():
    (x, y), (new, _) = moons(300), moons(50, 1)
    model = FewLabelClassifier().fit(x, few(y, 4))
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
model = FewLabelClassifier().fit(x, given)
assert np.mean(model.transduction_ == y) > 0.9
print(peak() - before)
"""
    if sys.platform != "linux":
        pytest.skip("peak memory is read from /proc")
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(told) < 110
