import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from dicot import TimeSeriesEmbedder
from dicot.errors import InputError
from dicot.windows import Windows


def small(**settings) -> TimeSeriesEmbedder:
    return TimeSeriesEmbedder(**{"dim": 16, "steps": 2, "random_state": 0, "device": "cpu", **settings})


@pytest.mark.filterwarnings("ignore:Cases of . time steps are too short")
@parametrize_with_checks([TimeSeriesEmbedder(steps=2, device="cpu")])  # on a GPU two fits differ in the last bits
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_same_seed_same_bytes_and_other_seed_other_weights(waves):
    first, again, other = (small(random_state=seed).fit(waves.x).transform(waves.x) for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert not np.array_equal(first, other)
    assert first.dtype == np.float32


def test_random_state_none_differs_and_touches_nothing(waves):
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    models = [small(random_state=None).fit(waves.x) for _ in range(2)]
    assert np.array_equal(before[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(before[1], torch.get_rng_state())
    assert models[0].seed_ != models[1].seed_
    generator = np.random.RandomState(3)
    assert small(random_state=generator).fit(waves.x).seed_ != small(random_state=generator).fit(waves.x).seed_
    with pytest.raises(InputError, match="random_state must be .* 0 or more"):
        small(random_state=-1).fit(waves.x)


def test_layouts_and_containers_agree(waves):
    model = small().fit(waves.x)
    expected = model.transform(waves.x)
    assert np.array_equal(model.transform(torch.from_numpy(waves.x)), expected)
    assert np.array_equal(model.transform(list(waves.x)), expected)
    assert np.array_equal(model.transform(waves), expected)
    time_first = small(layout="ntc").fit(waves.x.transpose(0, 2, 1))
    assert np.array_equal(time_first.transform(waves.x.transpose(0, 2, 1)), expected)


def test_time_may_change_for_three_dimensions_and_channels_may_not(waves):
    model = small().fit(waves.x)
    assert model.transform(waves.x[..., :20]).shape == (24, 16)
    with pytest.raises(InputError, match=r"X has 1 channel\(s\); this model was fitted on 2"):
        model.transform(waves.x[:, :1])
    flat = small().fit(waves.x[:, 0])
    with pytest.raises(ValueError, match="20 features"):
        flat.transform(waves.x[:, 0, :20])


def ragged(waves) -> list[np.ndarray]:
    return [case[:, : 20 + i % 5] for i, case in enumerate(waves.x)]


@pytest.mark.parametrize("unequal", ["pad", "crop", "resample"])
def test_unequal_cases_do_not_depend_on_their_company(waves, unequal):
    cases = ragged(waves)
    model = small(unequal=unequal).fit(cases)
    whole = model.transform(cases)
    assert whole.shape == (24, 16)
    for i in (0, 3, 4, 23):
        np.testing.assert_allclose(model.transform([cases[i]]), whole[i : i + 1], atol=1e-6)
    longer = [np.concatenate([cases[0], cases[1]], axis=1), cases[0]]
    np.testing.assert_allclose(model.transform(longer)[1], whole[0], atol=1e-6)


def test_unequal_and_missing_are_errors_by_default(waves):
    with pytest.raises(InputError, match="unequal="):
        small().fit(ragged(waves))
    holes = waves.x.copy()
    holes[3, 0, 5] = np.nan
    with pytest.raises(InputError, match="NaN.*case 3"):
        small().fit(holes)
    filled = small(missing="interpolate").fit(holes)
    assert np.isfinite(filled.transform(holes)).all()


def test_scale_uses_the_training_sets_statistics(waves):
    shifted = waves.x * 50 + 7
    z = (waves.x - waves.x.mean((0, 2))[:, None]) / waves.x.std((0, 2))[:, None]
    model = small(method="calibrated", scale="dataset").fit(shifted)
    plain = small(method="calibrated").fit(z)
    np.testing.assert_allclose(model.transform(shifted[:3]), plain.transform(z[:3]), atol=1e-4)
    each = (waves.x - waves.x.mean(2, keepdims=True)) / waves.x.std(2, keepdims=True)
    by_case = small(method="random", scale="case").fit(shifted)
    np.testing.assert_allclose(by_case.transform(shifted), small(method="random").fit(each).transform(each), atol=1e-4)


def test_time_step_features(waves):
    model = small(unequal="pad").fit(waves.x)
    h = model.transform_time_steps(waves.x)
    assert h.shape == (24, 16, 32)
    np.testing.assert_allclose(h.mean(-1), model.transform(waves.x), atol=1e-6)
    mixed = model.transform_time_steps([waves.x[0], np.tile(waves.x[1], 2)])
    assert [case.shape for case in mixed] == [(16, 32), (16, 64)]


def test_pipeline_grid_search_clone_pickle_and_set_output(waves):
    pipeline = make_pipeline(small(), LogisticRegression(max_iter=500))
    search = GridSearchCV(pipeline, {"timeseriesembedder__pooling": ["mean", "max"]}, cv=2)
    search.fit(waves.x, waves.y)
    assert search.predict(waves.x).shape == (24,)
    model = small(method_params={"k": 3, "temperature": 1.0}).fit(waves.x)
    assert clone(model).get_params() == model.get_params()
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.transform(waves.x), model.transform(waves.x))
    frame = model.set_output(transform="pandas").transform(waves.x)
    assert list(frame.columns[:2]) == ["timeseriesembedder0", "timeseriesembedder1"]


def test_recipe_and_method_settings_reach_the_training(waves):
    model = small(steps=3, batch_size=4, lr=1e-3, schedule="per_epoch", family="ucr").fit(waves.x)
    recipe = model.recipe_
    assert (recipe.steps, recipe.batch_size, recipe.lr, recipe.schedule) == (3, 4, 1e-3, "per_epoch")
    assert model.method_params_ == {"temperature": 1.0}
    assert small(family="ucr", method_params={"temperature": 0.2}).fit(waves.x).method_params_ == {"temperature": 0.2}
    assert TimeSeriesEmbedder().get_params()["steps"] is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "dico"}, "Unknown method 'dico'. Did you mean 'dicot'"),
        ({"method": "calibrate"}, "Did you mean 'calibrated'"),
        ({"encoder": "resnett"}, "Did you mean 'resnet'"),
        ({"pooling": "men"}, "Unknown pooling"),
        ({"embed_precision": "fp8"}, "Unknown precision"),
        ({"preset": "papr"}, "Did you mean 'paper'"),
        ({"family": "UCR"}, "family must be one of"),
        ({"schedule": "hourly"}, "schedule must be"),
        ({"steps": -1}, "steps must be"),
        ({"steps": 2.5}, "steps must be a whole number.*got 2.5"),
        ({"steps": "2"}, "steps must be a whole number.*got '2'"),
        ({"batch_size": True}, "batch_size must be a whole number.*got True"),
        ({"lr": "x"}, "lr must be a finite number.*got 'x'"),
        ({"dim": 2.5}, "dim must be a whole number.*got 2.5"),
        ({"dim": True}, "dim must be a whole number.*got True"),
        ({"random_state": 2.5}, "random_state must be a whole number.*got 2.5"),
        ({"method_params": {"kk": 1}}, "does not take"),
        ({"unequal": "stretch"}, "unequal"),
        ({"missing": "guess"}, "missing"),
        ({"scale": "minmax"}, "scale"),
        ({"layout": "tnc"}, "layout"),
    ],
    ids=str,
)
def test_bad_settings_are_refused_at_fit(settings, message, waves):
    with pytest.raises(InputError, match=message):
        small(**settings).fit(waves.x)


