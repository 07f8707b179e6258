import numpy as np
import pytest

from dicot.errors import InputError
from dicot.evaluation import BESIDE, Contender, Frozen, contender, evaluate
from dicot.protocols import PROTOCOLS
from dicot.windows import Split, Windows

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
