"""dicot evaluate: what it says about the split, the spread and the controls, and what it refuses before it trains."""

import csv
import html
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot
from tests.explorer.conftest import page_files

from dicot.core.errors import InputError, MissingExtraError
from dicot.data import Windows, hold_out
from dicot.data.datasets import DATASETS, Card, DataSet
from dicot.data.splits import check_split
from dicot.judge.comparison import announcement, can_train
from dicot.judge.evaluation import contender, with_own_classifier
from dicot.judge.evaluation import evaluate as score
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.store.series import series_of
from dicot.store.vectors import read_vectors

QUICK = ["--set", "dim=8", "--steps", 1, "--device", "cpu", "--method", "dicot"]


@pytest.fixture
def cases() -> dict[str, np.ndarray]:
    """60 noisy waves of 6 people in three classes."""
    rng = np.random.default_rng(0)
    y, group = np.arange(60) % 3, np.arange(60) // 10
    time = np.linspace(0, 1, 24)
    x = np.sin(2 * np.pi * (2 + y[:, None]) * time + rng.uniform(0, 6, (60, 1))) + rng.normal(size=(60, 24))
    return {"X": x, "y": y, "group": group}


@pytest.fixture
def file(tmp_path, cases):
    np.savez(tmp_path / "people.npz", **cases)
    return tmp_path / "people.npz"


@pytest.fixture
def model(tmp_path, cases):
    embedder = TimeSeriesEmbedder(
        "random",
        encoder="fcn",
        dim=8,
        prepare={"scale": "case", "missing": "zero"},
        features={"pooling": "max"},
        random_state=5,
        device="cpu",
    )
    embedder.fit(cases["X"][:, None]).save_pretrained(tmp_path / "mine")
    return tmp_path / "mine"


def rows(folder):
    return list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))


def numbers(said: str, line: str) -> list[str]:
    """The cells of a line of the printed table."""
    (found,) = [text for text in said.splitlines() if text.startswith(f"│ {line} ")]
    return [cell.strip() for cell in found.strip("│").split("│")][1:]


def test_the_split_is_told_on_screen_and_in_the_report(tmp_path, file):
    said = dicot("evaluate", file, *QUICK, "--protocols", "knn_all", "--out", tmp_path / "out", "--set", "holdout=0.34")
    told = re.search(r"2 of 6 groups held out, .* seed 0: (\d), (\d)\n", said)
    assert told and "Warning" not in said
    assert told[0].strip() in (tmp_path / "out" / "report.html").read_text()
    other = dicot("evaluate", file, *QUICK, "--protocols", "knn_all", "--set", "split_seed=1")
    assert "seed 1: " in other


def test_without_groups_there_is_a_warning(tmp_path, cases):
    np.savez(tmp_path / "loose.npz", X=cases["X"], y=cases["y"])
    said = dicot("evaluate", tmp_path / "loose.npz", *QUICK, "--protocols", "knn_all", "--out", tmp_path / "out")
    assert "30 % of the cases of each class" in said and "Warning: the data name no groups" in said
    page = (tmp_path / "out" / "report.html").read_text()
    assert "30 % of the cases of each class" in page and 'class="banner"' in page


def test_a_given_split_is_called_given(tmp_path, cases):
    x, y = cases["X"], cases["y"]
    np.savez(tmp_path / "given.npz", X_train=x[:40], y_train=y[:40], X_test=x[40:], y_test=y[40:])
    said = dicot("evaluate", tmp_path / "given.npz", *QUICK, "--protocols", "knn_all")
    assert "given by the file" in said and "Warning" not in said
    assert "given by the archive" in dicot("evaluate", "ItalyPowerDemand", *QUICK, "--protocols", "knn_all")


