"""evaluate: everybody answers, everything is scored, failures are rows, controls stand beside."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dicot.core.errors import InputError
from dicot.data import Split, Windows
from dicot.judge.classical import RAW_FEATURES
from dicot.judge.evaluation import contender, distinct, evaluate, own, saved, with_controls
from dicot.judge.evaluation.contenders import Frozen, flat
from dicot.judge.protocols import MODEL_PROTOCOLS, PROTOCOLS, Metric, ModelProtocol, Probe
from dicot.judge.result import Result
from dicot.model.controls import CONTROLS
from dicot.model.estimator import TimeSeriesEmbedder

QUICK = {"dim": 8, "steps": 1}
BESIDE = (*CONTROLS, *RAW_FEATURES)


@pytest.fixture
def split(waves) -> Split:
    return Split(waves.subset(slice(0, 12)), waves.subset(slice(12, 24)), name="waves")


def run(split, contenders, protocols, seeds=(1,), **more):
    return evaluate(split, contenders, protocols, seeds, **{"controls": False, "device": "cpu", **more})


def protocols(*names):
    return [PROTOCOLS[name]() for name in names]


def test_every_contender_answers_and_every_protocol_scores(split):
    told = []
    result = evaluate(
        split,
        [contender("dicot", **QUICK)],
        ["linear", "clustering"],
        (1, 2),
        device="cpu",
        on_fit=lambda unit, fitted: told.append((unit.first.contender.name, *unit.seeds)),
    )
    assert told == [
        *[(name, 1) for name in ("dicot", *CONTROLS)],
        *[(name, 1, 2) for name in RAW_FEATURES],
        *[(name, 2) for name in ("dicot", *CONTROLS)],
    ]
    assert [(one.contender, one.seed, one.protocol) for one in result.results] == [
        (name, seed, protocol)
        for seed in (1, 2)
        for name in ("dicot", *BESIDE)
        for protocol in ("linear", "clustering")
    ]
    assert all(one.error is None and np.isfinite(list(one.values.values())).all() for one in result.results)
    assert result.embeddings["dicot"][1].x.shape == (12, 8)
    assert result.embeddings["raw-flat"][1].x.shape == (12, 64)
    trained = result.results[0]
    assert (trained.steps, trained.schedule, trained.device, trained.source) == (1, "per_step", "cpu", "waves")


def test_a_result_is_a_number_or_a_reason():
    facts = {"suite": "s", "contender": "c", "source": "a", "target": "a", "protocol": "linear", "seed": 1}
    assert [row["value"] for row in Result(**facts, values={"accuracy": 7.0, "macro_f1": 8.0}).tidy()] == [7.0, 8.0]
    with pytest.raises(InputError, match="accuracy"):
        Result(**facts, values={"accuracy": np.nan})
    with pytest.raises(InputError, match=r"7\.0"):
        Result(**facts, values={"accuracy": 7.0}, error="it broke")


class Broken:
    def fit(self, X, y=None):
        raise RuntimeError("out of luck")

    def transform(self, X):
        raise AssertionError("never reached")


def test_a_failure_is_a_row(split):
    result = run(split, [own("broken", lambda seed: Broken())], ["linear", "knn_5", "few_5"])
    assert result.error("broken") == "RuntimeError: out of luck"
    assert {one.error for one in result.results} == {"RuntimeError: out of luck"}
    assert [one.protocol for one in result.results] == ["linear", "knn_all"]  # few_5 comes to linear, knn_5 to all
    assert all(np.isnan(value) for one in result.results for value in one.values.values())


def test_a_saved_model_is_not_fitted_again_and_its_controls_are_its_own(split):
    model = TimeSeriesEmbedder("dicot", encoder="fcn", device="cpu", random_state=1, **QUICK).fit(split.train.x)
    result = run(split, [saved("mine", model)], ["knn_all"], [5], controls=True)
    assert np.array_equal(result.embeddings["mine"][1].x, model.transform(split.test.x))
    assert result.models["mine"].model is model and result.models["calibrated"].encoder == "fcn"


def test_needs_test_cases_and_labels(split):
    with pytest.raises(InputError, match="no test part in waves"):
        run(Split(split.train, name="waves"), ["raw-mean"], None)
    with pytest.raises(InputError, match="labels"):
        run(Split(Windows(split.train.x), split.test), ["raw-mean"], None)
    with pytest.raises(InputError, match="'raw-mean'"):
        contender("rawmean")
    with pytest.raises(InputError, match="17"):
        run(split, [17], None)


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

    spies = [own("free", lambda seed: Spy("free")), own("taught", lambda seed: Spy("taught"), needs_labels=True)]
    result = run(partly, spies, ["knn_all"])
    assert seen["free"] == (12, None)
    assert seen["taught"][0] == 9 and not np.isnan(seen["taught"][1]).any()
    known, asked = result.embeddings["free"]
    assert (len(known.y), len(asked.y)) == (9, 9)
    truth = Split(split.train.subset(~np.isnan(train)), split.test.subset(slice(3, None)))
    assert result.results[0].values == run(truth, ["raw-flat"], ["knn_all"]).results[0].values
    blank = Split(partly.train, Windows(split.test.x, np.full(12, np.nan)))
    with pytest.raises(InputError, match="test cases"):
        run(blank, ["raw-mean"], None)


def test_every_draw_is_a_row_and_a_fixed_contender_is_fitted_once(waves):
    split = Split(waves, waves, name="waves")  # eight cases of each class
    fits = []

    class Counted(Frozen):
        def fit(self, X, y=None):
            fits.append(1)

    frozen = Counted(contender("raw-mean").make(1).fit(waves.x))
    result = run(split, [own("fixed", lambda seed: frozen, fixed=True)], ["few_5", "linear"], [1, 2])
    assert len(fits) == 1 and result.fixed == ["fixed"]
    drawn = [(one.seed, one.draw) for one in result.results if one.protocol == "few_5"]
    assert drawn == [(seed, draw) for seed in (1, 2) for draw in range(1, 11)]
    assert {one.draw for one in result.results if one.protocol == "linear"} == {1}
    values = [one.values["accuracy"] for one in result.results if one.protocol == "few_5"]
    assert values[:10] != values[10:]


def test_estimators_are_cloned_for_each_seed(split):
    """Two of one method have different names; the instance itself stays as it is."""
    mine = TimeSeriesEmbedder("dicot", device="cpu", random_state=9, **QUICK)
    other = TimeSeriesEmbedder("dicot", encoder="fcn", device="cpu", **QUICK)
    result = run(split, [mine, other], ["knn_all"], [1, 2])
    assert {(one.contender, one.seed) for one in result.results} == {
        ("dicot", 1), ("dicot", 2), ("dicot (2)", 1), ("dicot (2)", 2)
    }  # fmt: skip
    assert mine.random_state == 9 and not hasattr(mine, "encoder_")
    by_name = run(split, [contender("dicot", **QUICK)], ["knn_all"]).results
    assert result.results[0].values == by_name[0].values, "seed 1 is seed 1"
    named = run(split, {"small": mine, "raw": "raw-mean"}, ["knn_all"])
    assert [one.contender for one in named.results] == ["small", "raw"]
    with pytest.raises(InputError, match="'raw-mean'"):
        run(split, ["raw-mean", "raw-mean"], ["knn_all"])


def test_a_foreign_transformer_takes_part(split):
    from sklearn.base import BaseEstimator, TransformerMixin

    class Largest(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X.max(axis=2)

    result = run(split, [Largest()], ["knn_all"], controls=True)
    assert [one.contender for one in result.results] == ["Largest", *BESIDE]
    assert all(one.error is None for one in result.results)


def test_controls_are_those_of_every_encoder_that_takes_part():
    small = TimeSeriesEmbedder("dicot", encoder="fcn", dim=8)
    everyone = with_controls([contender("dicot"), contender("tnc", steps=5), *_estimators(mine=small)])
    assert [one.name for one in everyone] == [
        "dicot", "tnc", "mine", *CONTROLS, *(f"{name} of mine" for name in CONTROLS), *RAW_FEATURES
    ]  # fmt: skip
    made = {one.name: one.make(3) for one in everyone if one.name in ("random", "random of mine")}
    assert made["random"].encoder != "fcn" and made["random of mine"].encoder == "fcn"
    assert (made["random of mine"].method, made["random of mine"].random_state) == ("random", 3)
    net = torch.nn.Conv1d(2, 8, 3, padding="same")
    pair = _estimators(a=TimeSeriesEmbedder("dicot", encoder=net), b=TimeSeriesEmbedder("tnc", encoder=net))
    assert [one.name for one in with_controls(pair)] == ["a", "b", *BESIDE], "one encoder, one pair of controls"
    given = with_controls([contender("random"), contender("raw-mean")])
    assert sorted(one.name for one in given) == sorted(BESIDE)


def _estimators(**given):
    from dicot.judge.evaluation.contenders import named_contenders

    return named_contenders(given)


def test_what_stands_beside_a_model_has_its_settings(split):
    model = TimeSeriesEmbedder(
        "dicot",
        encoder="resnet",
        encoder_params={"original": True},
        features={"pooling": "max"},
        prepare={"scale": "case"},
        **QUICK,
    )
    made = {one.name: one for one in with_controls(_estimators(ours=model))}
    assert list(made) == ["ours", *BESIDE]
    settings = flat(made["calibrated"].make(1).get_params(deep=False))
    wanted = {"method": "calibrated", "encoder": "resnet", "encoder_params": {"original": True}, "dim": 8}
    wanted |= {"pooling": "max", "scale": "case"}
    assert wanted.items() <= settings.items()
    scaled = made["raw-flat"].make(1).fit(split.train.x).transform(split.test.x)
    assert np.allclose(scaled.reshape(12, 2, -1).mean(axis=2), 0, atol=1e-5)
    assert not np.allclose(made["raw-mean"].make(1).fit(split.train.x).transform(split.test.x), 0, atol=1e-3)


def test_protocols_that_come_to_the_same_are_scored_once(split):
    chosen, same = distinct(protocols("few_5", "few_10", "knn_5", "knn_10", "knn_all"), split)  # classes of four
    assert [one.name for one in chosen] == ["linear", "knn_all"]
    assert same == {"linear": ["few_5", "few_10"], "knn_all": ["knn_5", "knn_10"]}


def test_protocols_may_be_objects_and_score_the_network(split, monkeypatch):
    class Width(ModelProtocol):
        metrics = (Metric("features", higher_is_better=False),)
        name = "width"
        description = "features of the encoder"

        def score(self, fitted, data, *, seed, steps=None):
            return {"features": float(fitted.model.encoder_.dim)}

    mine = contender("random", dim=8)
    result = run(split, [mine, "raw-mean"], [Width(), Probe("linear", per_class=2), "cost"])
    values = {(one.contender, one.protocol): one.values for one in result.results if one.draw == 1}
    assert values["random", "width"] == {"features": 8.0}
    assert {key for key in values if key[0] == "raw-mean"} == {("raw-mean", Probe("linear", per_class=2).name)}
    assert values["random", "cost"]["fit_seconds"] > 0
    monkeypatch.setitem(MODEL_PROTOCOLS, "width", Width)
    assert run(split, [mine], ["width"]).results[0].values == {"features": 8.0}


def test_a_pair_of_windows_and_a_file_are_data_too(split, tmp_path):
    by_split = run(split, ["raw-mean"], ["linear"]).results[0]
    pair = (replace(split.train, name="pair"), split.test)
    by_pair = run(pair, ["raw-mean"], ["linear"]).results[0]
    assert by_pair.values == by_split.values and by_pair.source == "pair"
    path = tmp_path / "waves.npz"
    np.savez(path, X_train=split.train.x, y_train=split.train.y, X_test=split.test.x, y_test=split.test.y)
    assert run(str(path), ["raw-mean"], ["linear"]).results[0].values == by_split.values
