import errno
import hashlib
import json
import os
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load, load_file, save

from dicot.core.device import peak_memory
from dicot.core.errors import DicotError, InputError, ModelFileError
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.files import grouped
from dicot.nets.encoders import FCN
from tests.own import Halves, Net, OwnEncoder, Summary, slow_start


@pytest.fixture
def saved(tmp_path, waves):
    model = TimeSeriesEmbedder(
        preset="paper",
        dim=16,
        steps=2,
        random_state=1,
        prepare={"scale": "dataset"},
        features={"pooling": "mean+max+std"},
        device="cpu",
    )
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


def test_two_dimensional_fit_is_remembered(tmp_path, waves):
    X = waves.x[:, 0]
    folder = TimeSeriesEmbedder("dicot", dim=8, steps=1, device="cpu").fit(X).save_pretrained(tmp_path / "flat")
    loaded = TimeSeriesEmbedder.from_pretrained(folder)
    with pytest.raises(ValueError, match="31 features, but TimeSeriesEmbedder is expecting 32"):
        loaded.transform(X[:, 1:])


def rewrite(folder, change) -> None:
    """Change the config as one would who means it: without its hash."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    config.pop("sha256", None)
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: os.truncate(folder / "model.safetensors", 1000), "truncated or does not belong"),
        (lambda folder: (folder / "config.json").write_text('{"format": "dicot-enc'), "is damaged"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "bert"}'), "was not written by dicot"),
        (lambda folder: rewrite(folder, lambda c: c.update(format_version=99)), "format version 99"),
        (lambda folder: rewrite(folder, lambda c: c["encoder"].update(name="former")), "Unknown encoder 'former'"),
        (lambda folder: rewrite(folder, lambda c: c.pop("preparation")), "preparation"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda folder: (folder / "config.json").unlink(), "is not a saved model"),
    ],
)
def test_damaged_and_foreign_folders_are_named(saved, damage, message):
    _, folder = saved
    damage(folder)
    with pytest.raises(ModelFileError, match=message):
        TimeSeriesEmbedder.from_pretrained(folder)


class Killed(BaseException):
    """Stands for kill -9: nothing of the library may catch it."""


def kill_at(monkeypatch, number: int) -> list[str]:
    """The process ends at the so-many-th change of a file on disk; the list says which these were."""
    changes: list[str] = []

    def counted(name: str, real):
        def change(*given, **options):
            if len(changes) >= number:
                raise Killed
            changes.append(name)
            return real(*given, **options)

        return change

    for name in ("replace", "rename", "fsync", "chmod", "unlink", "remove"):
        monkeypatch.setattr(os, name, counted(name, getattr(os, name)))
    return changes


def test_a_kill_at_any_moment_leaves_the_old_model_or_the_new(tmp_path, waves, monkeypatch):
    models = [
        TimeSeriesEmbedder("dicot", dim=8, steps=1, random_state=seed, device="cpu").fit(waves) for seed in (1, 2, 3)
    ]
    vectors = [model.transform(waves.x) for model in models]
    folder = tmp_path / "model"
    models[0].save_pretrained(folder)
    (folder / "report.html").write_text("mine")
    there, number, finished = 0, 0, False
    while not finished:
        with monkeypatch.context() as patch:
            changes = kill_at(patch, number)
            new = 1 if there != 1 else 2
            try:
                models[new].save_pretrained(folder)
                finished = True
            except Killed:
                assert len(changes) == number
        found = TimeSeriesEmbedder.from_pretrained(folder, device="cpu").transform(waves.x)
        which = [np.array_equal(found, wanted) for wanted in vectors]
        assert which[there] or which[new], f"killed at {changes}"
        there, number = which.index(True), number + 1
    assert number > 6, "not all changes were seen"
    assert there == new
    assert sorted(os.listdir(folder)) == ["config.json", "model.safetensors", "report.html"]


@pytest.mark.parametrize("place", [1, 3])
def test_a_full_disk_leaves_the_old_model_whole(saved, waves, monkeypatch, place):
    """At the weights and at the config; between them the folder is synchronised."""
    _, folder = saved
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = TimeSeriesEmbedder("dicot", dim=8, steps=1, random_state=2, device="cpu").fit(waves)
    calls = []

    def full(handle):
        calls.append(handle)
        if len(calls) == place:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DicotError, match=f"{folder}.*No space left"):
        other.save_pretrained(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def small(**settings) -> TimeSeriesEmbedder:
    usual = {"preset": "paper", "dim": 8, "steps": 1, "random_state": 1, "device": "cpu"}
    return TimeSeriesEmbedder(**grouped({**usual, **settings}))


class Tied(Net):
    """One tensor under two names."""

    def __init__(self) -> None:
        super().__init__(dim=8)
        self.third = self.second


@pytest.mark.parametrize("kind", [Net, Summary, Tied, lambda: OwnEncoder(2, 8)], ids=["net", "summary", "tied", "own"])
def test_a_foreign_module_is_saved_and_passed_again(tmp_path, waves, kind):
    model = small(encoder=kind()).fit(waves)
    folder = model.save_pretrained(tmp_path / "model")
    module = kind()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    torch.manual_seed(3)
    state = torch.get_rng_state()
    loaded = TimeSeriesEmbedder.from_pretrained(folder, encoder=module, device="cpu")
    assert np.array_equal(loaded.transform(waves.x), model.transform(waves.x))
    assert loaded.encoder is module and module.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(loaded.fit(waves).transform(waves.x), model.transform(waves.x)), "the same run once more"
    module.load_state_dict(load_file(folder / "model.safetensors"))  # torch alone can read it


def test_a_foreign_module_that_is_not_passed_is_asked_for(tmp_path, waves):
    folder = small(encoder=Net()).fit(waves).save_pretrained(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"tests\.own\.Net.*encoder="):
        TimeSeriesEmbedder.from_pretrained(folder)
    with pytest.raises(ModelFileError, match=r"first\.weight"):
        TimeSeriesEmbedder.from_pretrained(folder, encoder=Net(dim=4))
    with pytest.raises(ModelFileError, match=r"tests\.own\.Net"):
        TimeSeriesEmbedder.from_pretrained(folder, encoder=Net)
    registered = small(encoder="fcn").fit(waves).save_pretrained(tmp_path / "fcn")
    with pytest.raises(ModelFileError, match="'fcn'"):
        TimeSeriesEmbedder.from_pretrained(registered, encoder=Net())


def test_an_encoder_of_a_registered_class_needs_no_module(tmp_path, waves):
    model = small(encoder=FCN(2, 12), dim=99).fit(waves)
    loaded = TimeSeriesEmbedder.from_pretrained(model.save_pretrained(tmp_path / "model"), device="cpu")
    assert (loaded.encoder, loaded.dim) == ("fcn", 12)
    assert np.array_equal(loaded.transform(waves.x), model.transform(waves.x))
    assert np.array_equal(loaded.fit(waves).transform(waves.x), model.transform(waves.x))


def test_a_method_that_is_not_registered_is_shown_by_its_name(tmp_path, waves):
    model = small(method=Halves, method_params={"temperature": 0.3}).fit(waves)
    loaded = TimeSeriesEmbedder.from_pretrained(model.save_pretrained(tmp_path / "model"), device="cpu")
    assert loaded.method == "tests.own.Halves" and loaded.method_params_ == {"temperature": 0.3}
    assert np.array_equal(loaded.transform(waves.x), model.transform(waves.x))
    with pytest.raises(InputError, match=r"tests\.own\.Halves"):
        loaded.fit(waves)
    assert np.array_equal(loaded.set_params(method=Halves).fit_transform(waves), model.transform(waves))


def test_a_schedule_that_is_a_function_is_saved_by_its_name(tmp_path, waves):
    model = small(steps=2, schedule=slow_start).fit(waves)
    loaded = TimeSeriesEmbedder.from_pretrained(model.save_pretrained(tmp_path / "model"), device="cpu")
    assert "slow_start" in str(loaded.recipe_.schedule)
    assert loaded.history_.lr == model.history_.lr == [slow_start(0), slow_start(1)]
    with pytest.raises(InputError, match="slow_start"):
        loaded.fit(waves)
    again = loaded.set_params(recipe={"schedule": slow_start})
    assert np.array_equal(again.fit_transform(waves), model.transform(waves))


def test_an_own_optimiser_and_initial_weights_are_on_record(tmp_path, waves):
    plain = small(encoder="fcn").fit(waves)
    momentum = partial(torch.optim.SGD, lr=0.1, momentum=0.9)
    model = small(encoder="fcn").fit(waves, optimiser=momentum, initial=plain)
    loaded = TimeSeriesEmbedder.from_pretrained(model.save_pretrained(tmp_path / "model"), device="cpu")
    assert loaded.origin_ == model.origin_ and "SGD" in loaded.origin_["optimiser"] and "0.9" in str(loaded.origin_)
    assert loaded.origin_["initial"] and plain.origin_ == {"optimiser": "", "initial": ""}


def test_loading_leaves_the_random_state_alone(saved):
    _, folder = saved
    torch.manual_seed(3)
    before = torch.get_rng_state()
    TimeSeriesEmbedder.from_pretrained(folder)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("encoder", "n_channels", 600_000),
        ("encoder", "dim", 4 * 10**9),
        ("encoder", "dim", 16.0),
        ("encoder", "name", "fcn"),
        (None, "encoder", 3),
        ("weights", "sha256", "../../etc/passwd"),
        (None, "weights", None),
        (None, "estimator", 3),
        ("estimator", "no_such", 3),
        ("recipe", "lr", -1.0),
        ("recipe", "betas", 0.9),
        (None, "chosen", {}),
        ("chosen", "pooling", "median"),
        ("chosen", "calibrate", "yes"),
        ("preparation", "n_channels", 3),
        ("preparation", "scale", "case"),
        ("preparation", "statistics", None),
        ("preparation", "statistics", {"mean": [0.0], "std": [1.0]}),
    ],
)
def test_a_config_that_makes_no_sense_is_refused_before_memory_is_taken(saved, part, name, value):
    _, folder = saved
    rewrite(folder, lambda config: (config if part is None else config[part]).update({name: value}))
    with pytest.raises(ModelFileError):
        TimeSeriesEmbedder.from_pretrained(folder)


def test_an_absurd_size_takes_no_memory(saved):
    _, folder = saved
    rewrite(folder, lambda config: config["encoder"].update(n_channels=1_000_000))
    with peak_memory("cpu") as peak:
        before = peak()
        with pytest.raises(ModelFileError):
            TimeSeriesEmbedder.from_pretrained(folder)
        assert peak() - before < 2**27, "its first layer alone would take half a GB"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"format": "dicot-encoder", "a": ' + '{"a":' * 50_000,
        '{"format": "dicot-encoder", "format_version": 1, "a": ' + "9" * 5000 + "}",
        "\x00",
        "",
    ],
    ids=["deep list", "deep table", "long number", "zero byte", "empty"],
)
def test_json_that_would_take_memory_or_the_stack_is_refused(saved, text):
    _, folder = saved
    (folder / "config.json").write_text(text)
    with pytest.raises(ModelFileError, match="config.json is damaged"):
        TimeSeriesEmbedder.from_pretrained(folder)


def test_a_changed_number_is_found(saved):
    _, folder = saved
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["preparation"]["statistics"]["mean"][0] += 0.5
    path.write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="config.json was changed"):
        TimeSeriesEmbedder.from_pretrained(folder)


def test_weights_of_other_shapes_are_refused(saved):
    """Even where the hash is theirs."""
    _, folder = saved
    tensors = load((folder / "model.safetensors").read_bytes())
    name = "input.weight"
    for value in (None, torch.zeros(1), tensors[name].long()):
        data = save({key: kept for key, kept in {**tensors, name: value}.items() if kept is not None})
        (folder / "model.safetensors").write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        rewrite(folder, lambda config, digest=digest: config["weights"].update(sha256=digest))
        with pytest.raises(ModelFileError, match=name):
            TimeSeriesEmbedder.from_pretrained(folder)