@pytest.mark.parametrize(
    ("given", "unequal", "length", "other"),
    [(True, "crop", 20, 16), (False, "pad", 24, 30), (False, "resample", 24, 30)],
)
def test_lengths_of_test_cases_do_not_shape_training(tmp_path, cases, given, unequal, length, other):
    """Cases have 20 to 24 time steps, whoever is held out; then one test case has 16 or 30."""
    x = np.full((60, 30), np.nan)
    x[:, :24] = cases["X"]
    x[::10, 20:] = np.nan
    test = np.isin(cases["group"], hold_out(Windows(cases["X"][:, None], group=cases["group"]), 0.3).test.group)
    models = []
    for name, n_times in (("usual", 24), ("other", other)):
        x[test.nonzero()[0][-1]] = np.where(np.arange(30) < n_times, 1.0, np.nan)
        parts = {**cases, "X": x}
        if given:
            sides = {"train": ~test, "test": test}
            parts = {f"{key}_{side}": parts[key][rows] for key in parts for side, rows in sides.items()}
        np.savez(tmp_path / f"{name}.npz", **parts)
        words = [*QUICK, "--protocols", "knn_all", "--set", f"unequal={unequal}", "--out", tmp_path / name]
        text = dicot("evaluate", tmp_path / f"{name}.npz", *words)
        assert f"{length} time steps" in text
        assert ("Warning: Test case" in text) == (name == "other" and unequal != "resample")
        models.append((tmp_path / name / "model" / "model.safetensors").read_bytes())
        assert len(read_vectors(tmp_path / name / "vectors.npz")) == 60
    assert models[0] == models[1]


@pytest.mark.slow
def test_few_labels_have_a_spread_over_draws_that_seeds_change(tmp_path, file, model):
    call = ["evaluate", file, "--model", model, "--protocols", "few_5,knn_5,linear", "--device", "cpu"]
    said = dicot(*call, "--seeds", "1,2", "--out", tmp_path / "out")
    mine = [row for row in rows(tmp_path / "out") if row["contender"] == "mine"]
    for protocol in ("few_5", "knn_5"):
        values = {(row["seed"], row["draw"]): float(row["accuracy"]) for row in mine if row["protocol"] == protocol}
        assert set(values) == {(s, str(d)) for s in "12" for d in range(1, 11)}
        by_seed = [[values[seed, str(draw)] for draw in range(1, 11)] for seed in "12"]
        assert by_seed[0] != by_seed[1] and min(len(set(v)) for v in by_seed) > 1
        spread = np.std([*values.values()], ddof=1)
        assert numbers(said, f"{protocol} accuracy")[0].startswith(f"{np.mean([*values.values()]):.2f} ± {spread:.2f}")
    assert "±" not in numbers(said, "linear accuracy")[0], "nothing varies"
    assert "±" in numbers(said, "linear accuracy")[1], "the control's weights do"
    assert "10 draws of the labelled cases" in said.replace("\n", " ")
    one = dicot(*call, "--seeds", "1", "--protocols", "few_5,linear")
    assert "±" in numbers(one, "few_5 accuracy")[0] and "±" not in numbers(one, "linear accuracy")[1]
    authors = dicot(*call, "--seeds", "1,2", "--protocols", "few_5", "--set", "subsets=authors")
    assert "±" not in numbers(authors, "few_5 accuracy")[0] and "the authors' one draw" in authors.replace("\n", " ")


def test_controls_are_the_models_encoder_without_its_weights(file, model):
    """A model that is itself the random control scores as the control does with its seed."""
    call = ["evaluate", file, "--model", model, "--protocols", "linear", "--seeds", 5, "--device", "cpu"]
    said = dicot(*call)
    assert re.search(r"┃ +mine, random ┃", said) and "shown once: mine and random." in said.replace("\n", " ")


@pytest.mark.parametrize(
    "flags", [["--set", "dim=8"], ["--set", "scale=dataset"], ["--method", "tnc"], ["--set", "k=3"], ["--steps", 7]]
)
def test_settings_beside_a_saved_model_are_refused(file, model, flags):
    named = str(flags[-1]).partition("=")[0] if flags[0] == "--set" else flags[0].removeprefix("--")
    with pytest.raises(InputError, match=named):
        dicot("evaluate", file, "--model", model, *flags, "--protocols", "knn_all")


