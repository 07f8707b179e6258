import copy
import gc
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import dicot
from dicot import TimeSeriesClassifier, TimeSeriesEmbedder
from dicot.core.errors import InputError, ModelFileError, WindowLengthWarning
from dicot.data import Windows, check_collection
from dicot.methods.dicot import DiCOT
from dicot.model.controls import calibrated_control
from dicot.model.files import grouped
from dicot.nets.encoders import FCN
from dicot.train import Recipe
from tests.own import Halves, Net, OwnEncoder, Summary, slow_start


def small(**settings) -> TimeSeriesEmbedder:
    usual = {"preset": "paper", "dim": 16, "steps": 2, "random_state": 0, "device": "cpu"}
    return TimeSeriesEmbedder(**grouped({**usual, **settings}))


@pytest.mark.filterwarnings("ignore:Cases of . time steps are too short")
# Two steps of the paper's method and of the default, on a CPU: on a GPU two fits differ in the last bits. The default's
# own 150 steps take minutes, nearly all of it in these steps, and no check looks at what they do to the weights.
@parametrize_with_checks([TimeSeriesEmbedder(method, steps=2, device="cpu") for method in ("dicot", None)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_same_seed_same_bytes_and_other_seed_other_weights(waves):
    first, again, other = (small(random_state=seed).fit(waves.x).transform(waves.x) for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert not np.array_equal(first, other)
    assert first.dtype == np.float32


def test_calibrate_sets_batch_norms_statistics_by_the_training_cases(waves, tmp_path):
    usual, model = (small(calibrate=given).fit(waves.x) for given in (False, True))
    expected = copy.deepcopy(usual.encoder_)
    calibrated_control(expected, waves, "cpu")
    wanted, found = expected.state_dict(), model.encoder_.state_dict()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)
    moved = {name for name in wanted if not torch.equal(found[name], usual.encoder_.state_dict()[name])}
    assert moved and all(
        name.rpartition(".")[2] in ("running_mean", "running_var", "num_batches_tracked") for name in moved
    )
    again = TimeSeriesEmbedder.from_pretrained(model.save_pretrained(tmp_path / "model"), device="cpu")
    assert again.features_["calibrate"] and np.array_equal(again.transform(waves.x), model.transform(waves.x))
    torch.manual_seed(7)
    before = torch.get_rng_state()
    drawing = [small(encoder="resnet", calibrate=True).fit(waves.x).transform(waves.x) for _ in range(2)]
    assert np.array_equal(*drawing) and torch.equal(torch.get_rng_state(), before), "dropout is drawn by the seed"
    untouched = [small(method="random", calibrate=given).fit(waves.x).transform(waves.x) for given in (False, True)]
    assert np.array_equal(*untouched), "a control is what it says"
    with pytest.raises(InputError, match="calibrate must be True or False; got 'yes'"):
        small(calibrate="yes").fit(waves.x)


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


def test_fits_in_threads_end_as_they_do_alone(waves):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    alone = {seed: small(random_state=seed).fit(waves.x).transform(waves.x).tobytes() for seed in range(3)}
    with ThreadPoolExecutor(3) as pool:
        seeds = [*range(3)] * 2
        models = list(pool.map(lambda seed: small(random_state=seed).fit(waves.x), seeds))
    found = [model.transform(waves.x).tobytes() == alone[seed] for seed, model in zip(seeds, models, strict=True)]
    assert all(found)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_model_used_in_threads_gives_the_same_rows(waves):
    model = small().fit(waves.x)
    expected = model.transform(waves.x)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: model.transform(waves.x[i : i + 2]), [*range(0, 24, 2)] * 3))
    assert np.array_equal(np.concatenate(parts), np.concatenate([expected] * 3))


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


@pytest.mark.parametrize("scale", ["dataset", "case"])
def test_values_are_centred_before_they_are_rounded(scale, waves):
    whole = np.rint(waves.x * 100).astype(np.int64)
    near, far = (small(scale=scale).fit(x).transform(x) for x in (whole, whole + 10**9))
    assert np.allclose(near, far, atol=1e-5)


def test_windows_keep_what_float32_would_lose(waves):
    whole = np.rint(waves.x * 100).astype(np.int64)
    far = check_collection(whole + 10**9)
    assert np.array_equal(far.x - 10**9, whole)
    assert np.allclose(
        small(scale="dataset").fit(far).transform(far), small(scale="dataset").fit_transform(whole), atol=1e-5
    )


