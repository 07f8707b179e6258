"""A model in an ONNX file gives the vectors that it gives in torch, and refuses what it refuses there."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import torch  # noqa: E402

from dicot import FewLabelClassifier, OnnxEmbedder, TimeSeriesClassifier, TimeSeriesEmbedder, Windows  # noqa: E402
from dicot.core.errors import DicotWarning, ExportError, InputError, ModelFileError  # noqa: E402
from dicot.model.box import BOX  # noqa: E402
from dicot.model.embedding import POOLINGS, Pooling  # noqa: E402
from dicot.model.export import export_onnx  # noqa: E402
from dicot.model.export import file as export_file  # noqa: E402
from dicot.model.files import grouped  # noqa: E402
from dicot.model.head import Head, Neighbours  # noqa: E402
from dicot.model.presets import PRESETS  # noqa: E402
from dicot.model.vector.module import Vector  # noqa: E402
from dicot.nets.encoders import ENCODERS  # noqa: E402
from tests.commands import dicot  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
RELATIVE = 1e-4
DRAWN = 1e-5  # of models and windows of random shapes
RICH = {"method": "across", "pooling": "mean+max+std", "bank": "mixed", "n_components": 2048}
# DICOT_EXPORTS=200: the long form, for a new processor or onnxruntime
DRAWS = int(os.environ.get("DICOT_EXPORTS", "6"))


def cases(n: int, n_channels: int, n_times: int, seed: int = 0) -> np.ndarray:
    walk = np.random.default_rng(seed).normal(size=(n, n_channels, n_times)).cumsum(axis=2)
    return walk.astype(np.float32)


def fitted(n_channels: int, n_times: int, X: Any = None, **settings: Any) -> TimeSeriesEmbedder:
    preset = PRESETS[settings.get("preset", "paper")]
    small = {} if preset.initial else {"dim": 16}  # an encoder in the box has its own
    settings = {"steps": 1, **small, "scale": "dataset", "random_state": 0, "device": "cpu", **settings}
    model = TimeSeriesEmbedder(**grouped(settings), verbose=False)
    return model.fit(cases(max(20, preset.fewest), n_channels, n_times) if X is None else X)


def exported(model: Any, folder: Path, **settings: Any) -> OnnxEmbedder:
    return OnnxEmbedder(export_onnx(model, folder / "model.onnx", **settings).path, threads=1)


def assert_same(got: np.ndarray, wanted: np.ndarray, most: float = RELATIVE) -> None:
    assert got.shape == wanted.shape
    apart = np.linalg.norm(got - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert apart.max() <= most, apart


@pytest.fixture(scope="module")
def best(tmp_path_factory: pytest.TempPathFactory) -> tuple[TimeSeriesEmbedder, OnnxEmbedder]:
    model = fitted(2, 40, **RICH)
    return model, exported(model, tmp_path_factory.mktemp("best"))


# Every export takes seconds, so each preset has one shape, and there is one of many channels.
@pytest.mark.parametrize(("preset", "shape"), [*((name, (1, 24)) for name in PRESETS), ("instant", (11, 30))], ids=str)
def test_presets_agree_with_torch_for_any_batch_and_length(preset: str, shape: tuple[int, int], tmp_path: Path):
    model = fitted(*shape, preset=preset)
    deployed = exported(model, tmp_path)
    for n, length in ((1, shape[1]), (7, shape[1]), (3, 5), (2, 3 * shape[1] + 1)):
        x = cases(n, shape[0], length, seed=n)
        assert_same(deployed.transform(x), model.transform(x))


@pytest.mark.parametrize("name", BOX)
def test_a_model_of_the_box_takes_any_channels_in_a_file_too(name: str, tmp_path: Path):
    model = TimeSeriesEmbedder.from_pretrained(name, device="cpu")
    deployed = exported(model, tmp_path)
    (window,) = onnx.load(deployed.path).graph.input
    assert [dim.dim_param or dim.dim_value for dim in window.type.tensor_type.shape.dim] == [
        "batch",
        "channels",
        "time",
    ]
    for n, n_channels, length in ((1, 1, 1), (3, 2, 2), (2, 3, 256), (5, 1, 257), (2, 12, 700)):
        x = cases(n, n_channels, length)
        x[0] = 3.0  # constant
        x[-1] = 1000 + 0.1 * x[-1]
        assert_same(deployed.transform(x), model.transform(x))
    several = [cases(1, 2, length)[0] for length in (7, 30, 7)]
    assert_same(deployed.transform(several), model.transform(several))


@pytest.mark.parametrize("draw", range(DRAWS))
def test_random_shapes_and_seeds_agree_however_the_processor_rounds(draw: int, tmp_path: Path):
    rng = np.random.default_rng([draw, 28])
    n_channels, n_times = int(rng.choice([1, 2, 3, 6, 9, 10, 12, 20, 40])), int(rng.integers(41, 160))

    def drawn(n: int, length: int) -> np.ndarray:
        x = np.round(cases(n, n_channels, length, seed=int(rng.integers(1000))), int(rng.integers(1, 8)))  # ties
        x[n // 2, :, length // 2 :] = x[n // 2, :, length // 2, None]
        return x

    kind = (RICH, {"preset": "instant"}, {"preset": "paper"})[draw % 3]
    scale = str(rng.choice(["dataset", "case"]))
    model = fitted(n_channels, n_times, drawn(20, n_times), **kind, scale=scale, random_state=draw)
    deployed = exported(model, tmp_path, seed=draw)
    for n, length in ((1, n_times), (20, n_times), (4, int(rng.integers(9, 3 * n_times)))):
        x = drawn(n, length)
        assert_same(deployed.transform(x), model.transform(x), DRAWN)


@pytest.mark.parametrize(
    ("encoder", "pooling"), [*((name, "layers") for name in ENCODERS), *(("fcn", name) for name in POOLINGS)]
)
def test_every_encoder_and_pooling_agrees(encoder: str, pooling: str, tmp_path: Path):
    model = fitted(2, 30, method="calibrated", encoder=encoder, pooling=pooling)
    deployed = exported(model, tmp_path)
    for length in (1, 2, 4, 30):
        x = cases(3, 2, length)
        assert_same(deployed.transform(x), model.transform(x))


@pytest.mark.parametrize("n_times", [1, 40])
def test_parts_that_no_preset_has(n_times: int, tmp_path: Path):
    model = fitted(2, 40, method="calibrated", bank=168, pooling="max")
    x = cases(3, 2, n_times)
    assert_same(exported(model, tmp_path).transform(x), model.transform(x))


@pytest.mark.parametrize("scale", [None, "dataset", "case"])
@pytest.mark.parametrize("missing", ["interpolate", "zero"])
def test_missing_values_are_filled_inside_the_file(missing: str, scale: str | None, tmp_path: Path):
    model = fitted(3, 30, preset="paper", missing=missing, scale=scale)
    deployed = exported(model, tmp_path)
    x = cases(6, 3, 30)
    x[0, 0, :4], x[1, 1, 20:], x[2, :, 11], x[3, 2, 1:], x[4, 0, [3, 4, 5, 9]] = (np.nan,) * 5
    wanted = model.transform(x)
    assert_same(deployed.session.run(["embedding"], {"window": x})[0], wanted)
    assert_same(deployed.transform(x), wanted)
    x[3, 2] = np.nan  # nothing to interpolate between
    raw = deployed.session.run(["embedding"], {"window": x})[0]
    assert np.isnan(raw).any(axis=1).tolist() == [row == 3 and missing == "interpolate" for row in range(6)]
    for transform in (model.transform, deployed.transform) if missing == "interpolate" else ():
        with pytest.raises(InputError, match=r"case 3 \(channel 2\)"):
            transform(x)


@pytest.mark.parametrize("unequal", ["pad", "crop", "resample"])
def test_other_lengths_are_treated_inside_the_file(unequal: str, tmp_path: Path):
    model = fitted(2, 30, preset="paper", unequal=unequal)
    deployed = exported(model, tmp_path)
    several = [cases(1, 2, length)[0] for length in (7, 30, 51, 7)]
    wanted = model.transform(several)
    for row, case in enumerate(several):
        assert_same(deployed.session.run(["embedding"], {"window": case[None]})[0], wanted[row : row + 1])
    assert_same(deployed.transform(several), wanted)


def test_what_the_model_refuses_is_nan_in_the_file_and_an_error_here(best: tuple[TimeSeriesEmbedder, OnnxEmbedder]):
    model, deployed = best
    for value in (np.nan, np.inf, 1e30):
        x = cases(3, 2, 40)
        x[1, 0, 5] = value
        raw = deployed.session.run(["embedding"], {"window": x})[0]
        assert np.isnan(raw[1]).all() and np.isfinite(raw[[0, 2]]).all()
        for transform in (model.transform, deployed.transform):
            with pytest.raises(InputError, match="case 1"):
                transform(x)


def test_nothing_but_nan_is_refused_where_nan_is_filled(tmp_path: Path):
    deployed = exported(fitted(1, 20, preset="paper", missing="zero"), tmp_path)
    x = cases(2, 1, 20)
    x[0] = np.nan
    assert np.isnan(deployed.session.run(["embedding"], {"window": x})[0]).all(axis=1).tolist() == [True, False]


def test_windows_are_checked_as_the_model_checks_them(tmp_path: Path):
    train = Windows(cases(20, 2, 30), channels=("east", "north"), rate=50.0)
    model = fitted(2, 30, train, preset="paper")
    deployed = exported(model, tmp_path)
    assert (deployed.about["channels"], deployed.about["rate"]) == (["east", "north"], 50.0)
    swapped = Windows(train.x[:, ::-1].copy(), channels=("north", "east"), rate=50.0)
    np.testing.assert_array_equal(deployed.transform(swapped), deployed.transform(train))
    for other, word in (
        (replace(train, rate=20.0), "20 time steps"),
        (replace(train, channels=("a", "b")), "channels"),
    ):
        with pytest.raises(InputError, match=word):
            deployed.transform(other)


def test_values_that_float32_cannot_tell_apart_are_warned_of(tmp_path: Path):
    x = 1e9 + cases(20, 1, 20).astype(np.float64)
    with pytest.warns(DicotWarning, match="Channel 0 varies by less in 20 of 20 windows .* --float64"):
        exported(fitted(1, 20), tmp_path).transform(x)


@pytest.mark.parametrize("preset", ["dicot-base", "instant"])
def test_windows_of_any_size_agree_with_torch(preset: str, tmp_path: Path):
    if preset == "instant":
        model = fitted(2, 40, preset=preset, scale=None)
    else:
        model = TimeSeriesEmbedder.from_pretrained(preset, device="cpu")
    deployed, x = exported(model, tmp_path), cases(5, 2, 40).astype(np.float64)
    for exponent in (-30, -25, -22, -20, -10, 0, 10, 13):
        scaled = (x * 10.0**exponent).astype(np.float32)
        wanted = model.transform(scaled)
        apart = np.linalg.norm(deployed.transform(scaled) - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
        assert apart.max() <= 1e-5, exponent


def test_the_file_says_what_it_is(best: tuple[TimeSeriesEmbedder, OnnxEmbedder], tmp_path: Path):
    model, deployed = best
    file = onnx.load(deployed.path)
    about = json.loads({entry.key: entry.value for entry in file.metadata_props}["dicot"])
    config = json.loads((model.save_pretrained(tmp_path / "saved") / "config.json").read_text())
    assert about["sha256"] == config["weights"]["sha256"]
    n_features = model.transform(cases(1, 2, 40)).size
    assert (about["n_channels"], about["n_times"], about["n_features"]) == (2, 40, n_features)
    assert (about["scale"], about["missing"], about["unequal"]) == ("dataset", "error", "error")
    assert "kernels" in about["vector"] and about["library_version"] == config["library_version"]
    (window,) = file.graph.input
    assert [dim.dim_param or dim.dim_value for dim in window.type.tensor_type.shape.dim] == ["batch", 2, "time"]


@pytest.mark.parametrize("n_labels", [2, 30], ids=["spread", "regression"])
def test_a_classifier_of_the_embeddings_is_a_second_output(n_labels: int, tmp_path: Path):
    x = cases(60, 1, 30)
    y = np.where(x[:, 0].std(axis=1) > np.median(x[:, 0].std(axis=1)), "wide", "narrow")
    model = fitted(1, 30, x, preset="paper")
    z = model.transform(x)
    few = np.where(np.arange(60) < n_labels, y, "")
    few[:2] = "wide", "narrow"
    head = FewLabelClassifier().fit(z, few).head_
    if n_labels == 2:  # as a file of an earlier release has it
        settled = np.eye(2)[(y == "wide").astype(int)]
        graph = Neighbours((z - head.mean) * head.factor, settled, np.eye(z.shape[1]), 5, "labels")
        head = replace(head, neighbours=graph)
    head = Head.load(head.save(tmp_path / "head.safetensors"))
    deployed = exported(model, tmp_path, classifier=head)
    assert deployed.classes == ("narrow", "wide")
    assert_same(deployed.predict_proba(x), head.predict_proba(z))
    assert_same(deployed.transform(x), z)


def test_a_trained_network_with_its_linear_layer(tmp_path: Path):
    x = cases(20, 2, 30)
    model = TimeSeriesClassifier(
        steps=1, dim=16, prepare={"scale": "case"}, random_state=0, device="cpu", verbose=False
    )
    model.fit(x, np.arange(20) % 3)
    deployed = exported(model, tmp_path)
    assert deployed.classes == (0, 1, 2)
    assert_same(deployed.predict_proba(x), model.predict_proba(x))


def test_a_classifier_of_other_vectors_is_refused(best: tuple[TimeSeriesEmbedder, OnnxEmbedder], tmp_path: Path):
    classifier = FewLabelClassifier().fit(np.random.default_rng(0).normal(size=(20, 5)), np.arange(20) % 2)
    with pytest.raises(InputError, match="vectors of 5 numbers; this model makes 19"):
        export_onnx(best[0], tmp_path / "model.onnx", classifier=classifier)
    with pytest.raises(InputError, match="no classifier"):
        best[1].predict_proba(cases(1, 2, 40))


def test_networks_and_poolings_of_ones_own_are_exported_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(POOLINGS, "least", Pooling(None, lambda h: h.amin(dim=-1)))
    network = torch.nn.Sequential(torch.nn.Conv1d(2, 4, 3, padding=1), torch.nn.Tanh())
    model = fitted(2, 30, method="calibrated", encoder=network, pooling="least")
    deployed = exported(model, tmp_path)
    for length in (9, 30, 41):
        x = cases(3, 2, length)
        assert_same(deployed.transform(x), model.transform(x))


class Branching(torch.nn.Module):
    """What it computes depends on the values, so that no graph holds it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if bool(x.sum() > 0) else -x