def test_the_models_policies_prepare_the_data_for_all(tmp_path, cases, model):
    holes = cases["X"].copy()
    holes[::4, 5] = np.nan
    np.savez(tmp_path / "holes.npz", X=holes, y=cases["y"], group=cases["group"])
    said = dicot("evaluate", tmp_path / "holes.npz", "--model", model, "--protocols", "knn_all", "--device", "cpu")
    assert "failed" not in said


def test_a_model_called_like_a_control_stands_beside_it(tmp_path, file, model):
    model.rename(tmp_path / "random")
    said = dicot("evaluate", file, "--model", tmp_path / "random", "--protocols", "knn_all", "--device", "cpu")
    assert "saved random, seed 1" in said and "  random, seed 1" in said


@pytest.mark.slow
def test_protocols_that_come_to_the_same_are_one_line(file):
    said = dicot("evaluate", file, *QUICK, "--protocols", "knn_5,knn_100,knn_500,knn_all,few_10", "--method", "random")
    table = [line.split("│")[1].strip() for line in said.splitlines() if line.startswith("│")]
    kept = [line.removesuffix(" accuracy") for line in table if line.endswith("accuracy")]
    assert kept == ["knn_5", "knn_all", "few_10"]
    assert "knn_100, knn_500: the same as knn_all" in said
    alone = dicot(
        "evaluate", file, *QUICK, "--protocols", "few_10,knn_500", "--method", "random", "--set", "holdout=0.6"
    )
    assert "few_10: the same as linear" in alone and "│ knn_all accuracy" in alone


@pytest.fixture
def nothing_runs(monkeypatch):
    """Whatever is fitted now is fitted too early."""

    def run(*words, **more):
        raise AssertionError("trained before the check")

    monkeypatch.setattr(TimeSeriesEmbedder, "fit", run)


def test_a_report_without_matplotlib_ends_before_anything_is_trained(tmp_path, file, monkeypatch, nothing_runs):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        dicot("evaluate", file, *QUICK, "--out", tmp_path / "out")


def test_cases_without_a_label_are_trained_on_and_not_scored(tmp_path, cases):
    names = np.where(np.arange(60) % 4 == 0, "", np.array(["a", "b", "c"])[cases["y"]])
    np.savez(tmp_path / "some.npz", X=cases["X"], y=names, group=cases["group"])
    words = [*QUICK, "--method", "dicot,supervised", "--protocols", "linear", "--out", tmp_path / "out"]
    said = dicot("evaluate", tmp_path / "some.npz", *words)
    assert re.search(r"40 training and 20 test cases.*; 10 training and 5 test cases have no label", said)
    assert "failed" not in said
    values = [float(row["accuracy"]) for row in rows(tmp_path / "out")]
    assert all(value * 15 / 100 == pytest.approx(round(value * 15 / 100)) for value in values), "15 cases are scored"


def steps_of(said: str) -> list[list[str]]:
    """The commands below "What to do next", as words."""
    return [shlex.split(line) for line in said.partition("What to do next")[2].splitlines() if "    dicot " in line]