@pytest.mark.parametrize("scale", [None, "case"])
def test_one_value_that_no_network_can_take_is_named(scale, waves):
    x = waves.x.astype(np.float64)
    x[5, 1, 7] = 1e20 if scale is None else 1e200
    for broken in (x, list(x)):
        with pytest.raises(InputError, match=r"case 5 .*channel 1"):
            small(scale=scale).fit(broken)
    with pytest.raises(InputError, match=r"case 5 .*channel 1"):
        small(scale=scale).fit(waves.x).transform(x)


def test_values_of_any_size_are_scaled_or_refused(waves):
    with pytest.raises(InputError, match=r"case 0 "):
        small().fit(waves.x * np.float32(1e30))
    usual = small(scale="dataset").fit_transform(waves.x)
    assert np.allclose(small(scale="dataset").fit_transform(waves.x * np.float32(1e30)), usual, atol=0.01)


def test_a_fit_that_fails_leaves_the_old_state_whole(waves):
    model = small(scale="dataset").fit(waves.x[:, 0])
    expected, state = model.transform(waves.x[:, 0]), dict(vars(model))
    for broken, error in ((np.full((4, 32), np.nan), InputError), (waves.x * np.inf, InputError)):
        with pytest.raises(error):
            model.fit(broken)
        assert vars(model) == state
    with pytest.raises(KeyboardInterrupt):
        model.fit(100 * waves.x, on_step=interrupted)
    assert vars(model) == state
    assert np.array_equal(model.transform(waves.x[:, 0]), expected)


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_time_step_features(waves):
    model = small(unequal="pad").fit(waves.x)
    h = model.transform_time_steps(waves.x)
    assert h.shape == (24, 16, 32)
    np.testing.assert_allclose(h.mean(-1), model.transform(waves.x), atol=1e-6)
    mixed = model.transform_time_steps([waves.x[0], np.tile(waves.x[1], 2)])
    assert [case.shape for case in mixed] == [(16, 32), (16, 64)]


def test_pipeline_grid_search_clone_pickle_and_set_output(waves):
    pipeline = make_pipeline(small(), LogisticRegression(max_iter=500))
    search = GridSearchCV(pipeline, {"timeseriesembedder__features": [{"pooling": "mean"}, {"pooling": "max"}]}, cv=2)
    search.fit(waves.x, waves.y)
    assert search.predict(waves.x).shape == (24,)
    model = small(method_params={"k": 3, "temperature": 1.0}).fit(waves.x)
    assert clone(model).get_params() == model.get_params()
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.transform(waves.x), model.transform(waves.x))
    frame = model.set_output(transform="pandas").transform(waves.x)
    assert list(frame.columns[:2]) == ["timeseriesembedder0", "timeseriesembedder1"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "dico"}, "Unknown method 'dico'. Did you mean 'dicot'"),
        ({"encoder": "resnett"}, "Did you mean 'resnet'"),
        ({"pooling": "men"}, "Unknown pooling"),
        ({"embed_precision": "fp8"}, "Unknown precision"),
        ({"method": 3}, "method must be.*got 3"),
        ({"encoder": Net}, "Net"),
        ({"encoder": Net(), "encoder_params": {"depth": 2}}, "encoder_params.*Net"),
        ({"recipe": {"weight_decey": 0}}, "'weight_decay'"),
        ({"recipe": 5}, "recipe must be.*got 5"),
        ({"family": "UCR"}, "family must be one of"),
        ({"steps": 2.5}, "steps must be a whole number.*got 2.5"),
        ({"dim": 2.5}, "dim must be a whole number.*got 2.5"),
        ({"random_state": 2.5}, "random_state must be a whole number.*got 2.5"),
        ({"method_params": {"kk": 1}}, "does not take"),
        ({"features": {"poling": "max"}}, "features has no 'poling'. Did you mean 'pooling'"),
        ({"prepare": "dataset"}, "prepare must be a mapping.*got 'dataset'"),
        ({"unequal": "stretch"}, "unequal"),
        ({"missing": "guess"}, "missing"),
        ({"scale": "minmax"}, "scale"),
    ],
    ids=str,
)
def test_bad_settings_are_refused_at_fit(settings, message, waves):
    with pytest.raises(InputError, match=message):
        small(**settings).fit(waves.x)


def test_there_are_few_arguments_and_unknown_ones_are_refused():
    for kind in (TimeSeriesEmbedder, TimeSeriesClassifier):
        assert len(kind().get_params()) <= 14
        with pytest.raises(TypeError, match="learning_rate"):
            kind(learning_rate=3)


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


def states(module) -> list[bytes]:
    return [tensor.numpy().tobytes() for tensor in module.state_dict().values()]