def test_a_network_that_no_graph_holds_is_refused_with_the_reason(tmp_path: Path):
    model = fitted(2, 30, method="calibrated", encoder=Branching(), pooling="mean")
    with pytest.raises(ExportError, match="was not written: onnxruntime and torch differ"):
        export_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_file_that_computes_something_else_is_not_written(
    best: tuple[TimeSeriesEmbedder, OnnxEmbedder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    old = tmp_path / "model.onnx"
    old.write_bytes(b"what was there")

    class Wrong(Vector):
        def forward(self, *inputs: Any) -> torch.Tensor:
            return 1.001 * super().forward(*inputs)

    monkeypatch.setattr(export_file, "Vector", Wrong)
    with pytest.raises(ExportError, match=r"differ by 1\.0e-03"):
        export_onnx(best[0], old)
    assert old.read_bytes() == b"what was there" and list(tmp_path.iterdir()) == [old]


def test_a_file_that_was_changed_must_say_so(best: tuple[TimeSeriesEmbedder, OnnxEmbedder], tmp_path: Path):
    path = tmp_path / "model.onnx"
    file = onnx.load(best[1].path)
    file.doc_string = "quantised, say"
    for seal, message in ((None, "damaged, or was changed by another program"), ("", "it has no hash")):
        kept = {entry.key: entry.value for entry in file.metadata_props}
        onnx.helper.set_model_props(file, kept if seal is None else {**kept, "dicot.sha256": seal})
        onnx.save(file, path)
        with pytest.raises(ModelFileError, match=message):
            OnnxEmbedder(path)
    onnx.helper.set_model_props(file, {**kept, "dicot.sha256": "changed"})
    onnx.save(file, path)
    assert OnnxEmbedder(path).n_features == best[1].n_features


@pytest.mark.parametrize("damage", ["cut", "foreign", "absent"])
def test_damaged_files_are_named(damage: str, best: tuple[TimeSeriesEmbedder, OnnxEmbedder], tmp_path: Path):
    path = tmp_path / "model.onnx"
    if damage == "cut":
        path.write_bytes(best[1].path.read_bytes()[:-1000])
    elif damage == "foreign":
        file = onnx.load(best[1].path)
        del file.metadata_props[:]
        onnx.save(file, path)
    with pytest.raises(ModelFileError, match=r"model\.onnx"):
        OnnxEmbedder(path)


def without_torch(folder: Path, *words: str, stdin: IO[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a process that finds no torch: a finder in front of all others refuses it."""
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'functorch', 'torchgen'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
    )
    paths = os.pathsep.join([str(folder), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, stdin=stdin, capture_output=True, text=True, check=False
    )


def test_the_command_runs_without_torch(best: tuple[TimeSeriesEmbedder, OnnxEmbedder], tmp_path: Path):
    model, deployed = best
    x = cases(5, 2, 40)
    np.save(tmp_path / "windows.npy", x)
    assert without_torch(tmp_path, "-c", "import torch").returncode == 1
    command = ("-m", "dicot", "embed", str(deployed.path), "windows.npy", "--out", "vectors.npz")
    result = without_torch(tmp_path, *command)
    assert result.returncode == 0, result.stderr
    assert_same(np.load(tmp_path / "vectors.npz")["X"], model.transform(x))


def test_export_and_embed_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    x = cases(20, 1, 20)
    model = fitted(1, 20, x, preset="paper")
    model.save_pretrained(tmp_path / "saved")
    np.savez(tmp_path / "data.npz", X=x, y=np.arange(20) % 2)
    for words in (
        ("embed", "saved", "data.npz", "--out", "torch.npz"),
        ("classify", "torch.npz", "--save", "head.safetensors"),
        ("export", "saved", "--onnx", "model.onnx", "--classifier", "head.safetensors"),
        ("embed", "model.onnx", "data.npz", "--out", "onnx.npz"),
    ):
        assert "Wrote" in dicot(*words)
    assert_same(np.load(tmp_path / "onnx.npz")["X"], np.load(tmp_path / "torch.npz")["X"])
    assert OnnxEmbedder(tmp_path / "model.onnx").classes == (0, 1)
    classifier = TimeSeriesClassifier(model, steps=1, device="cpu", verbose=False).fit(x, np.arange(20) % 2)
    classifier.save_pretrained(tmp_path / "classifier")
    dicot("export", "classifier", "--onnx", "classifier.onnx")
    assert "Wrote" in dicot("export", "dicot-base", "--onnx", "base.onnx")
    probabilities = OnnxEmbedder(tmp_path / "classifier.onnx").predict_proba(x)
    np.testing.assert_allclose(probabilities, classifier.predict_proba(x), atol=1e-4)
    fitted(1, 20, x, preset="paper", random_state=5).save_pretrained(tmp_path / "other")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(InputError) as refused:
        dicot("export", "other", "--onnx", "again.onnx", "--classifier", "head.safetensors")
    saved = tmp_path / "saved"
    assert f"head.safetensors was trained with vectors of the model {saved}, and other is another model." in str(
        refused.value
    )
    ready = f"dicot export {saved} --onnx again.onnx --classifier head.safetensors"
    assert ready in str(refused.value) and "dicot embed other" in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    saved.rename(tmp_path / "moved")
    with pytest.raises(InputError, match=r"of a model that was at \S+saved.* dicot embed other .* --no-accuracy"):
        dicot("export", "other", "--onnx", "again.onnx", "--classifier", "head.safetensors")
    (tmp_path / "moved").rename(saved)
    dicot(*shlex.split(ready)[1:])
    assert (tmp_path / "again.onnx").exists(), "the command that is printed runs as it is"