def test_it_begins_with_a_verdict_and_ends_with_commands_that_run(tmp_path, monkeypatch, cases):
    names = np.array(["rest", "walk", "run & <jump>"])[cases["y"]]
    table = ["person,what," + ",".join(f"t{i}" for i in range(24))]
    table += [f"{g},{n}," + ",".join(map(str, x)) for g, n, x in zip(cases["group"], names, cases["X"], strict=True)]
    (tmp_path / "my people.csv").write_text("\n".join(table))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dicot.explorer.page.load_assets", page_files)
    words = ["--label", "what", "--group", "person", "--protocols", "linear,knn_all", "--out", "report"]
    monkeypatch.setattr(sys, "argv", ["dicot", "evaluate", "my people.csv", *map(str, QUICK), *words])
    said = dicot(*sys.argv[1:])
    page = (tmp_path / "report" / "report.html").read_text()
    assert html.unescape(re.search('<p class="verdict">(.*?)</p>', page)[1]) in said and "2 test persons" in said
    assert page.index("verdict") < page.index("What to do next") < page.index("<h2>Scores") < page.index("This run")
    steps = steps_of(said)
    assert [words[1] for words in steps] == ["explore", "embed", "evaluate"]
    for _, *step in steps[:2]:
        assert f"dicot {shlex.join(step)}" in html.unescape(page)
        dicot(*step, *(["--export", "map.html"] if step[0] == "explore" else []))  # which would serve until Ctrl-C
    assert len(read_vectors(tmp_path / "vectors.npz")) == 60
    dicot(*steps[2][1:], "--seeds", "1,2")  # into the folder that this run has filled; two seeds are quicker than five


