import json
import os

import numpy as np
import pytest
import torch

import dicot
from dicot.encoders import ENCODERS, build_encoder
from dicot.errors import InputError, ModelFileError
from dicot.estimator import TimeSeriesEmbedder
from dicot.pretrained import from_pretrained, save_pretrained


@pytest.fixture
def saved(tmp_path, waves):
    model = TimeSeriesEmbedder(dim=16, steps=2, random_state=1, scale="dataset", pooling="mean+max+std", device="cpu")
    model.fit(waves)
    return model, model.save_pretrained(tmp_path / "model")


def test_round_trip(saved, waves):
    model, folder = saved
    loaded = TimeSeriesEmbedder.from_pretrained(folder, device="cpu")
    assert np.array_equal(loaded.transform(waves.x), model.transform(waves.x))
    assert loaded.get_params() == {**model.get_params()}
    assert (loaded.history_, loaded.recipe_, loaded.seed_) == (model.history_, model.recipe_, 1)
    assert list(loaded.get_feature_names_out()) == list(model.get_feature_names_out())
    assert sorted(os.listdir(folder)) == ["config.json", "model.safetensors"]


def test_config_tells_where_it_comes_from(saved, waves):
    _, folder = saved
    config = json.loads((folder / "config.json").read_text())
    assert config["library_version"] == dicot.__version__
    assert config["data"] == {"name": "waves", "fingerprint": waves.fingerprint(), "labels": "", "n_cases": 24}
    assert config["recipe"]["steps"] == 2 and config["recipe"]["schedule"] == "per_step"
    assert config["method_params"] == {"temperature": 0.07}
    assert len(config["preparation"]["statistics"]["mean"]) == 2
    assert len(config["history"]["loss"]) == 2


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_can_be_saved(name, tmp_path):
    torch.manual_seed(0)
    encoder = build_encoder(name, {"n_channels": 3, "dim": 8}).eval()
    loaded, _ = from_pretrained(save_pretrained(tmp_path / name, encoder, {}))
    x = torch.randn(2, 3, 12)
    assert torch.equal(loaded(x), encoder(x))


def test_two_dimensional_fit_is_remembered(tmp_path, waves):
    X = waves.x[:, 0]
    folder = TimeSeriesEmbedder(dim=8, steps=1, device="cpu").fit(X).save_pretrained(tmp_path / "flat")
    loaded = TimeSeriesEmbedder.from_pretrained(folder)
    with pytest.raises(ValueError, match="31 features, but TimeSeriesEmbedder is expecting 32"):
        loaded.transform(X[:, 1:])


def damage_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def damage_config(folder):
    (folder / "config.json").write_text('{"format": "dicot-enc')


def foreign_config(folder):
    (folder / "config.json").write_text('{"model_type": "bert"}')


def newer_config(folder):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": 99}))


def unknown_encoder(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["encoder"]["name"] = "transformer"
    path.write_text(json.dumps(config))


def no_weights(folder):
    (folder / "model.safetensors").unlink()


def no_config(folder):
    (folder / "config.json").unlink()


def lost_key(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config["preparation"]
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_weights, "truncated or does not belong"),
        (damage_config, "is damaged"),
        (foreign_config, "was not written by dicot"),
        (newer_config, "format version 99"),
        (unknown_encoder, "Unknown encoder 'transformer'"),
        (no_weights, "cannot be loaded.*model.safetensors"),
        (no_config, "is not a saved model: it has no config.json"),
        (lost_key, "preparation"),
    ],
)
def test_damaged_and_foreign_folders_are_named(saved, damage, message):
    _, folder = saved
    damage(folder)
    with pytest.raises(ModelFileError, match=message):
        TimeSeriesEmbedder.from_pretrained(folder)


def test_not_a_folder(tmp_path, saved):
    model, _ = saved
    with pytest.raises(ModelFileError, match="is not a folder"):
        TimeSeriesEmbedder.from_pretrained(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        model.save_pretrained(tmp_path / "file")
