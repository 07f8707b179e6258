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
from dicot.cli import app, main
from dicot.cli.wording import plain_warnings
from dicot.core.errors import DicotError, DicotWarning
from dicot.model.estimator import TimeSeriesEmbedder

QUICK = ["--dim", "8", "--steps", "2", "--device", "cpu", "--preset", "paper"]


@pytest.fixture
def data(tmp_path, waves):
    np.savez(tmp_path / "waves.npz", X=waves.x, y=waves.y)
    return tmp_path / "waves.npz"


def test_pretrain_then_embed(tmp_path, data, waves):
    said = dicot(
        "pretrain", data, "--out", tmp_path / "model", *QUICK, "--seed", 3, "--set", "k=[2,4]", "--scale", "case"
    )
    assert "waves: 24 cases, 2 channel(s), 32 time steps" in said
    assert "trained: 2 steps" in said and f"Wrote {tmp_path / 'model'}" in said
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["method_params"] == {"temperature": 0.07, "k": [2, 4]}
    assert (config["seed"], config["data"]["name"]) == (3, "waves")
    said = dicot("embed", tmp_path / "model", data, "--out", tmp_path / "vectors.npz")
    assert "24 cases -> 8 features" in said
    with np.load(tmp_path / "vectors.npz") as arrays:
        assert np.array_equal(arrays["X"], TimeSeriesEmbedder.from_pretrained(tmp_path / "model").transform(waves.x))
        assert np.array_equal(arrays["y"], waves.y)
    with pytest.raises(DicotError, match="'bf8'.*bf16, float32, tf32"):
        dicot("embed", tmp_path / "model", data, "--out", tmp_path / "vectors.npz", "--precision", "bf8")


def test_the_same_warning_is_told_once(capsys):
    with plain_warnings(app):
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


def test_bare_arrays_are_trained_on_and_embedded(tmp_path, waves):
    np.save(tmp_path / "a.npy", waves.x)
    dicot("pretrain", tmp_path / "a.npy", "--out", tmp_path / "model", *QUICK, "--scale", "dataset")
    dicot("embed", tmp_path / "model", tmp_path / "a.npy", "--out", tmp_path / "v.npz")
    expected = TimeSeriesEmbedder.from_pretrained(tmp_path / "model").transform(waves.x)
    assert np.array_equal(np.load(tmp_path / "v.npz")["X"], expected)


def test_a_folder_is_no_data(tmp_path, monkeypatch):
    (tmp_path / "recordings").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DicotError, match="recordings") as caught:
        dicot("pretrain", "recordings", "--out", "m", "--layout", "ntc")
    assert "GunPoint" not in str(caught.value)


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
    dicot("pretrain", tmp_path / "ragged.npz", "--out", tmp_path / "model", *QUICK, "--unequal", "pad")
    dicot("embed", tmp_path / "model", tmp_path / "ragged.npz", "--out", tmp_path / "all_vectors.npz")
    np.savez(tmp_path / "few.npz", X=ragged[[0, 4], :, :20])
    dicot("embed", tmp_path / "model", tmp_path / "few.npz", "--out", tmp_path / "few_vectors.npz")
    few, whole = (np.load(tmp_path / f"{name}_vectors.npz")["X"] for name in ("few", "all"))
    np.testing.assert_allclose(few, whole[[0, 4]], atol=1e-6)


def test_long_tables(tmp_path):
    with (tmp_path / "log.csv").open("w") as file:
        file.write("who,when,x,y,kind\n")
        for case in range(4):
            file.writelines(f"p{case},{t},{t * case},{-t},{'ab'[case % 2]}\n" for t in range(9))
    words = ["--case", "who", "--time", "when", "--channels", "x,y", "--label", "kind"]
    said = dicot("pretrain", tmp_path / "log.csv", "--out", tmp_path / "model", *QUICK, *words)
    assert "comma separated; case: who; time: when; label: kind; channels: x, y; 4 cases; first case: p0" in said
    said = dicot("embed", tmp_path / "model", tmp_path / "log.csv", "--out", tmp_path / "v.npz", *words)
    assert "channels: x, y" in said
    assert np.load(tmp_path / "v.npz")["y"].tolist() == ["a", "b", "a", "b"]


def test_one_case_per_row(tmp_path):
    path = tmp_path / "beats.csv"
    rows = [f"{100 + i},{','.join(str((i * t) % 7) for t in range(12))},{'NV'[i % 2]}\n" for i in range(8)]
    path.write_text(",".join(["record", *(f"t{t}" for t in range(12)), "beat"]) + "\n" + "".join(rows))
    call = ["pretrain", path, "--out", tmp_path / "model", *QUICK, "--label", "beat"]
    with pytest.raises(DicotError, match="record.*--ignore"):
        dicot(*call)
    said = dicot(*call, "--ignore", "record")
    assert "8 cases of 12 time steps" in said and "label: beat" in said and "label N" in said
    assert "8 cases, 1 channel(s), 12 time steps" in said
    path.write_text("0,1,2,3,4,5,6,7\n5,3,5,3,9,1,2,2\n")
    embed = ["embed", tmp_path / "model", path, "--out", tmp_path / "v.npz"]
    with pytest.raises(DicotError, match="--header"):
        dicot(*embed)
    assert "2 cases ->" in dicot(*embed, "--no-header")
    assert "1 cases ->" in dicot(*embed, "--header")


