"""The commands as a user types them, on small data."""

import csv
import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from tests.commands import dicot

from dicot import __version__
from dicot.cli import main, plain_warnings
from dicot.cli.exitcodes import ERROR, WRONG_CALL
from dicot.core.errors import DicotError, DicotWarning
from dicot.model.estimator import TimeSeriesEmbedder

QUICK = ["--set", "dim=8", "--steps", "2", "--device", "cpu", "--preset", "paper"]


@pytest.fixture
def data(tmp_path, waves):
    np.savez(tmp_path / "waves.npz", X=waves.x, y=waves.y)
    return tmp_path / "waves.npz"


def test_pretrain_then_embed(tmp_path, data, waves):
    settings = ["--set", "k=[2,4]", "--set", "scale=case", "--set", "batch_size=4"]
    said = dicot("pretrain", data, "--out", tmp_path / "model", *QUICK, "--seed", 3, *settings)
    assert "waves: 24 cases, 2 channel(s), 32 time steps" in said
    assert "trained: 2 steps" in said and f"Wrote {tmp_path / 'model'}" in said
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["method_params"] == {"temperature": 0.07, "k": [2, 4]}
    assert (config["seed"], config["data"]["name"], config["recipe"]["batch_size"]) == (3, "waves", 4)
    said = dicot("embed", tmp_path / "model", data, "--out", tmp_path / "vectors.npz")
    assert "24 cases -> 8 features" in said
    with np.load(tmp_path / "vectors.npz") as arrays:
        assert np.array_equal(arrays["X"], TimeSeriesEmbedder.from_pretrained(tmp_path / "model").transform(waves.x))
        assert np.array_equal(arrays["y"], waves.y)
    with pytest.raises(DicotError, match="'bf8'.*bf16, float32, tf32"):
        dicot("embed", tmp_path / "model", data, "--out", tmp_path / "other.npz", "--set", "precision=bf8")


def test_an_unknown_option_is_answered_with_the_setting(tmp_path, data):
    for given, named in (("--batch-size=4", "--set batch_size=VALUE"), ("--no-calibrate", "--set calibrate=VALUE")):
        with pytest.raises(DicotError, match=f"{given.partition('=')[0]}.*{named}"):
            dicot("pretrain", data, "--out", tmp_path / "m", given)


def test_the_same_warning_is_told_once(capsys):
    with plain_warnings():
        for text in ("short", "short", "long"):
            warnings.warn(text, DicotWarning, stacklevel=1)
    assert capsys.readouterr().err.splitlines() == ["Warning: short", "Warning: long"]


def test_arrays_that_are_not_used_are_named_in_a_line(tmp_path, waves):
    np.savez(tmp_path / "a.npz", X=waves.x, y=waves.y, users=waves.y, colour=waves.y)
    said = dicot("pretrain", tmp_path / "a.npz", "--out", tmp_path / "model", *QUICK)
    lines = [line for line in said.splitlines() if "colour" in line]
    assert lines == [f"Warning: {tmp_path / 'a.npz'}: read X, y, users; not used: colour."]
    said = dicot("embed", tmp_path / "model", tmp_path / "a.npz", "--out", tmp_path / "v.npz", "--group", "colour")
    assert "not used: users" in said
    with np.load(tmp_path / "v.npz") as arrays:
        assert np.array_equal(arrays["group"], waves.y)


@pytest.mark.filterwarnings("default")
def test_arrays_with_time_before_channels(tmp_path, waves):
    np.save(tmp_path / "turned.npy", waves.x.transpose(0, 2, 1))
    call = ["pretrain", tmp_path / "turned.npy", *QUICK, "--out"]
    said = dicot(*call, tmp_path / "m")
    assert "Warning: Each case is taken for 32 channels of 2 time steps" in said
    said = dicot(*call, tmp_path / "n", "--set", "layout=ntc")
    assert "Warning" not in said and "2 channel(s), 32 time steps" in said


def test_the_same_command_again_has_nothing_to_do_and_another_is_refused(tmp_path, data):
    call = ["pretrain", data, "--out", tmp_path / "model", *QUICK]
    dicot(*call)
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    assert "already holds this run" in dicot(*call)
    with pytest.raises(DicotError, match="holds another model"):
        dicot(*call, "--seed", 2)
    dicot(*call, "--seed", 2, "--overwrite")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() != weights


def test_embedding_uses_the_models_own_policies(tmp_path, waves):
    ragged = waves.x.copy()
    ragged[::2, :, 20:] = np.nan
    np.savez(tmp_path / "ragged.npz", X=ragged)
    dicot("pretrain", tmp_path / "ragged.npz", "--out", tmp_path / "model", *QUICK, "--set", "unequal=pad")
    np.savez(tmp_path / "few.npz", X=ragged[[0, 4], :, :20])
    made = {}
    for name in ("ragged", "few"):
        dicot("embed", tmp_path / "model", tmp_path / f"{name}.npz", "--out", tmp_path / f"{name}-vectors.npz")
        made[name] = np.load(tmp_path / f"{name}-vectors.npz")["X"]
    np.testing.assert_allclose(made["few"], made["ragged"][[0, 4]], atol=1e-6)


