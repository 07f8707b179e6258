"""Presets: what they come to, what wins over them, and what is kept of them."""

from dataclasses import replace

import numpy as np
import pytest

from bench.suites import SuiteOptions, cross, whole
from dicot import TimeSeriesEmbedder
from dicot.core.errors import InputError
from dicot.judge.evaluation import Contender, contender, with_controls
from dicot.judge.evaluation.contenders import as_contender
from dicot.methods.across import Across
from dicot.model.files import grouped
from dicot.model.presets import BEST, PAPER, PRESETS, USUAL_FEATURES, Preset, SizeRule
from dicot.train import Recipe, paper_recipe
from tests.commands import dicot as command

TRAINED = "trained"
RICH = Preset(
    TRAINED,
    "trained whatever the size, with a bank, compressed",
    method="across",
    recipe=SizeRule(),
    features={"pooling": "mean+max+std", "bank": "mixed", "n_components": 2048},
)
SMALL = {"dim": 8, "steps": 2, "random_state": 1, "device": "cpu", "encoder": "fcn"}
TINY_BEST = {**SMALL, "preset": TRAINED, "bank": 84, "encoder": "inception_time"}


@pytest.fixture(autouse=True)
def registered(monkeypatch) -> None:
    monkeypatch.setitem(PRESETS, TRAINED, RICH)


def best_recipe(n_cases: int, n_times: int) -> Recipe:
    return RICH.recipe(None, n_cases, n_times)


def small(**settings) -> TimeSeriesEmbedder:
    return TimeSeriesEmbedder(**grouped({"preset": "paper", **SMALL, **settings}))


@pytest.fixture
def own(monkeypatch) -> Preset:
    preset = Preset(
        "mine",
        "for this test",
        "across",
        lambda family, n_cases, n_times: Recipe(steps=n_cases, batch_size=n_times),
        {"temperature": 0.3, "width": 16},
        features={"pooling": "max", "calibrate": True, "n_components": 4},
    )
    monkeypatch.setitem(PRESETS, "mine", preset)
    return preset


@pytest.mark.parametrize(
    ("family", "n_cases", "n_times"), [(None, 24, 32), ("ucr", 3000, 500), ("large", 10_000, 3000)]
)
def test_what_is_meant_where_a_method_a_preset_both_or_nothing_is_named(family, n_cases, n_times):
    def used(method=None, preset=None):
        return TimeSeriesEmbedder(method, preset=preset, family=family).resolve(n_cases, n_times)

    best, paper = best_recipe(n_cases, n_times), paper_recipe(family, n_cases, n_times)
    pooled = dict(USUAL_FEATURES)
    rich = {**pooled, "pooling": "mean+max+std", "bank": "mixed", "n_components": 2048}
    at_once = {**pooled, "pooling": "own", "bank": "auto", "levels": True, "length": 1024}
    temperature = {"temperature": 1.0 if family == "ucr" else 0.07}
    assert used() == used(preset="instant") == ("frozen", at_once, {}, replace(best, steps=0))
    assert used(preset=TRAINED) == used("across", TRAINED) == ("across", rich, {}, best)
    assert used(preset="paper") == used("dicot") == used("dicot", "paper") == ("dicot", pooled, temperature, paper)
    assert used("dicot", TRAINED) == ("dicot", rich, temperature, best)
    assert used("across") == ("across", pooled, {}, paper) and used(Across) == (Across, pooled, {}, paper)
    assert used("calibrated") == ("calibrated", pooled, {}, replace(paper, steps=0))
    assert used("calibrated", TRAINED) == ("calibrated", rich, {}, replace(best, steps=0))


def test_a_saved_model_says_which_preset_the_default_was(waves, tmp_path, monkeypatch):
    quick = {"features": {"bank": 0}, "device": "cpu"}
    small = {"dim": 8, "steps": 1}  # whoever says so wants a training
    for method, preset, own in ((None, "instant", {}), (None, "best", small), ("dicot", "paper", small)):
        model = TimeSeriesEmbedder(method, **quick, **own).fit(waves.x)
        folder = model.save_pretrained(tmp_path / preset)
        with monkeypatch.context() as later:
            later.setattr("dicot.model.presets.DEFAULT_PRESET", "paper" if preset == "instant" else "instant")
            loaded = TimeSeriesEmbedder.from_pretrained(folder, device="cpu")
            assert loaded.preset == preset and loaded.resolve(24, 32) == (
                loaded.method_, loaded.features_, loaded.method_params_, loaded.recipe_
            )  # fmt: skip
        assert np.array_equal(loaded.transform(waves.x), model.transform(waves.x))


