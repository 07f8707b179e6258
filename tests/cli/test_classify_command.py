"""A label for every window from a few, and how far it can be trusted."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot import FewLabelClassifier, LabelStore, honest_accuracy
from dicot.core.errors import InputError, WrongCallError

N = 90


def write(path: Path, **more: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of windows of three recordings, and which of two classes each is of."""
    rng = np.random.default_rng(0)
    truth = np.array(["run", "walk"])[rng.integers(2, size=N)]
    x = (rng.normal(size=(N, 5)) + 1.5 * (truth == "run")[:, None]).astype(np.float32)
    start = np.arange(N) // 3 * 0.1
    recording = np.array(["mon", "tue", "wed"])[np.arange(N) % 3]
    np.savez(path, X=x, recording=recording, start=start, end=start + 0.3, **more)
    return x, truth


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def some(truth: np.ndarray) -> np.ndarray:
    return np.where(np.arange(N) < 24, truth, "")


def test_predictions_and_accuracy_are_those_of_the_library(tmp_path: Path) -> None:
    vectors, store, out = tmp_path / "v.npz", tmp_path / "labels.sqlite", tmp_path / "p.csv"
    x, truth = write(vectors)
    y, data = some(truth), np.load(vectors)
    keys = list(zip(data["recording"].tolist(), data["start"].tolist(), data["end"].tolist(), strict=True))
    with LabelStore(store) as kept:
        kept.set(keys[:24], y[:24].tolist())
        kept.export(tmp_path / "labels.csv")
    said = dicot("classify", vectors, "--labels", store, "--out", out)
    model = FewLabelClassifier().fit(x, y)
    told = honest_accuracy(x, y, data["recording"], suggested=True, group_name="recording")
    assert "held out by recording." in said
    assert str(told) in said and all(warning in said for warning in told.warnings)
    assert "whole recordings" in said and "not drawn at random" in said
    got = table(out)
    assert list(got[0]) == ["recording", "start", "end", "given", "predicted", "p_run", "p_walk"]
    assert [row["given"] for row in got] == y.tolist()
    assert [row["predicted"] for row in got] == model.transduction_.tolist()
    chances = np.array([[float(row["p_run"]), float(row["p_walk"])] for row in got])
    np.testing.assert_array_equal(chances, model.label_distributions_)
    before = out.read_bytes()
    dicot("classify", vectors, "--labels", tmp_path / "labels.csv", "--out", out, "--overwrite")
    assert out.read_bytes() == before, "the exported table says the same as the store"


def test_labels_of_the_vectors_themselves(tmp_path: Path) -> None:
    x, truth = write(tmp_path / "plain.npz")
    y, group = np.where(np.arange(N) < 40, truth == "run", -1), np.arange(N) % 5
    write(tmp_path / "v.npz", y=y, group=group)
    said = dicot("classify", tmp_path / "v.npz", "--drawn", "--out", tmp_path / "p.csv")
    assert str(honest_accuracy(x, y, group)) in said
    assert "whole groups" in said and "not drawn at random" not in said
    got = table(tmp_path / "p.csv")
    assert list(got[0])[3:] == ["group", "given", "predicted", "p_0", "p_1"]
    assert [row["given"] for row in got] == ["" if label == -1 else str(label) for label in y]
    assert all(row["predicted"] == row["given"] for row in got[:40])


def test_whole_numbers_stay_whole_beside_unknown_ones(tmp_path: Path) -> None:
    _, truth = write(tmp_path / "plain.npz")
    write(tmp_path / "v.npz", y=np.where(np.arange(N) < 40, 3.0 + (truth == "run"), np.nan))
    dicot("classify", tmp_path / "v.npz", "--out", tmp_path / "p.csv")
    got = table(tmp_path / "p.csv")
    assert {"p_3", "p_4"} < got[0].keys()
    assert {row["given"] for row in got} == {"", "3", "4"} and {row["predicted"] for row in got} == {"3", "4"}


def test_what_cannot_be_known_is_said(tmp_path: Path) -> None:
    lines = ["mon,0,0.3,run", "tue,0,0.3,walk"]
    write(tmp_path / "v.npz")
    (tmp_path / "l.csv").write_text("recording,start,end,label\n" + "\n".join(lines))
    said = dicot("classify", tmp_path / "v.npz", "--labels", tmp_path / "l.csv")
    assert "not known" in said and "Warning: Only one label of classes 'run', 'walk'" in said
    _, truth = write(tmp_path / "v.npz")
    people, mine = np.where(np.arange(N) % 3 < 2, "ann", "bob"), np.where(np.arange(N) % 3 < 2, some(truth), "")
    write(tmp_path / "v.npz", group=people, y=mine)  # two recordings of ann have labels: these are held out whole
    said = dicot("classify", tmp_path / "v.npz")
    assert "of one group: nothing is known of other groups" in said and "held out by recording" in said