def test_long_tables(tmp_path):
    with (tmp_path / "log.csv").open("w") as file:
        file.write("who,when,x,y,kind\n")
        for case in range(4):
            file.writelines(f"p{case},{t},{t * case},{-t},{'ab'[case % 2]}\n" for t in range(9))
    words = ["--set", "case=who", "--time", "when", "--channels", "x,y", "--label", "kind"]
    said = dicot("pretrain", tmp_path / "log.csv", "--out", tmp_path / "model", *QUICK, *words)
    assert "4 cases, 2 channel(s), 9 time steps" in said and "label: kind; channels: x, y" in said
    dicot("embed", tmp_path / "model", tmp_path / "log.csv", "--out", tmp_path / "v.npz", *words)
    with np.load(tmp_path / "v.npz", allow_pickle=False) as arrays:
        assert arrays["y"].tolist() == ["a", "b", "a", "b"]


def test_one_case_per_row(tmp_path):
    path = tmp_path / "beats.csv"
    rows = [f"{100 + i},{','.join(str((i * t) % 7) for t in range(12))},{'NV'[i % 2]}\n" for i in range(8)]
    path.write_text(",".join(["record", *(f"t{t}" for t in range(12)), "beat"]) + "\n" + "".join(rows))
    call = ["pretrain", path, "--out", tmp_path / "model", *QUICK, "--label", "beat"]
    with pytest.raises(DicotError, match=r"record.*ignore"):
        dicot(*call)
    said = dicot(*call, "--set", "ignore=record")
    assert "label: beat" in said and "8 cases, 1 channel(s), 12 time steps" in said
    path.write_text("0,1,2,3,4,5,6,7\n5,3,5,3,9,1,2,2\n")
    embed = ["embed", tmp_path / "model", path, "--out", tmp_path / "v.npz"]
    with pytest.raises(DicotError, match="header"):
        dicot(*embed)
    assert "2 cases ->" in dicot(*embed, "--set", "header=false")
    assert "1 cases ->" in dicot(*embed, "--overwrite", "--set", "header=true")


def test_evaluate_writes_table_report_and_model(tmp_path):
    out = tmp_path / "out"
    said = dicot(
        *("evaluate", "synthetic", "--method", "dicot", *QUICK, "--out", out),
        *("--protocols", "linear,clustering", "--seeds", "1,2"),
    )
    for word in ("dicot, seed 1: 2 steps", "calibrated", "raw-flat", "linear accuracy", "clustering nmi"):
        assert word in said
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 4  # loss and rate, series of classes, map, confusion
    assert not re.search(r'(src|href)="(?!#|data:)', page), "nothing is loaded from elsewhere"
    scores = list(csv.DictReader((out / "scores.csv").read_text().splitlines()))
    assert {row["contender"] for row in scores} == {"dicot", "random", "calibrated", "raw-mean", "raw-flat"}
    assert len(scores) == 5 * 2 * 2 and all(0 <= float(row["accuracy"] or 0) <= 100 for row in scores)
    again = dicot("evaluate", "synthetic", "--model", out / "model", "--protocols", "knn_all", "--device", "cpu")
    assert "model, seed 1" in again


def test_several_methods_in_one_table():
    said = dicot("evaluate", "synthetic", *QUICK, "--method", "dicot,calibrated", "--protocols", "knn_all")
    assert said.count("calibrated, seed 1") == 1
    with pytest.raises(DicotError, match="k: a setting of one method"):
        dicot("evaluate", "synthetic", *QUICK, "--method", "dicot,random", "--set", "k=3")


def test_a_failed_method_is_shown_and_the_command_fails(tmp_path):
    with pytest.raises(DicotError, match="dicot failed, so there is no report"):
        dicot("evaluate", "synthetic", *QUICK, "--set", "k=1", "--protocols", "knn_all", "--out", tmp_path)
    assert "k must be" in (tmp_path / "scores.csv").read_text()
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("methods", "Divide and Contrast"),
        ("presets", "the default"),
        ("controls", "minirocket"),
        ("encoders", "inception_time"),
        ("protocols", "linear probe"),
        ("poolings", "mean+max+std"),
        ("datasets", "synthetic"),
        ("models", "dicot-base         An encoder"),
    ],
)
def test_list(kind, word):
    assert word in dicot("list", kind)