@pytest.mark.parametrize("kind", [Net, Summary, partial(OwnEncoder, 2, 8)], ids=["steps", "vectors", "encoder"])
def test_a_module_is_copied_and_the_seed_decides_its_weights(waves, kind):
    modules = [kind(), kind()]
    before = [states(module) for module in modules]
    assert before[0] != before[1]
    first, again = (small(encoder=module).fit(waves.x) for module in modules)
    assert first.transform(waves.x).shape == (24, 8)
    assert np.array_equal(first.transform(waves.x), again.transform(waves.x))
    assert not np.array_equal(
        first.transform(waves.x), small(encoder=modules[0], random_state=1).fit_transform(waves.x)
    )
    assert [states(module) for module in modules] == before
    assert all(module.training for module in modules)


def test_an_encoder_or_a_method_may_be_given_by_name_or_as_such(waves):
    by_name = small(encoder="fcn").fit(waves.x).transform(waves.x)
    assert np.array_equal(small(encoder=FCN(2, 16)).fit_transform(waves.x), by_name)
    assert np.array_equal(small(method=DiCOT, encoder="fcn").fit_transform(waves.x), by_name)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"recipe": {"weight_decay": 0, "betas": [0.8, 0.9], "warmup": 0}}, (2, 8, 3e-4, 0.0, (0.8, 0.9), 0.0)),
        ({"recipe": {"steps": 5, "lr": 1e-2}, "lr": 1e-3}, (2, 8, 1e-3, 3e-4, (0.9, 0.99), 0.1)),
        ({"recipe": Recipe(steps=3, batch_size=4, warmup=0.5), "steps": None}, (3, 4, 3e-4, 3e-4, (0.9, 0.99), 0.5)),
        ({"recipe": Recipe(steps=3, batch_size=4), "batch_size": 5}, (2, 5, 3e-4, 3e-4, (0.9, 0.99), 0.1)),
    ],
    ids=str,
)
def test_what_is_given_directly_wins_over_the_recipe(waves, settings, expected):
    used = small(**settings).fit(waves.x).recipe_
    assert (used.steps, used.batch_size, used.lr, used.weight_decay, used.betas, used.warmup) == expected


def test_schedule_optimiser_and_callbacks_reach_the_training(waves):
    seen, made = [], []

    def momentum(groups):
        made.append(torch.optim.SGD(groups, lr=1.0, momentum=0.9))
        return made[-1]

    model = small(steps=4, schedule=slow_start).fit(
        waves.x, optimiser=momentum, on_step=[seen.append, lambda step: len(seen) == 3]
    )
    assert [step.loss for step in seen] == model.history_.loss and len(seen) == 3
    assert model.history_.lr == [slow_start(step) for step in range(3)]
    assert len(made) == 1 and all("momentum_buffer" in state for state in made[0].state.values())


def test_training_goes_on_from_initial_weights(waves, tmp_path):
    first = small(encoder="fcn").fit(waves.x)
    weights = first.encoder_.state_dict()
    folder = first.save_pretrained(tmp_path / "model")
    for initial in (str(folder), folder, first, first.encoder_, weights):
        start = small(encoder="fcn", steps=0, random_state=5).fit(waves.x, initial=initial)
        assert np.array_equal(start.transform(waves.x), first.transform(waves.x))
    again = small(encoder="fcn", random_state=5).fit(waves.x, initial=first)
    assert not np.array_equal(again.transform(waves.x), first.transform(waves.x))
    assert all(torch.equal(mine, weights[name]) for name, mine in first.encoder_.state_dict().items())
    averaged = small(method="ts2vec", encoder="fcn", steps=0, random_state=5).fit(waves.x, initial=first)
    assert np.array_equal(averaged.transform(waves.x), first.transform(waves.x)), "its copy of the encoder too"


def test_a_module_can_be_started_from(waves):
    module = Net()
    start = small(encoder=Net(), steps=0).fit(waves.x, initial=module)
    with torch.no_grad():
        expected = module.eval()(torch.from_numpy(waves.x)).mean(-1)
    np.testing.assert_allclose(start.transform(waves.x), expected, atol=1e-6)
    bare = small(encoder=Net(), steps=0).fit(waves.x, initial=module.state_dict())
    assert np.array_equal(bare.transform(waves.x), start.transform(waves.x))


def test_initial_weights_that_do_not_fit_are_named(waves, tmp_path):
    other = small(encoder="fcn", dim=8).fit(waves.x)
    folder = other.save_pretrained(tmp_path / "model")
    for initial in (other, folder, {"nothing": torch.zeros(2)}, Net()):
        with pytest.raises(ValueError, match=r"\.weight|nothing"):
            small(encoder="fcn").fit(waves.x, initial=initial)
    with pytest.raises(InputError, match="int"):
        small().fit(waves.x, initial=3)
    with pytest.raises(NotFittedError):
        small().fit(waves.x, initial=small())
    with pytest.raises(InputError, match="random"):
        small(method="random").fit(waves.x, initial=other)


