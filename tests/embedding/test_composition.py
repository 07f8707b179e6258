"""Vectors of several parts, fitted, compressed and saved with the estimator."""

import hashlib
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from dicot import TimeSeriesEmbedder
from dicot.core.errors import InputError, ModelFileError
from dicot.data import Windows
from dicot.judge.evaluation import saved as saved_contender
from dicot.model.embedding import embed, fit_composition, pooled_dim
from dicot.model.files import BESIDE, grouped
from dicot.model.kernels import Bank, Contests
from dicot.nets.encoders import build_encoder
from tests.commands import dicot

EVERYTHING = {"pooling": "layers", "bank": "mixed", "n_components": 12}


def model(method: str = "calibrated", **more) -> TimeSeriesEmbedder:
    usual = {"preset": "paper", "dim": 8, "steps": 2, "random_state": 1, "device": "cpu"}
    return TimeSeriesEmbedder(method, **grouped({**usual, **more}))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    from tests.conftest import make_waves

    made = model(**EVERYTHING).fit(make_waves())
    return made, made.save_pretrained(tmp_path_factory.mktemp("composed") / "model")


@pytest.mark.parametrize(
    ("name", "value", "length"),
    [
        ("bank", 168, 24 + 168),
        ("bank", "mixed", 24 + 2016 + 2 * 512),
        ("n_components", 12, 12),
    ],
)
def test_parts_one_by_one(waves, name, value, length):
    made = model(pooling="mean+max+std", **{name: value}).fit(waves)
    z = made.transform(waves.x)
    assert z.shape == (24, length)
    assert len(made.get_feature_names_out()) == z.shape[1]
    pooled = model(pooling="mean+max+std").fit(waves).transform(waves.x)
    if name != "n_components":
        np.testing.assert_allclose(z[:, :24], pooled, atol=1e-6)
    if name == "bank":
        n = 168 if value == 168 else 2016
        shares = Bank.fit(waves.x, n, seed=1)(torch.from_numpy(waves.x)).numpy()
        np.testing.assert_allclose(z[:, 24 : 24 + n], shares, atol=1e-6)
    if value == "mixed":
        contests = Contests.draw(2, 32, seed=1)(torch.from_numpy(waves.x)).numpy()
        np.testing.assert_allclose(z[:, 24 + 2016 :], contests, atol=1e-5)


def test_a_case_does_not_depend_on_its_company(fitted, waves):
    made, _ = fitted
    whole = made.transform(waves.x)
    assert whole.shape == (24, 12)
    np.testing.assert_allclose(whole.std(axis=0), 1, atol=1e-3)
    for rows in ([5], [7, 3], np.random.default_rng(1).permutation(24)):
        np.testing.assert_allclose(made.transform(waves.x[rows]), whole[rows], atol=1e-5)


def test_round_trip(fitted, waves):
    made, folder = fitted
    loaded = TimeSeriesEmbedder.from_pretrained(folder, device="cpu")
    assert np.array_equal(loaded.transform(waves.x), made.transform(waves.x))
    assert loaded.get_params() == made.get_params()
    assert list(loaded.get_feature_names_out()) == list(made.get_feature_names_out())
    assert loaded.transform_time_steps(waves.x).shape == (24, 8, 32)
    rows = np.zeros((24, 12), np.float32)
    assert np.array_equal(loaded.transform_into(waves.x, lambda n, f: rows), made.transform(waves.x))


def test_without_parts_a_model_is_saved_as_ever(tmp_path, waves):
    made = model().fit(waves)
    folder = made.save_pretrained(tmp_path / "plain")
    assert load((folder / "model.safetensors").read_bytes()).keys() == made.encoder_.state_dict().keys()
    config = json.loads((folder / "config.json").read_text())
    assert "beside" not in config


def rewritten(folder, change, tmp_path):
    """A copy of the model with other tensors and an honest hash."""
    tensors = load((folder / "model.safetensors").read_bytes())
    config = json.loads((folder / "config.json").read_text())
    change(tensors, config)
    data = save(tensors)
    config.pop("sha256", None)
    config["weights"]["sha256"] = hashlib.sha256(data).hexdigest()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "model.safetensors").write_bytes(data)
    (copy / "config.json").write_text(json.dumps(config))
    return copy


def put(name, value):
    def change(tensors, config):
        tensors[BESIDE + name] = value(tensors[BESIDE + name])
        config["beside"][name] = {
            "shape": list(tensors[BESIDE + name].shape),
            "type": str(tensors[BESIDE + name].dtype).removeprefix("torch."),
        }

    return change


def drop(part):
    def change(tensors, config):
        for name in [name for name in config["beside"] if name.startswith(part)]:
            del tensors[BESIDE + name], config["beside"][name]

    return change


