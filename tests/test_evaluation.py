import numpy as np
import pytest

from dicot.data import Split, Windows
from dicot.errors import InputError
from dicot.evaluation import BESIDE, Contender, Frozen, contender, evaluate
from dicot.protocols import PROTOCOLS

QUICK = {"dim": 8, "steps": 1, "device": "cpu"}


@pytest.fixture
def split(waves) -> Split:
    return Split(waves.subset(slice(0, 12)), waves.subset(slice(12, 24)), name="waves")


def protocols(*names):
    return [PROTOCOLS[name]() for name in names]


def test_every_contender_answers_and_every_protocol_scores(split):
    contenders = [contender(name, **QUICK) for name in ("dicot", *BESIDE)]
    said = []
    result = evaluate(
        split, contenders, protocols("linear", "clustering"), [1, 2], on_run=lambda run: said.append(run.seed)
    )
    assert said == [1] * 5 + [2] * 5
    assert len(result.scores) == 5 * 2 * (4 + 2)
    assert all(score.error is None and np.isfinite(score.value) for score in result.scores)
    assert result.run("dicot").test.shape == (12, 8)
    assert result.run("raw-flat").test.shape == (12, 64)


class Broken:
    def fit(self, X, y=None):
        raise RuntimeError("out of luck")

    def transform(self, X):
        raise AssertionError("never reached")


def test_a_failure_is_a_row(split):
    result = evaluate(split, [Contender("broken", lambda seed: Broken())], protocols("linear", "knn_5"), [1])
    assert result.run("broken").error == "RuntimeError: out of luck"
    assert {score.error for score in result.scores} == {"RuntimeError: out of luck"}
    assert len(result.scores) == 8
    assert all(np.isnan(score.value) for score in result.scores)


def test_a_protocol_that_fails_is_a_row_too(split):
    one_class = Split(Windows(split.train.x, np.zeros(12, int)), split.test, name="one")
    result = evaluate(one_class, [contender("raw-mean")], protocols("linear", "clustering"), [1])
    by_protocol = {score.protocol: score.error for score in result.scores}
    assert "class" in by_protocol["linear"]
    assert by_protocol["clustering"] is None


def test_a_saved_model_is_not_fitted_again(split):
    model = contender("dicot", **QUICK).make(1).fit(split.train.x)
    before = model.transform(split.test.x)
    result = evaluate(split, [Contender("saved", lambda seed: Frozen(model))], protocols("knn_all"), [5])
    assert np.array_equal(result.run("saved").test, before)


def test_needs_test_cases_and_labels(split):
    with pytest.raises(InputError, match="has no test part"):
        evaluate(Split(split.train, name="waves"), [], [], [1])
    with pytest.raises(InputError, match="needs labels"):
        evaluate(Split(Windows(split.train.x), split.test), [], [], [1])
    with pytest.raises(InputError, match="Did you mean 'raw-mean'"):
        contender("rawmean")


def test_only_labelled_cases_are_scored_and_labels_reach_only_those_who_need_them(split):
    train, test = split.train.y.astype(float), split.test.y.astype(float)
    train[::4], test[:3] = np.nan, np.nan
    partly = Split(Windows(split.train.x, train), Windows(split.test.x, test), name="partly")
    seen = {}

    class Spy:
        def __init__(self, name):
            self.name = name

        def fit(self, X, y=None):
            seen[self.name] = (len(X), y)

        def transform(self, X):
            return X.reshape(len(X), -1)

    spies = [Contender("free", lambda seed: Spy("free")), Contender("taught", lambda seed: Spy("taught"), True)]
    result = evaluate(partly, spies, protocols("knn_all"), [1])
    assert seen["free"] == (12, None)
    assert seen["taught"][0] == 9 and not np.isnan(seen["taught"][1]).any()
    known, asked = result.run("free").features(partly)
    assert (len(known.y), len(asked.y)) == (9, 9)
    truth = Split(split.train.subset(~np.isnan(train)), split.test.subset(slice(3, None)))
    expected = evaluate(truth, [contender("raw-flat")], protocols("knn_all"), [1]).scores
    assert [s.value for s in result.scores[:4]] == [s.value for s in expected]
    blank = Split(partly.train, Windows(split.test.x, np.full(12, np.nan)))
    with pytest.raises(InputError, match="none of the 12 test cases"):
        evaluate(blank, [], [], [1])


def test_every_draw_is_a_row_and_a_fixed_contender_is_fitted_once(split):
    fits = []

    class Counted(Frozen):
        def fit(self, X, y=None):
            fits.append(1)

    saved = Contender("saved", lambda seed: Counted(contender("raw-mean").make(1).fit(split.train.x)), fixed=True)
    result = evaluate(split, [saved], protocols("few_5", "linear"), [1, 2])
    assert len(fits) == 1 and result.fixed == ["saved"]
    drawn = [(s.seed, s.draw) for s in result.scores if (s.protocol, s.metric) == ("few_5", "accuracy")]
    assert drawn == [(seed, draw) for seed in (1, 2) for draw in range(1, 11)]
    assert {s.draw for s in result.scores if s.protocol == "linear"} == {1}


def test_what_stands_beside_a_model_has_its_settings():
    from dicot.evaluation import beside

    model = contender(
        "dicot", encoder="resnet", encoder_params={"original": True}, pooling="max", scale="case", **QUICK
    )
    made = {one.name: one for one in beside(model.make(3))}
    assert list(made) == list(BESIDE)
    settings = made["calibrated"].make(1).get_params()
    wanted = {"method": "calibrated", "encoder": "resnet", "encoder_params": {"original": True}, "dim": 8}
    assert wanted.items() <= settings.items() and (settings["pooling"], settings["scale"]) == ("max", "case")
    assert (made["raw-flat"].scale, made["raw-mean"].scale) == ("case", None)


def test_protocols_that_come_to_the_same_are_scored_once(split):
    from dicot.evaluation import distinct

    kept, same = distinct(protocols("few_5", "few_10", "knn_5", "knn_10", "knn_all"), split)  # classes of four
    assert [one.name for one in kept] == ["linear", "knn_all"]
    assert same == {"linear": ["few_5", "few_10"], "knn_all": ["knn_5", "knn_10"]}