def test_text_columns_of_parquet_are_written_as_text(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    case, time = np.repeat(range(4), 9), np.tile(range(9), 4)
    table = {"id": case, "t": time, "v": np.sin(case + time), "kind": np.array(list("abab"))[case]}
    parquet.write_table(pa.table({**table, "who": np.array(["p", "q", "p", "q"])[case]}), tmp_path / "log.parquet")
    words = ["--case", "id", "--time", "t", "--label", "kind", "--group", "who"]
    dicot("pretrain", tmp_path / "log.parquet", "--out", tmp_path / "model", *QUICK, *words)
    dicot("embed", tmp_path / "model", tmp_path / "log.parquet", "--out", tmp_path / "v.npz", *words)
    with np.load(tmp_path / "v.npz", allow_pickle=False) as arrays:
        assert arrays["y"].tolist() == ["a", "b", "a", "b"]
        assert arrays["group"].tolist() == ["p", "q", "p", "q"]


def test_evaluate_writes_table_report_and_model(tmp_path):
    out = tmp_path / "out"
    said = dicot("evaluate", "synthetic", *QUICK, "--protocols", "linear,clustering", "--seeds", "1,2", "--out", out)
    for word in (
        "dicot, seed 1: 2 steps",
        "calibrated",
        "raw-flat",
        "linear accuracy",
        "clustering nmi",
        "report.html",
    ):
        assert word in said
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 5  # scores, loss and rate, series of classes, map, confusion
    assert not re.search(r'(src|href)="(?!#|data:)', page), "nothing is loaded from elsewhere"
    scores = list(csv.DictReader((out / "scores.csv").read_text().splitlines()))
    assert {row["contender"] for row in scores} == {"dicot", "random", "calibrated", "raw-mean", "raw-flat"}
    assert len(scores) == 5 * 2 * 2 and all(0 <= float(row["accuracy"] or 0) <= 100 for row in scores)
    again = dicot("evaluate", "synthetic", "--model", out / "model", "--protocols", "knn_all", *QUICK)
    assert "model, seed 1" in again


def test_evaluate_holds_cases_out_of_one_file(data):
    said = dicot("evaluate", data, *QUICK, "--protocols", "knn_all", "--holdout", "0.25")
    assert "18 training and 6 test cases" in said


def test_several_methods_in_one_table():
    said = dicot("evaluate", "synthetic", *QUICK, "--method", "dicot,calibrated", "--protocols", "knn_all")
    assert said.count("calibrated, seed 1") == 1
    with pytest.raises(DicotError, match="--set is for one method"):
        dicot("evaluate", "synthetic", *QUICK, "--method", "dicot,random", "--set", "k=3")


def test_a_failed_method_is_shown_and_the_command_fails(tmp_path):
    with pytest.raises(DicotError, match="dicot failed, so there is no report"):
        dicot("evaluate", "synthetic", *QUICK, "--set", "k=1", "--protocols", "knn_all", "--out", tmp_path)
    assert "failed" not in (tmp_path / "scores.csv").read_text().splitlines()[0]
    assert "k must be" in (tmp_path / "scores.csv").read_text()
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("methods", "Divide and Contrast"),
        ("controls", "calibrated"),
        ("controls", "minirocket"),
        ("encoders", "inception_time"),
        ("protocols", "linear probe"),
        ("poolings", "mean+max+std"),
        ("datasets", "synthetic"),
        ("suites", "smoke"),
    ],
)
def test_list(kind, word):
    assert word in dicot("list", kind)


def test_what_was_registered_is_listed_even_without_a_docstring(monkeypatch):
    from dicot.judge.protocols import PROTOCOLS, LinearProbe
    from dicot.model.embedding import POOLINGS
    from dicot.nets.encoders import ENCODERS, FCN

    class Plain(FCN):
        pass

    Plain.__doc__ = None
    monkeypatch.setitem(ENCODERS, "toy_encoder", Plain)
    monkeypatch.setitem(POOLINGS, "toy_pooling", POOLINGS["max"])
    monkeypatch.setitem(PROTOCOLS, "toy_protocol", LinearProbe)
    for kind in ("encoder", "pooling", "protocol"):
        assert f"toy_{kind}" in dicot("list", f"{kind}s")