@pytest.mark.parametrize(
    ("n_cases", "n_times", "batch_size", "steps"),
    [
        (20, 24, 20, 150),
        (100, 1000, 32, 150),
        (100, 1001, 32, 300),
        (1000, 1000, 32, 300),
        (1000, 1001, 128, 1500),
        (60, 20000, 32, 750),
        (7000, 2000, 32, 750),
        (7000, 1999, 128, 1500),
        (60, 2500, 32, 300),
    ],
)
def test_the_best_recipe_goes_by_the_size_alone(n_cases, n_times, batch_size, steps):
    wanted = Recipe(steps=steps, batch_size=batch_size)
    assert best_recipe(n_cases, n_times) == wanted
    assert {TimeSeriesEmbedder(preset=TRAINED, family=f).resolve(n_cases, n_times).recipe for f in (None, "ucr")} == {
        wanted
    }


def test_best_is_the_sum_of_its_parts(waves):
    made = TimeSeriesEmbedder(**grouped(TINY_BEST)).fit(waves.x)
    said = TimeSeriesEmbedder(
        "across",
        **{**SMALL, "encoder": "inception_time"},
        features={"pooling": "mean+max+std", "bank": 84, "n_components": 2048},
        recipe=best_recipe(24, 32),
    ).fit(waves.x)
    assert made.transform(waves.x).tobytes() == said.transform(waves.x).tobytes()
    assert made.method_ == "across" and made.recipe_ == replace(best_recipe(24, 32), steps=2)
    assert made.features_ == {**RICH.features_with({}), "bank": 84}
    assert made.transform(waves.x).shape == (24, 23), "no more numbers than cases allow"


def test_what_is_given_wins_over_the_preset_and_its_settings_are_for_its_own_method(own):
    assert small(preset="mine").resolve(5, 7).params == {"temperature": 0.3, "width": 16}
    assert small(preset="mine", method=Across, method_params={"width": 0}).resolve(5, 7).params == {
        "temperature": 0.3, "width": 0
    }  # fmt: skip
    other = small(preset="mine", method="dicot", method_params={"k": 3}, n_components=0).resolve(5, 7)
    assert other.params == {"temperature": 0.07, "k": 3} and other.method == "dicot"
    assert other.features == {**own.features_with({}), "n_components": 0}
    assert (other.recipe.steps, other.recipe.batch_size) == (2, 7), "given steps, the preset's batches"
    control = small(preset="mine", method="random").resolve(5, 7)
    assert control.params == {} and control.recipe.steps == 0 and control.features["pooling"] == "max"


def test_a_saved_model_keeps_what_its_preset_was(waves, tmp_path, own, monkeypatch):
    model = small(preset="mine", steps=1).fit(waves.x)
    folder = model.save_pretrained(tmp_path / "model")
    changed = replace(own, features={"calibrate": True})
    for present in ({"mine": changed}, {}):
        monkeypatch.delitem(PRESETS, "mine", raising=False)
        for name, preset in present.items():
            monkeypatch.setitem(PRESETS, name, preset)
        loaded = TimeSeriesEmbedder.from_pretrained(folder, device="cpu")
        assert np.array_equal(loaded.transform(waves.x), model.transform(waves.x))
        assert (loaded.features_, loaded.method_params_, loaded.recipe_, loaded.method_) == (
            model.features_, model.method_params_, model.recipe_, "across"
        )  # fmt: skip
        assert loaded.get_params() == model.get_params()
    with pytest.raises(InputError, match="Unknown preset 'mine'"):
        loaded.fit(waves.x)


def test_a_run_in_a_folder_is_another_one_when_its_preset_has_changed(waves, tmp_path, own, monkeypatch):
    np.savez(tmp_path / "waves.npz", X=waves.x, y=waves.y)
    call = ["pretrain", tmp_path / "waves.npz", "--out", tmp_path / "m", "--preset", "mine", "--steps", "1"]
    call += ["--set", "dim=8", "--set", "encoder=fcn", "--device", "cpu"]
    assert "trained: 1 steps" in command(*call)
    assert "already holds this run" in command(*call)
    assert "already holds this run" in command(
        *call, "--method", "across", "--set", "pooling=max", "--set", "calibrate=true"
    )
    with pytest.raises(InputError, match="holds another model"):
        command(*call, "--set", "calibrate=false")
    for changed in (
        replace(own, features={**own.features, "n_components": 3}),
        replace(own, method_params={}),
        replace(own, recipe=SizeRule()),
    ):
        monkeypatch.setitem(PRESETS, "mine", changed)
        with pytest.raises(InputError, match="holds another model"):
            command(*call)