def test_a_page_explains_protocols_and_shows_classes_by_name_without_a_script(tmp_path, file, cases):
    np.savez(file, **{**cases, "y": np.array(["rest", "walk", "run & <jump>"])[cases["y"]]})
    dicot("evaluate", file, *QUICK, "--protocols", "few_1,clustering", "--out", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "linear probe on 1 labelled case(s) per class, mean of 10 draws" in page
    assert "k-means on the test embeddings" in page and "run &amp; &lt;jump&gt; (" in page
    assert "Map of the test cases by dicot" in page and "<script" not in page
    assert not re.search(r"@import|url\((?!#)|<link|src=|href=.http", page)


def test_where_a_class_is_rare_macro_f1_comes_first_beside_what_a_constant_answer_scores(tmp_path, file, cases):
    y = np.where(np.arange(60) % 10 == 3, "fall", "daily")
    np.savez(file, **{**cases, "y": y})
    dicot("evaluate", file, *QUICK, "--protocols", "knn_all", "--out", tmp_path / "out")
    page = html.unescape((tmp_path / "out" / "report.html").read_text())
    assert page.index("<h2>Macro F1") < page.index("<h2>Scores")
    assert "Some classes are rare" in page and "Always answering 'daily', the most frequent class" in page
    assert "Each class by the linear probe on dicot" in page and "found (recall), %" in page


@pytest.mark.parametrize("columns", [80, 50])
def test_nothing_is_wider_than_the_screen(monkeypatch, file, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    said = dicot("evaluate", file, *QUICK, "--protocols", "few_1,few_5,clustering", "--method", "dicot,tnc")
    shown = said.partition("to fit\n\n")[2].partition("What to do next")[0]
    assert shown and max(map(len, shown.splitlines())) <= columns
    heads = [cell.strip() for line in said.splitlines() if line.startswith("┃") for cell in line.split("┃")[2:-1]]
    assert heads == ["dicot", "tnc", "random", "calibrated", "raw-mean", "raw-flat"]
    assert "few_5: linear probe on 5 labelled case(s)" in shown


def test_a_named_data_set_shows_the_names_of_its_classes(tmp_path, monkeypatch, cases):
    """Its labels are numbers, and its card says what they mean."""

    class People(DataSet):
        name = "people"

        def is_here(self):
            return True

        def card(self):
            return Card(self.name, None, 40, 20, 1, 24, 3, labels=("rest", "walk", "run"))

        def load(self, *, channels=None, **policies):
            x, y = cases["X"][:, None], cases["y"]
            return check_split((x[:40], y[:40]), (x[40:], y[40:]), name=self.name, **policies)

    monkeypatch.setitem(DATASETS, "people", People())
    dicot("evaluate", "people", *QUICK, "--protocols", "knn_all", "--out", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert all(f">{name} (" in page for name in ("rest", "walk", "run"))


@pytest.mark.parametrize("parts", [{"_train": slice(0, 40), "_test": slice(40, 60)}, {"": slice(None)}])
def test_the_vectors_are_written_and_the_command_that_is_named_shows_them(tmp_path, monkeypatch, cases, parts):
    arrays = {"X": cases["X"][:, :, None], "kind": cases["y"], "user": cases["group"]}  # time before channels
    named = {f"{key}{part}": values[rows] for key, values in arrays.items() for part, rows in parts.items()}
    np.savez(tmp_path / "my cases.npz", **named)
    words = ["--set", "layout=ntc", "--label", "kind", "--group", "user", "--protocols", "knn_all"]
    said = dicot("evaluate", tmp_path / "my cases.npz", *words, *QUICK, "--out", tmp_path / "out")
    command = shlex.join(steps_of(said)[0][1:])
    assert "--data" not in command, "the vectors say what they were made of"
    monkeypatch.setattr("dicot.explorer.page.load_assets", page_files)
    dicot(*shlex.split(command), "--export", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '"n":60' in page and '"channels":["channel 0"]' in page and '"series":true' in page
    vectors = read_vectors(tmp_path / "out" / "vectors.npz")
    assert vectors.label.tolist() == cases["y"].tolist() and vectors.group.tolist() == cases["group"].tolist()
    model = TimeSeriesEmbedder.from_pretrained(tmp_path / "out" / "model")
    np.testing.assert_allclose(vectors.x, model.transform(cases["X"][:, None]), rtol=1e-4, atol=1e-5)


def test_vectors_of_a_data_set_by_name_find_its_cases(tmp_path, monkeypatch):
    words = ["--set", "missing=zero", "--protocols", "knn_all", "--out", tmp_path / "out"]
    dicot("evaluate", "ItalyPowerDemand", *words, *QUICK, "--method", "raw-mean")
    source = read_vectors(tmp_path / "out" / "vectors.npz").source
    assert (source.kind, source.options, source.model) == ("name", {"missing": "zero"}, "raw-mean")
    monkeypatch.setattr("dicot.explorer.page.load_assets", page_files)
    dicot("explore", tmp_path / "out" / "vectors.npz", "--export", tmp_path / "page.html")
    assert '"channels":["channel 0"]' in (tmp_path / "page.html").read_text()


@pytest.fixture
def walks(tmp_path):
    folder = tmp_path / "walks"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for user in range(4):
        lines = [
            f"{i / 20},{np.sin(i * (1 + i // 120)):.3f},{rng.normal():.3f},{'ab'[i // 120]},{user}" for i in range(240)
        ]
        (folder / f"user {user}.csv").write_text("time,x,y,activity,user\n" + "\n".join(lines))
    return folder


def test_vectors_of_recordings_find_their_windows_and_can_be_appended_to(tmp_path, monkeypatch, walks):
    cut = ["--window", "1s", "--label", "activity", "--group", "user"]
    said = dicot("evaluate", walks, *QUICK, *cut, "--protocols", "knn_all", "--out", tmp_path / "out")
    command = shlex.join(steps_of(said)[0][1:])
    assert "--data" not in command, "the vectors say what they were made of"
    monkeypatch.setattr("dicot.explorer.page.load_assets", page_files)
    dicot(*shlex.split(command), "--export", tmp_path / "page.html")
    assert '"channels":["x","y"]' in (tmp_path / "page.html").read_text()
    out = tmp_path / "out" / "vectors.npz"
    windows = Windows.from_folder(walks, "1s", label="activity", group="user")
    series = series_of(read_vectors(out), None, {})
    np.testing.assert_array_equal([series.window(row) for row in range(len(windows))], windows.x)
    said = dicot("embed", tmp_path / "out" / "model", walks, *cut, "--append", "--device", "cpu", "--out", out)
    assert "Nothing is new" in said


def test_a_folder_of_recordings_is_split_by_its_groups(tmp_path, walks):
    cut = ["--window", "1s", "--label", "activity", "--group", "user", "--protocols", "knn_all"]
    said = dicot("evaluate", walks, *QUICK, *cut, "--out", tmp_path / "out")
    assert "walks: 69 training and 23 test cases, 2 channel(s), 20 time steps" in said
    assert "1 of 4 users held out" in said and "Read " in said
    assert numbers(said, "knn_all accuracy")
    by_recording = [word for word in cut if word not in ("--group", "user")]
    said = dicot(
        "evaluate", walks, "--model", tmp_path / "out" / "model", "--device", "cpu", *by_recording, "--channels", "x,y"
    )
    assert "1 of 4 recordings held out, drawn once with seed 0: user " in said, "without groups recordings are held out"
    (walks / "dicot.toml").write_text('window = "1s"\ngroup = "user"\nscale = "case"\n')
    with pytest.raises(InputError, match="scored by labels.*--label"):
        dicot("evaluate", walks, *QUICK)
    dicot("evaluate", walks, *QUICK, "--label", "activity", "--protocols", "knn_all", "--out", tmp_path / "scaled")
    assert TimeSeriesEmbedder.from_pretrained(tmp_path / "scaled" / "model").prepare == {"scale": "case"}


def test_without_options_the_presets_stand_beside_rivals_and_the_untrained_control(tmp_path: Path) -> None:
    out = tmp_path / "report"
    said = dicot("evaluate", "synthetic", "--protocols", "knn_5", "--device", "cpu", "--out", out)
    rivals = "minirocket, stats-spectrum" if find_spec("aeon") else "stats-spectrum"
    assert f"by 1 protocol(s): knn_5): instant, {rivals} + forest, random\n" in said
    assert "\nUse " in said
    assert "Training of" not in (out / "report.html").read_text(encoding="utf-8")  # nothing was trained


def test_without_protocols_few_that_matter_are_scored_and_few_labels_decide(file: Path) -> None:
    """All protocols of the papers took minutes on a folder of 264 windows."""
    said = dicot("evaluate", file, "--method", "raw-mean", "--device", "cpu")
    assert "fits, scored by 4 protocol(s): few_5, ridge, knn_all, clustering): raw-mean" in said
    heads = {line[1:].split()[0] for line in said.splitlines() if line.startswith("│") and line[2] != " "}
    assert heads == {"few_5", "ridge", "knn_all", "clustering"}
    assert "by few_5 accuracy" in said.lower()


def test_it_says_before_it_begins_how_many_fits_there_are() -> None:
    contenders = [contender("random"), contender("raw-mean")]  # the second is the same for every seed
    said = announcement(contenders, ["few_5", "ridge"], 5)
    assert said == "Comparing 2 contenders (6 fits, 5 seeds, scored by 2 protocol(s): few_5, ridge): random, raw-mean"


def test_best_is_compared_where_there_are_cases_enough_or_a_training_is_asked_for() -> None:
    best, instant = contender("best"), contender("instant")
    assert can_train(best, 500, {}) and not can_train(best, 499, {})
    assert can_train(best, 90, {"steps": 5}) and can_train(instant, 2, {})
    assert "best trains for at most 2 minutes per seed" in announcement([instant, best], ["ridge"], 1)


def test_statistics_are_classified_by_a_forest_wherever_others_have_a_linear_probe() -> None:
    by_forest = with_own_classifier("stats-spectrum", "forest")
    result = score("synthetic", [by_forest, "stats-spectrum"], ["linear", "forest", "few_5", "knn_5"], controls=False)
    values = {(one.contender, one.protocol, one.draw): one.values for one in result.results}
    assert not any(one.error for one in result.results)
    assert values["stats-spectrum + forest", "linear", 1] == values["stats-spectrum", "forest", 1]
    assert values["stats-spectrum + forest", "linear", 1] != values["stats-spectrum", "linear", 1]
    assert values["stats-spectrum + forest", "few_5", 1] != values["stats-spectrum", "few_5", 1]
    assert values["stats-spectrum + forest", "knn_5", 1] == values["stats-spectrum", "knn_5", 1]