def claim(name, value):
    def change(tensors, config):
        config["beside"][name] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        put("bank.layout", lambda t: t * 0),
        put("bank.layout", lambda t: t * 1000),
        put("bank.channels", lambda t: t[:, :, :1].clone()),
        put("bank.biases", lambda t: t[:80].clone()),
        put("contests.taps", lambda t: t[:, :1].clone()),
        put("compression.weight", lambda t: t[1:].clone()),
        drop("bank.layout"),
        drop("contests.taps"),
        claim("more", {"shape": [1], "type": "float32"}),
        claim("bank.biases", {"shape": [2, 2], "type": "object"}),
        claim("bank.biases", {"shape": [10**15, 2], "type": "float32"}),
    ],
)
def test_damaged_parts_are_refused_in_words(fitted, tmp_path, change):
    _, folder = fitted
    with pytest.raises(ModelFileError, match="copy"):
        TimeSeriesEmbedder.from_pretrained(rewritten(folder, change, tmp_path))


@pytest.mark.parametrize(
    "settings",
    [{"bank": 83}, {"bank": "both"}, {"bank": 100.5}, {"bank": 10_000}, {"n_components": 2049}],
)
def test_settings_that_make_no_sense_are_refused(waves, settings):
    with pytest.raises(InputError, match=str(next(iter(settings.values())))):
        model(**settings).fit(waves)


def test_cases_that_do_not_differ_are_told_and_nothing_changes(waves):
    made = model(n_components=4).fit(waves)
    before = made.transform(waves.x)
    with pytest.raises(InputError, match="differ from each other"):
        made.fit(np.ones((5, 2, 32), np.float32))
    assert np.array_equal(made.transform(waves.x), before)


def test_other_lengths_and_few_time_steps(waves):
    made = model(**EVERYTHING).fit(waves)
    assert made.transform(waves.x[:, :, :20]).shape == (24, 12)
    tiny = model(**{**EVERYTHING, "n_components": 3}).fit(waves.x[:, :, :4])
    assert tiny.transform(waves.x[:, :, :4]).shape == (24, 3)
    unequal = model(unequal="pad", **EVERYTHING).fit([case[:, : 20 + i % 5] for i, case in enumerate(waves.x)])
    assert unequal.transform([waves.x[0], waves.x[1][:, :10]]).shape == (2, 12)


def test_many_training_cases_are_drawn_from(monkeypatch, waves, tmp_path):
    monkeypatch.setattr("dicot.model.embedding.MOST_CASES", 10)
    np.save(tmp_path / "x.npy", waves.x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    encoder = build_encoder("fcn", {"n_channels": 2, "dim": 8}).eval()
    settings = {"pooling": "mean", "bank": 84, "n_components": 100, "device": "cpu"}
    one, other = (fit_composition(encoder, mapped, seed=seed, **settings) for seed in (1, 2))
    assert one.dim(8) == 9, "ten cases have nine components"
    assert not torch.equal(one.tensors()["compression.mean"], other.tensors()["compression.mean"])
    done = []
    fit_composition(encoder, mapped, seed=1, on_batch=done.append, **settings)
    assert done[-1] == 10
    monkeypatch.setattr("dicot.model.embedding.ENOUGH_CASES", 8)
    fit_composition(encoder, mapped, seed=1, on_batch=done.append, **{**settings, "n_components": 0, "length": 12})
    assert done[-1] == 8, "an exact length needs fewer"


def test_float64_encoders(waves):
    encoder = build_encoder("inception_time", {"n_channels": 2, "dim": 8}).double().eval()
    settings = {"pooling": "layers", "bank": 84}
    composition = fit_composition(encoder, waves.x, n_components=5, device="cpu", **settings)
    z = embed(encoder, waves.x, pooling="layers", composer=composition, device="cpu")
    assert z.dtype == np.float64 and z.shape == (24, 5)
    assert composition.dim(pooled_dim(encoder, "layers")) == 5


def test_a_saved_model_is_another_contender_with_other_parts(waves):
    one, other = (saved_contender("m", model(bank=84, random_state=1).fit(Windows(x))) for x in (waves.x, -waves.x))
    assert one.config != other.config


@pytest.mark.parametrize("bank", ["84", "mixed"])
def test_on_the_command_line(tmp_path, waves, bank):
    np.savez(tmp_path / "a.npz", X=waves.x)
    given = (f"bank={bank}", "n_components=7", "pooling=layers")
    flags = [word for one in given for word in ("--set", one)]
    usual = ["--method", "dicot", "--steps", "1", "--set", "dim=8", "--set", "batch_size=4", "--device", "cpu"]
    dicot("pretrain", str(tmp_path / "a.npz"), *usual, *flags, "--out", str(tmp_path / "m"))
    assert TimeSeriesEmbedder.from_pretrained(tmp_path / "m", device="cpu").transform(waves.x).shape == (24, 7)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_a_gpu_gives_what_a_cpu_gives():
    x = np.random.default_rng(0).normal(size=(600, 2, 120)).cumsum(axis=2).astype(np.float32)
    made = model(**{**EVERYTHING, "n_components": 30}).fit(x[:100])
    expected = made.transform(x)
    found = made.set_params(device="cuda").transform(x)
    np.testing.assert_allclose(found, expected, atol=0.05)  # a share that counts one time step more
    assert np.median(np.abs(found - expected)) < 1e-4