def test_not_fitted(waves):
    with pytest.raises(NotFittedError):
        small().transform(waves.x)
    with pytest.raises(NotFittedError):
        small().save_pretrained("nowhere")


def test_one_time_step_raises_and_three_warn(waves):
    with pytest.raises(InputError, match="1 time step"):
        small().fit(waves.x[:, :1, :1])
    with pytest.warns(UserWarning, match="too short for overlapping"):
        model = small().fit(waves.x[..., :3])
    assert np.isfinite(model.transform(waves.x[..., :3])).all()


def test_more_channels_than_time_steps_are_warned_of_once(waves):
    turned = waves.x.transpose(0, 2, 1)
    with pytest.warns(UserWarning, match='32 channels of 2 time steps.*layout="ntc"') as seen:
        small(method="random").fit(turned)
    assert len(seen) == 1
    small(method="random", layout="ntc").fit(turned)
    small(method="random").fit(Windows(np.ascontiguousarray(turned)))  # whose layout is known


@pytest.mark.parametrize("unlabelled", [None, np.nan, ""])
def test_labels_that_are_not_needed_may_be_missing(waves, unlabelled):
    labels = [unlabelled, *"ab" * 11, unlabelled]
    with_labels = small().fit(waves.x, labels).transform(waves.x)
    assert np.array_equal(with_labels, small().fit(waves.x).transform(waves.x))


def test_a_path_is_a_checkpoint(waves, tmp_path):
    path = tmp_path / "run.safetensors"
    first = small().fit(waves.x, checkpoint=str(path))
    assert path.is_file()
    assert np.array_equal(small().fit(waves.x, checkpoint=path).transform(waves.x), first.transform(waves.x))
    with pytest.raises(InputError, match="checkpoint must be a path.*got True"):
        small().fit(waves.x, checkpoint=True)


def test_labels_of_another_length_are_refused(waves):
    with pytest.raises(InputError, match="one value for each of the 24 cases; got 3"):
        small().fit(waves.x, [0, 1, 2])