def test_modules_classes_and_recipes_in_scikit_learns_tools(waves):
    module = Net()
    model = small(encoder=module, method=Halves, recipe={"warmup": 0.0})
    cloned = clone(model)
    assert cloned.encoder is not module and states(cloned.encoder) == states(module)
    assert (cloned.method, cloned.recipe) == (Halves, {"warmup": 0.0})
    assert model.get_params()["encoder"] is module
    assert np.array_equal(cloned.fit_transform(waves.x), model.fit_transform(waves.x))
    assert model.set_params(encoder="fcn", method="dicot").fit(waves.x).encoder_.dim == 16
    fitted = small(encoder=module, method=Halves, schedule=slow_start).fit(waves.x)
    copied = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copied.transform(waves.x), fitted.transform(waves.x))
    assert "Halves" in repr(fitted)


@pytest.mark.parametrize("settings", [{}, {"scale": "dataset"}, {"scale": "case", "unequal": "pad"}], ids=str)
def test_windows_are_taken_as_they_are_whatever_the_layout_of_arrays(waves, settings):
    expected = small(**settings).fit(waves.x).transform(waves.x)
    model = small(layout="ntc", **settings).fit(waves)
    assert np.array_equal(model.transform(waves), expected)
    assert np.array_equal(model.transform(waves.x.transpose(0, 2, 1)), expected)
    into = model.transform_into(waves.x, lambda n, f: np.empty((n, f), np.float32), layout="nct")
    assert np.array_equal(into, expected)
    with pytest.raises(InputError, match="0 sample"):
        model.transform(waves.subset([]))


def test_windows_that_know_their_channels_are_put_in_order_and_another_rate_is_refused(tmp_path):
    x = np.random.default_rng(0).normal(size=(12, 2, 40)).astype(np.float32)
    windows = Windows(x, channels=("a", "b"), rate=50.0)
    model = small().fit(windows)
    model.save_pretrained(tmp_path)
    for fitted in (model, TimeSeriesEmbedder.from_pretrained(tmp_path, device="cpu")):
        assert (fitted.preparation_.channels, fitted.preparation_.rate) == (("a", "b"), 50.0)
        expected = fitted.transform(x)
        np.testing.assert_array_equal(fitted.transform(windows), expected)
        np.testing.assert_array_equal(fitted.transform(Windows(x[:, ::-1], channels=("b", "a"))), expected)
        np.testing.assert_array_equal(fitted.transform(Windows(x, rate=50.5)), expected)
        with pytest.raises(InputError, match=r"X has the channels a, c; this model was fitted on a, b\. It lacks b\."):
            fitted.transform(Windows(x, channels=("a", "c")))
        with pytest.warns(WindowLengthWarning, match=r"have 20 time steps; this model was fitted on 40.*0\.8 s"):
            fitted.transform(Windows(x[:, :, :20], channels=("a", "b"), rate=50.0))
        with pytest.raises(InputError, match=r"X has 100 time steps per second; this model was fitted on 50\."):
            fitted.transform(Windows(x, rate=100.0))
    config = json.loads((tmp_path / "config.json").read_text())
    for damage in ({"channels": ["a", "a"]}, {"channels": ["a", 1]}, {"rate": -1.0}):
        changed = {**config, "preparation": {**config["preparation"], **damage}}
        (tmp_path / "config.json").write_text(json.dumps(changed))
        with pytest.raises(ModelFileError):
            TimeSeriesEmbedder.from_pretrained(tmp_path, device="cpu")


def test_a_fit_of_one_case_gives_its_features_uncompressed(waves, tmp_path):
    model = TimeSeriesEmbedder(random_state=0, device="cpu").fit(waves.x[:1])
    assert (model.features_["length"], model.composition_.compression) == (0, None)
    vectors = model.transform(waves.x)
    assert vectors.shape[1] > 1024 and len(np.unique(vectors, axis=0)) == len(waves.x)
    again = TimeSeriesEmbedder.from_pretrained(model.save_pretrained(tmp_path), device="cpu")
    np.testing.assert_array_equal(again.transform(waves.x), vectors)
    with pytest.raises(InputError, match="n_components=4 needs training cases that differ"):
        TimeSeriesEmbedder(features={"n_components": 4, "length": 0}, device="cpu").fit(waves.x[:1])


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_collected_after_an_import_as_before_it(enabled):
    was_enabled = gc.isenabled()
    try:
        if not enabled:
            gc.disable()
        assert dicot.__getattr__("TimeSeriesEmbedder") is TimeSeriesEmbedder
        assert gc.isenabled() == enabled
    finally:
        if was_enabled:
            gc.enable()