def test_the_accuracy_need_not_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, truth = write(tmp_path / "plain.npz")
    write(tmp_path / "v.npz", y=some(truth))
    head, out = tmp_path / "head.safetensors", tmp_path / "p.csv"
    dicot("classify", tmp_path / "v.npz", "--save", head, "--out", out)
    before = head.read_bytes(), out.read_bytes()
    monkeypatch.setattr("dicot.use.labels.accuracy._guesses", lambda *_: pytest.fail("it was measured"))
    call = ("classify", tmp_path / "v.npz", "--save", head, "--out", out, "--overwrite", "--no-accuracy")
    said = dicot(*call)
    assert "The accuracy was not measured (--no-accuracy)." in said and "interval" not in said
    assert "recall" not in said and "given" in said and "Warning" not in said
    assert (head.read_bytes(), out.read_bytes()) == before, "the classifier and its answers are the same"
    with pytest.raises(WrongCallError, match="--drawn is for the accuracy, which --no-accuracy does not measure"):
        dicot(*call, "--drawn")


def test_the_sentences_are_those_of_a_shell(tmp_path: Path) -> None:
    _, truth = write(tmp_path / "plain.npz")
    write(tmp_path / "one.npz", y=np.where(np.arange(N) < 9, "run", ""))
    with pytest.raises(InputError) as refused:
        dicot("classify", tmp_path / "one.npz")
    message = str(refused.value)
    assert "needs labels of at least 2 classes; got 9 label(s) of 1 class: 'run'" in message
    assert "n_samples" not in message and "FewLabelClassifier" not in message
    write(tmp_path / "some.npz", y=some(truth))
    said = " ".join(dicot("classify", tmp_path / "some.npz").split())
    assert "where these were drawn, say --drawn" in said and "estimated share of the cases without a label" in said
    write(tmp_path / "all.npz", y=truth)
    said = " ".join(dicot("classify", tmp_path / "all.npz").split())
    assert "Accuracy" in said or "Macro-F1" in said
    assert "drawn" not in said and "chosen" not in said and "without a label" not in said


def test_a_parquet_of_predictions(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    _, truth = write(tmp_path / "plain.npz")
    write(tmp_path / "v.npz", y=some(truth))
    dicot("classify", tmp_path / "v.npz", "--out", tmp_path / "p.parquet")
    read = parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert read["given"] == [label or None for label in some(truth)]
    np.testing.assert_allclose(np.add(read["p_run"], read["p_walk"]), 1)


def test_labels_on_other_windows_are_counted(tmp_path: Path) -> None:
    _, truth = write(tmp_path / "v.npz")
    rows = [f"{('mon', 'tue', 'wed')[i % 3]},{i // 3 * 0.1:.4f},{i // 3 * 0.1 + 0.3:.4f},{truth[i]}" for i in range(9)]
    (tmp_path / "l.csv").write_text("recording,start,end,label\n" + "\n".join([*rows, "sun,0,1,run"]))
    said = dicot("classify", tmp_path / "v.npz", "--labels", tmp_path / "l.csv")
    assert "1 of 10 label(s)" in said and "('sun', 0.0, 1.0)" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recording,start,label\nmon,0,run\n", r"l\.csv: line 1 has no column 'end'"),
        ("recording,start,end,label\nmon,0,0.3,run\nmon,noon,1,run\n", r"l\.csv: line 3 has 'noon' as 'start'"),
        ("recording,start,end,label\nmon,0,0.3,run\nmon,0,0.3,walk\n", r"l\.csv: line 3 .*'walk', and one above 'run'"),
        ("recording,start,end,label\nmon,0,0.3\n", r"l\.csv: line 2 has more or fewer cells"),
        ("recording,start,end,label\n,0,0.3,run\n", r"l\.csv: line 2 names no recording"),
        ("recording,start,end,label\nmon,0,0.3,run\n", r"l\.csv: .* at least 2 classes"),
        ("recording,start,end,label\nsun,0,0.3,run\n", r"1 of 1 label\(s\) of .*l\.csv are on no window of .*v\.npz"),
        ("recording,start,end,label\nmon,0,0.3,\n", r"l\.csv holds no labels"),
    ],
)
def test_a_wrong_table_of_labels_is_named_by_its_line(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path / "v.npz")
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        dicot("classify", tmp_path / "v.npz", "--labels", tmp_path / "l.csv", "--out", tmp_path / "p.csv")
    assert not (tmp_path / "p.csv").exists()


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    x, _ = write(tmp_path / "v.npz")
    np.savez(tmp_path / "bare.npz", X=x)
    np.savez(tmp_path / "amounts.npz", X=x, y=np.linspace(0.1, 0.9, N))
    (tmp_path / "l.csv").write_text("recording,start,end,label\nmon,0,0.3,run\n")
    for words, message in (
        (["v.npz"], r"v\.npz holds no labels.*--labels"),
        (["bare.npz", "--labels", "l.csv"], r"bare\.npz: it does not say recording"),
        (["v.npz", "--labels", "gone.csv"], r"There is no file .*gone\.csv"),
        (["v.npz", "--labels", "gone.sqlite"], r"There is no file .*gone\.sqlite"),
        (["amounts.npz"], r"amounts\.npz: Unknown label type: continuous"),
        (["v.npz", "--labels", "l.csv", "--out", "p.txt"], r"'\.txt'; write"),
    ):
        named = [str(tmp_path / word) if "." in word else word for word in words]
        with pytest.raises(InputError, match=message):
            dicot("classify", *named)
