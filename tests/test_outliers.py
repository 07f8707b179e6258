"""EmbeddingOutlierDetector: distances one can check by hand, and a share of false alarms that holds."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.utils.estimator_checks import parametrize_with_checks

from dicot import EmbeddingOutlierDetector
from dicot.core.errors import CalibrationWarning, InputError


@pytest.mark.filterwarnings("ignore::dicot.core.errors.CalibrationWarning")  # many checks have ten cases
@parametrize_with_checks([EmbeddingOutlierDetector(), EmbeddingOutlierDetector(distance="kth", metric="cosine")])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def line() -> tuple[np.ndarray, np.ndarray]:
    """Return the points 0 to 9 as reference, and 19 calibration points that lie 1 to 19 beyond the end."""
    x = np.concatenate([np.arange(10), 9 + np.arange(1, 20)])[:, None].astype(float)
    return x, np.arange(29) >= 10


def on_line(**settings) -> EmbeddingOutlierDetector:
    x, held = line()
    return EmbeddingOutlierDetector(**{"standardise": False, "n_neighbors": 3, **settings}).fit(x, held_out=held)


@pytest.mark.parametrize(
    ("score", "wanted"),
    # The neighbours of 12 are 9, 8 and 7. Those of 9 lie 1, 2 and 3 away, those of any inner point 1, 1 and 2.
    [("kth", [5, 1, 1.5]), ("mean", [4, 2 / 3, 2.5 / 3]), ("relative", [4 / ((2 + 4 / 3 + 4 / 3) / 3), 0.5, 0.625])],
)
def test_a_line_of_points(score, wanted):
    model = on_line(distance=score)
    # 4 is a point of the reference; 4.5 lies between two, and its third neighbour 1.5 away.
    np.testing.assert_allclose(-model.score_samples([[12.0], [4.0], [4.5]]), wanted)


def test_p_values_count_the_calibration_cases_that_lie_as_far_out():
    model = on_line(n_neighbors=1, distance="kth")
    new = [[9.0], [10.0], [10.5], [28.0], [28.1], [-19.0], [-19.1]]
    # Distances 0, 1, 1.5, 19, 19.1, 19, 19.1 beside calibration distances of 1, 2 ... 19.
    np.testing.assert_allclose(model.p_values(new), np.array([20, 20, 19, 2, 1, 2, 1]) / 20)
    assert model.predict(new).tolist() == [1, 1, 1, 1, -1, 1, -1]
    assert model.offset_ == -19
    np.testing.assert_array_equal(model.calibration_scores_, -np.arange(19, 0, -1))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("standardise", [True, False])
def test_distances_as_all_pairs_have_them(metric, standardise):
    rng = np.random.default_rng(0)
    x, new = rng.normal(2, 3, (90, 7)), rng.normal(2, 4, (20, 7))
    middle, deviation = (x[:60].mean(axis=0), x[:60].std(axis=0)) if standardise else (0, 1)
    reference, scaled = (x[:60] - middle) / deviation, (new - middle) / deviation
    away, own = cdist(scaled, reference, metric), cdist(reference, reference, metric)
    around = np.sort(own, axis=1)[:, 1:5].mean(axis=1)  # without the case itself
    near = np.argsort(away, axis=1)[:, :4]
    nearest = np.take_along_axis(away, near, axis=1)
    wanted = {"kth": nearest.max(axis=1), "mean": nearest.mean(axis=1)}
    wanted["relative"] = wanted["mean"] / around[near].mean(axis=1)
    for distance, expected in wanted.items():
        model = EmbeddingOutlierDetector(metric=metric, standardise=standardise, n_neighbors=4, distance=distance)
        model.fit(x, held_out=np.arange(90) >= 60)
        np.testing.assert_allclose(-model.score_samples(new), expected, rtol=1e-9)
        alone = np.concatenate([model.score_samples(new[row : row + 1]) for row in range(len(new))])
        np.testing.assert_array_equal(alone, model.score_samples(new))


def test_equal_cases_have_distance_zero_and_finite_scores():
    x = np.repeat(np.random.default_rng(0).normal(1e4, 1, (20, 30)), 4, axis=0)
    held = np.arange(80) % 4 == 0
    model = EmbeddingOutlierDetector(n_neighbors=2, distance="mean").fit(x, held_out=held)
    assert (model.score_samples(x) == 0).all()
    assert (model.predict(x) == 1).all(), "as far out as the calibration cases is not farther"
    same = EmbeddingOutlierDetector(n_neighbors=2, distance="relative").fit(x, held_out=held)
    assert np.isfinite(same.decision_function(np.concatenate([x, x + 1]))).all()


def test_a_feature_that_never_varied_counts_when_it_does():
    x = np.random.default_rng(0).normal(size=(200, 3))
    x[:, 1] = 5
    odd = np.array([[0, 50, 0.0]])
    assert EmbeddingOutlierDetector().fit(x).predict(odd) == -1


@pytest.mark.slow
@pytest.mark.parametrize("score", ["kth", "mean", "relative"])
def test_the_share_of_false_alarms_holds(score):
    """Over 300 draws of 60 calibration and 50 new cases; one share has a deviation of about 0.04, their mean 0.0025."""
    rng = np.random.default_rng(1)
    shares, small = [], []
    for draw in range(300):
        x = rng.standard_t(3, (140, 4))
        model = EmbeddingOutlierDetector(distance=score, alpha=0.1, calibration=59, random_state=draw).fit(x[:90])
        shares.append(np.mean(model.predict(x[90:]) == -1))
        small.append(np.mean(model.p_values(x[90:]) <= 0.5))
    assert np.mean(shares) == pytest.approx(0.1, abs=0.012)
    assert np.mean(small) == pytest.approx(0.5, abs=0.03)


def test_cases_of_new_groups_need_groups_held_out():
    """Each person has a place of their own: among known people a new one lies far out."""
    rng = np.random.default_rng(2)
    shares: dict[bool, list[float]] = {True: [], False: []}
    for draw in range(40):
        places = 4 * rng.normal(size=(80, 6))
        cases = np.repeat(places, 10, axis=0) + rng.normal(size=(800, 6))
        group = np.repeat(np.arange(80), 10)
        for by_group, found in shares.items():
            model = EmbeddingOutlierDetector(random_state=draw, calibration=0.5)
            model.fit(cases[:600], groups=group[:600] if by_group else None)
            found.append(float(np.mean(model.predict(cases[600:]) == -1)))
            if by_group:
                assert not set(group[model.reference_]) & set(group[model.calibration_])
    assert np.mean(shares[True]) == pytest.approx(0.05, abs=0.025)
    assert np.mean(shares[False]) > 0.5


def simulated(n_groups: int, draws: int, between: float, heavy: bool = False) -> np.ndarray:
    """Return the share of false alarms in five new groups, and of odd cases that are found, in the mean over draws."""
    rng, shares = np.random.default_rng(n_groups), []
    group = np.repeat(np.arange(n_groups + 5), 30)
    known = group < n_groups
    for draw in range(draws):
        places = rng.normal(size=(n_groups + 5, 8))
        if heavy:  # Student's t with 2 degrees of freedom
            places /= np.sqrt(rng.chisquare(2, size=(n_groups + 5, 1)) / 2)
        x = rng.normal(size=(len(group), 8)) + between * places[group]
        model = EmbeddingOutlierDetector(random_state=draw).fit(x[known], groups=group[known])
        shares.append([np.mean(model.predict(x[~known] + far) == -1) for far in ([0] if heavy else [0, 6])])
    return np.mean(shares, axis=0)


@pytest.mark.parametrize("between", [0.0, 1.5, 4.0])
@pytest.mark.parametrize("n_groups", [3, 5, 10])
def test_few_groups_hold_the_share_of_false_alarms_in_new_groups(n_groups, between):
    """At 0.05, whether groups differ or not. Pooled over groups it was up to 0.14 at 1.5 and 0.22 at 4."""
    alarms, found = simulated(n_groups, 60, between)
    assert alarms < 0.06
    assert between or found > (0.5 if n_groups < 10 else 0.9), "groups that do not differ cost little"


@pytest.mark.parametrize("n_groups", [3, 10])
def test_groups_of_which_a_few_differ_far_more_raise_few_false_alarms_more(n_groups):
    assert simulated(n_groups, 100, 1.5, heavy=True)[0] < 0.085, "the documentation says up to 8 %"


def test_one_group_held_out_flags_nothing_and_says_so():
    x, group = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) // 40
    with pytest.warns(CalibrationWarning, match="cannot tell how groups differ: nothing will be flagged. 2 are needed"):
        model = EmbeddingOutlierDetector().fit(x, groups=group)
    far = np.full((1, 3), 99.0)
    assert model.predict(far) == 1 and model.p_values(far) >= 0.5
    assert EmbeddingOutlierDetector().fit(x, groups=group + np.arange(80) % 2).predict(far) == -1


def test_too_few_calibration_cases_are_told_with_the_number_needed():
    x = np.random.default_rng(0).normal(size=(150, 2))
    far = np.full((1, 2), 99.0)
    with pytest.warns(CalibrationWarning, match=r"98 calibration.*alpha=0\.01.* 99 are needed"):
        model = EmbeddingOutlierDetector(alpha=0.01, calibration=98).fit(x)
    assert model.predict(far) == 1
    assert model.p_values(far) == pytest.approx(1 / 99)
    assert EmbeddingOutlierDetector(alpha=0.01, calibration=99).fit(x).predict(far) == -1


@pytest.mark.slow
def test_every_share_agrees_with_its_p_values():
    rng = np.random.default_rng(4)
    x, new = rng.normal(size=(130, 2)), 2 * rng.normal(size=(500, 2))
    for percent in range(1, 100):
        model = EmbeddingOutlierDetector(alpha=percent / 100, calibration=99).fit(x)
        np.testing.assert_array_equal(model.predict(new) == -1, model.p_values(new) <= percent / 100)
        assert np.mean(model.p_values(x[model.calibration_]) <= percent / 100) <= percent / 100
        grouped = EmbeddingOutlierDetector(alpha=percent / 100, calibration=8).fit(x, groups=np.arange(130) % 10)
        np.testing.assert_array_equal(grouped.predict(new) == -1, grouped.p_values(new) <= percent / 100)


def test_numbers_of_another_type_give_the_same():
    x = np.random.default_rng(8).normal(size=(200, 5)).astype(np.float32)
    model = EmbeddingOutlierDetector().fit(x)
    np.testing.assert_array_equal(model.score_samples(x.astype(np.float64)), model.score_samples(x))
    double = EmbeddingOutlierDetector().fit(x.astype(np.float64))
    np.testing.assert_allclose(double.score_samples(x), model.score_samples(x), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"metric": "euclidian"}, {}, "'euclidian'.*'euclidean'"),
        ({"distance": "means"}, {}, "'means'.*'mean'"),
        ({"alpha": 0}, {}, "alpha.*0"),
        ({"calibration": 1.5}, {}, r"calibration.*1\.5"),
        ({"calibration": 30}, {}, "30 of 30 cases"),
        ({"n_neighbors": 22}, {}, "21 of the n_samples=30.*n_neighbors=22"),
        ({"n_neighbors": 21, "distance": "relative"}, {}, "21 of the n_samples=30.* 22"),
        ({}, {"groups": np.zeros(30)}, "1 of 1 groups"),
        ({}, {"groups": np.zeros(29)}, "29"),
        ({}, {"groups": [None] + [1] * 29}, "0"),
        ({}, {"held_out": np.zeros(30)}, "float64"),
        ({}, {"held_out": np.zeros(29, dtype=bool)}, "29"),
        ({}, {"held_out": np.zeros(30, dtype=bool)}, "0 of them True"),
        ({}, {"held_out": np.arange(30) < 18, "groups": np.arange(30) // 4}, "1 group.* 4"),
    ],
)
def test_what_cannot_be_is_refused(settings, given, message):
    with pytest.raises(InputError, match=message):
        EmbeddingOutlierDetector(**settings).fit(np.zeros((30, 2)), **given)


@pytest.mark.slow
def test_many_cases_take_bounded_memory():
    """100,000 x 256 as float32 are 98 MiB; all distances of 400 new cases are 305 as float64."""
    code = """
import numpy as np
from dicot import EmbeddingOutlierDetector
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
x = np.random.default_rng(0).standard_normal((100_100, 256), np.float32)
EmbeddingOutlierDetector().fit(x[:300]).predict(x[:300])
before = peak()
model = EmbeddingOutlierDetector(calibration=100, distance="mean").fit(x)
model.predict(x[:400])
print(peak() - before)
"""
    if sys.platform != "linux":
        pytest.skip("peak memory is read from /proc")
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(told) < 180