def test_presets_on_the_command_line(waves, tmp_path):
    listed = {line.split()[0]: line for line in command("list", "presets").splitlines()}
    assert list(listed) == list(PRESETS)
    assert listed["instant"].endswith("; the default") and listed["paper"].endswith(
        "; the default where a method is named"
    )
    np.savez(tmp_path / "waves.npz", X=waves.x, y=waves.y)
    quick = ["--set", "dim=8", "--steps", "1", "--device", "cpu", "--protocols", "ridge", "--set", "bank=84"]
    said = command("evaluate", tmp_path / "waves.npz", "--preset", f"paper,{TRAINED}", *quick)
    for name in ("dicot", TRAINED, "random", "calibrated", f"random of {TRAINED}", f"calibrated of {TRAINED}"):
        assert f"  {name}, seed 1:" in said
    with pytest.raises(InputError, match="--method is for one preset; got paper, trained"):
        command("evaluate", tmp_path / "waves.npz", "--preset", f"paper,{TRAINED}", "--method", "dicot")
    command("pretrain", tmp_path / "waves.npz", "--out", tmp_path / "m", "--preset", TRAINED, *quick[:6])
    said = command(
        "evaluate", tmp_path / "waves.npz", "--model", tmp_path / "m", "--protocols", "ridge", "--device", "cpu"
    )
    assert "random" in said
    with pytest.raises(InputError, match="A saved model brings its own settings.*preset"):
        command("evaluate", tmp_path / "waves.npz", "--model", tmp_path / "m", "--preset", "paper")
    with pytest.raises(InputError, match="Unknown preset 'bets'"):
        command("pretrain", tmp_path / "waves.npz", "--out", tmp_path / "n", "--preset", "bets")


def test_an_evaluation_shows_the_presets_beside_rivals_and_the_untrained_control(waves, tmp_path):
    np.savez(tmp_path / "waves.npz", X=waves.x, y=waves.y)
    call = ["evaluate", tmp_path / "waves.npz", "--set", "bank=0", "--steps", "1", "--device", "cpu"]
    call += ["--protocols", "ridge"]

    def scored(*words):
        return [line.split(", seed")[0].strip() for line in command(*call, *words).splitlines() if ", seed 1:" in line]

    raw = ["raw-mean", "raw-flat"]
    rivals = ["minirocket", "stats-spectrum + forest"]
    assert scored("--out", tmp_path / "out") == ["instant", "best", *rivals, "random", "random of best"]
    kept = TimeSeriesEmbedder.from_pretrained(tmp_path / "out" / "model").preset
    assert kept in ("instant", "best")
    assert f"{kept} on waves" in (tmp_path / "out" / "report.html").read_text()
    assert scored("--method", "dicot") == ["dicot", "random", "calibrated", *raw]
    assert scored("--preset", "instant") == ["instant", *rivals, "random", "calibrated", *raw]
    with pytest.raises(InputError, match="Unknown setting .k."):
        command(*call, "--set", "k=3")


def test_an_embedder_by_default_has_the_controls_of_its_preset(waves):
    quick = {"dim": 8, "steps": 1, "features": {"bank": 84}, "encoder": "fcn", "device": "cpu"}
    default, said, method = (
        TimeSeriesEmbedder(**quick), TimeSeriesEmbedder(preset="best", **quick), TimeSeriesEmbedder("dicot", **quick)
    )  # fmt: skip
    mine, named, papers = (as_contender(model, "mine") for model in (default, said, method))
    assert (mine.kind, mine.config) == ("across", named.config) and mine.settings["preset"] == "best"
    assert papers.kind == "dicot" and "preset" not in papers.settings
    contender_of_a_method = contender("dicot", preset=None)
    assert contender_of_a_method.config == contender("dicot").config, "a method by its name is the paper's"
    for one, preset in ((mine, BEST), (papers, PAPER)):
        for control in with_controls([one])[1:3]:
            made = control.make(1)
            assert made.method == control.kind and made.resolve(24, 32).features == {
                **preset.features_with({}),
                "bank": 84,
            }
    assert len(with_controls([mine, papers])) == 2 + 2 * 2 + 2, "two presets, so two pairs of controls"
    assert len(with_controls([mine, as_contender(said, "other")])) == 2 + 2 + 2, "one preset, so one pair"


def test_a_preset_with_other_values_is_another_job(monkeypatch):
    def job(**params):
        (one,) = cross(
            "a", [(Contender("best", "across", params, {"preset": TRAINED}), ("ridge",))], [whole("GunPoint")], (1,),
            SuiteOptions(),
        )  # fmt: skip
        return one

    before = job()
    assert before.key == job(width=128).key, "what is the default anyway"
    for changed in (
        replace(RICH, features={**RICH.features, "bank": 84}),
        replace(RICH, recipe=SizeRule(long=4)),
        replace(RICH, method_params={"width": 256}),
    ):
        monkeypatch.setitem(PRESETS, TRAINED, changed)
        assert job().key != before.key
    assert job(width=0).contender.method_params == {"width": 0}, "switches the preset's head off"
    assert job(width=256).key == job().key