def test_what_was_registered_is_listed_even_without_a_docstring(monkeypatch):
    from dicot.nets.encoders import ENCODERS, FCN

    class Plain(FCN):
        pass

    Plain.__doc__ = None
    monkeypatch.setitem(ENCODERS, "toy_encoder", Plain)
    assert "toy_encoder" in dicot("list", "encoders")


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["list", "encoder"], "'encoders'", WRONG_CALL),
        (["pretrain", "GunPont", "--out", "m"], "'GunPoint'", ERROR),
        (["pretrain", "synthetic", "--out", "m", "--method", "di-cot"], "'dicot'", WRONG_CALL),
        (["pretrain", "none.npz", "--out", "m"], "none.npz", ERROR),
        (["pretrain", "empty", "--out", "m", "--set", "layout=ntc"], "empty", ERROR),
        (["pretrain", "synthetic", "--out", "m", "--window", "ten"], "window must be", WRONG_CALL),
        (["pretrain", "synthetic", "--out", "m", "--device", "gpu"], "--device takes", WRONG_CALL),
        (["outliers", "gaps.npz", "--alarm", "5"], "share between 0 and 1", WRONG_CALL),
        (["search", "gaps.npz", "--like", "1", "--metric", "cosin"], "cosine or euclidean", WRONG_CALL),
        (["pretrain", "synthetic", "--out", "m", "--set", "k"], "name=value", WRONG_CALL),
        (
            ["pretrain", "synthetic", "--out", "m", "--method", "dicot", "--set", "temprature=1"],
            "'temperature'",
            WRONG_CALL,
        ),
        (["pretrain", "synthetic", "ItalyPowerDemand", "--out", "m"], "--universal", WRONG_CALL),
        (["pretrain", "synthetic", "synthetic", "--universal", "--out", "m"], "twice", WRONG_CALL),
        (["pretrain", "synthetic", "--universal", "--method", "dicot", "--out", "m"], "--method", WRONG_CALL),
        (["pretrain", "synthetic", "--universal", "--set", "k=3", "--out", "m"], "'k'", WRONG_CALL),
        (["pretrain", "synthetic", "--out", "m", "--set", "batchsize=1"], "'batch_size'", WRONG_CALL),
        (["pretrain", "synthetic", "--out", "m", "--label", "y"], "synthetic", WRONG_CALL),
        (["pretrain", "synthetic", "--out", "m", "--set", "family=uae"], "uae", WRONG_CALL),
        (["pretrain", "synthetic", "--out", "m", "--set", "dim=0"], "dim must be", WRONG_CALL),
        (["pretrain", "synthetic", "--out", "m", "--steps", "-1"], "--steps", WRONG_CALL),
        (["pretrain", "gaps.npz", "--out", "m"], "missing", ERROR),
        (["embed", "nowhere", "synthetic", "--out", "v.npz"], "nowhere", ERROR),
        (["embed", "empty", "--out", "v.npz"], "empty", ERROR),
        (["embed", "a.csv", "b.csv", "c.csv", "--out", "v.npz"], "quotes", WRONG_CALL),
        (["explore", "empty", "--export", "page.html"], "empty", ERROR),
        (["evaluate", "synthetic", "--protocols", "liner"], "'linear'", WRONG_CALL),
        (["evaluate", "synthetic", "--seeds", "one"], "--seeds", WRONG_CALL),
        (["explore", "v.npz", "--set", "smaple=3"], "'sample'", WRONG_CALL),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_end_with_an_exit_code_and_a_sentence(words, message, code, monkeypatch, capsys, tmp_path, waves):
    monkeypatch.chdir(tmp_path)
    waves.x[0, 0, 3] = np.nan
    np.savez("gaps.npz", X=waves.x)
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(sys, "argv", ["dicot", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == code
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "gaps.npz"]  # nothing is left half-written


def test_a_file_with_missing_labels_can_be_trained_on(tmp_path, waves):
    labels = np.where(np.arange(24) < 4, np.nan, waves.y)
    np.savez(tmp_path / "some.npz", X=waves.x, y=labels)
    call = ["pretrain", tmp_path / "some.npz", *QUICK, "--method", "supervised", "--out", tmp_path / "m"]
    assert "trained" in dicot(*call)
    np.savez(tmp_path / "some.npz", X=waves.x, y=np.full(24, ""))
    with pytest.raises(DicotError, match="none of the 24 cases"):
        dicot(*call, "--overwrite")


def test_a_wrong_call_ends_with_exit_code_two(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dicot", "pretrain"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2


def test_version():
    module = [sys.executable, "-m", "dicot", "--version"]
    assert subprocess.run(module, capture_output=True, text=True, check=True).stdout == f"dicot {__version__}\n"


def test_help_is_light():
    """Nothing heavy is loaded; the time itself depends on the machine and is not tested."""
    code = (
        "import sys; sys.argv = ['dicot', '--help']\n"
        "from dicot.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'sklearn', 'pandas', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")
    code = "import sys, dicot; print(sorted({'torch', 'sklearn'} & set(sys.modules)), dir(dicot))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[]") and "TimeSeriesEmbedder" in done.stdout


def test_other_labels_are_another_run_where_labels_are_learned_from(tmp_path, waves):
    for name, y in (("a", waves.y), ("b", waves.y[::-1])):
        np.savez(tmp_path / "data.npz", X=waves.x, y=y)
        for method in ("supervised", "dicot"):
            call = ["pretrain", tmp_path / "data.npz", "--out", tmp_path / method, "--method", method, *QUICK]
            if (name, method) == ("b", "supervised"):
                with pytest.raises(DicotError, match="holds another model"):
                    dicot(*call)
            else:
                assert ("already holds this run" in dicot(*call)) == (name == "b")