def test_an_unknown_list_is_answered_with_the_closest():
    with pytest.raises(DicotError, match="'encoders'"):
        dicot("list", "encoder")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pretrain", "GunPont", "--out", "m"], "'GunPoint'"),
        (["pretrain", "synthetic", "--out", "m", "--method", "di-cot"], "'dicot'"),
        (["pretrain", "none.npz", "--out", "m"], "none.npz"),
        (["pretrain", "synthetic", "--out", "m", "--set", "k"], "name=value"),
        (["pretrain", "synthetic", "--out", "m", "--label", "y"], "synthetic"),
        (["pretrain", "synthetic", "--out", "m", "--family", "uae"], "uae"),
        (["embed", "nowhere", "synthetic", "--out", "v.npz"], "nowhere"),
        (["embed", "nowhere", "synthetic", "--out", "v.doc"], "'.doc'"),
        (["evaluate", "synthetic", "--protocols", "liner"], "'linear'"),
        (["evaluate", "synthetic", "--seeds", "one"], "--seeds"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_end_with_exit_code_one_and_a_sentence(words, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dicot", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []  # nothing is left half-written


def called(monkeypatch, *words: object) -> int:
    """The exit code of `dicot WORDS` as the shell calls it."""
    monkeypatch.setattr(sys, "argv", ["dicot", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code or 0


@pytest.mark.parametrize(
    ("words", "said", "unsaid"),
    [
        (["pretrain", "short.npz"], "--unequal pad, crop or resample", "unequal="),
        (["pretrain", "gaps.npz"], "--missing interpolate or --missing zero", "missing="),
        (["pretrain", "sound.npz", "--steps", "-1"], "--steps must be", " steps must be"),
        (["pretrain", "sound.npz", "--batch-size", "0"], "--batch-size must be", "batch_size"),
        (["pretrain", "sound.npz", "--lr", "nan"], "--lr must be", " lr must be"),
        (["pretrain", "sound.npz", "--seed", "-1"], "--seed must be", "random_state"),
        (["pretrain", "sound.npz", "--dim", "0"], "--dim must be", " dim must be"),
        (["evaluate", "table.csv", "--case", "who"], "--time", "time="),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_name_options_not_parameters(words, said, unsaid, monkeypatch, capsys, tmp_path, waves):
    monkeypatch.chdir(tmp_path)
    gaps, short = waves.x.copy(), waves.x.copy()
    gaps[0, 0, 3], short[0, :, 20:] = np.nan, np.nan
    for name, x in (("sound", waves.x), ("gaps", gaps), ("short", short)):
        np.savez(f"{name}.npz", X=x)
    (tmp_path / "table.csv").write_text("who,when,value\n1,1,1\n")
    assert called(monkeypatch, *words, *(["--out", "m"] if words[0] == "pretrain" else [])) == 1
    message = capsys.readouterr().err
    assert said in message and unsaid not in message


@pytest.mark.filterwarnings("default")
def test_warnings_are_lines_that_name_options(monkeypatch, capsys, tmp_path, waves):
    np.save(tmp_path / "turned.npy", waves.x.transpose(0, 2, 1))
    pretrain = ["pretrain", tmp_path / "turned.npy", *QUICK, "--out"]
    assert called(monkeypatch, *pretrain, tmp_path / "m") == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "layout" in line]
    assert line.startswith("Warning: ") and "32 channels of 2 time steps" in line and "--layout ntc" in line
    assert called(monkeypatch, *pretrain, tmp_path / "n", "--layout", "ntc") == 0
    assert "Warning" not in capsys.readouterr().err


def test_a_file_with_missing_labels_can_be_trained_on(tmp_path, waves):
    labels = np.where(np.arange(24) < 4, np.nan, waves.y)
    np.savez(tmp_path / "some.npz", X=waves.x, y=labels)
    assert "trained" in dicot("pretrain", tmp_path / "some.npz", *QUICK, "--out", tmp_path / "m")
    assert "trained" in dicot(
        "pretrain", tmp_path / "some.npz", *QUICK, "--method", "supervised", "--out", tmp_path / "s"
    )
    np.savez(tmp_path / "none.npz", X=waves.x, y=np.full(24, ""))
    with pytest.raises(DicotError, match="none of the 24 cases"):
        dicot("pretrain", tmp_path / "none.npz", *QUICK, "--method", "supervised", "--out", tmp_path / "t")


def test_a_wrong_call_ends_with_exit_code_two(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dicot", "pretrain"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2


def test_version():
    assert dicot("--version") == f"dicot {__version__}\n"
    module = [sys.executable, "-m", "dicot", "--version"]
    assert subprocess.run(module, capture_output=True, text=True, check=True).stdout == f"dicot {__version__}\n"


def test_help_is_light():
    """Neither torch nor scikit-learn is loaded; the time itself depends on the machine and is not tested."""
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
