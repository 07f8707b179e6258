"""Nothing that is there is replaced without --overwrite, whichever command writes it."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot import LabelStore
from dicot.core.errors import InputError, WrongCallError
from dicot.store.vectors import read_vectors

MINE = b"three weeks of notes"
WHERE = ["--where", "label=walk"]

# Each command with a file of the user's, {mine}, where its output would go.
WRITERS = {
    "embed": ["embed", "walks", "--window", "1s", "--out", "mine.npz"],
    "embed, another suffix": ["embed", "walks", "--window", "1s", "--out", "mine.parquet"],
    "embed cases": ["embed", "cases.npz", "--out", "mine.npz"],
    "explore": ["explore", "v.npz", "--export", "mine.html"],
    "classify": ["classify", "v.npz", "--out", "mine.csv"],
    "classify, the classifier": ["classify", "v.npz", "--save", "mine.safetensors"],
    "predict": ["predict", "head.safetensors", "walks", "--out", "mine.parquet"],
    "predict, the ranges": ["predict", "head.safetensors", "walks", "--out", "p.parquet", "--ranges", "mine.csv"],
    "predict --append, the ranges": [
        *("predict", "head.safetensors", "walks", "--append", "--out", "p.parquet", "--ranges", "mine.csv")
    ],
    "outliers": ["outliers", "v.npz", "--out", "mine.csv"],
    "outliers, the page": ["outliers", "v.npz", "--plot", "mine.html"],
    "events": ["events", "walk", "v.npz", "--out", "mine.csv"],
    "events, the page": ["events", "walk", "v.npz", "--out", "events.csv", "--plot", "mine.html"],
    "segment": ["segment", "v.npz", "--out", "mine.csv"],
    "search": ["search", "v.npz", "--like", "0", "--plot", "mine.html"],
    "why": ["why", "v.npz", "0", "--plot", "mine.html"],
    "monitor": ["monitor", "v.npz", "v.npz", "--out", "mine.html"],
    "export": ["export", "dicot-base", "--onnx", "mine.onnx"],
    "export, the runner": ["export", "dicot-base", "--onnx", "base.onnx", "--runner", "mine.py"],
    "vectors select": ["vectors", "select", "v.npz", *WHERE, "--out", "mine.npz"],
    "label export": ["label", "export", "labels.sqlite", "--out", "mine.csv"],
    "label check": ["label", "check", "v.npz", "--out", "mine.csv"],
    "evaluate": ["evaluate", "cases.npz", "--out", "mine"],
}


def write_walk(path: Path, n: int = 600) -> None:
    time = np.arange(n) / 50
    rows = [f"{t:.2f},{np.sin(9 * t):.4f},{'walk' if t < 6 else 'sit'}" for t in time]
    path.write_text("\n".join(["t,x,activity", *rows]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with recordings, cases, vectors and files that only have to be there."""
    monkeypatch.chdir(tmp_path)
    Path("walks").mkdir()
    write_walk(Path("walks/monday.csv"))
    rng = np.random.default_rng(0)
    np.savez("cases.npz", X=rng.normal(size=(6, 1, 40)), y=np.arange(6) % 2)
    np.savez("v.npz", X=rng.normal(size=(6, 4)), y=np.array(["walk", "sit"] * 3))
    for name in ("head.safetensors", "labels.sqlite", "p.parquet"):
        Path(name).touch()
    return tmp_path


def their_output(words: list[str]) -> Path:
    return Path(next(word for word in words if word.startswith("mine")))


@pytest.mark.parametrize("name", WRITERS)
def test_no_command_replaces_what_is_there(name: str, folder: Path) -> None:
    words = WRITERS[name]
    mine = their_output(words)
    kept = mine
    if not mine.suffix:
        mine.mkdir()
        kept = mine / "notes.txt"
    kept.write_bytes(MINE)
    if "--append" not in words:
        Path("p.parquet").unlink()

    with pytest.raises(InputError, match=rf"{mine}.*--overwrite"):
        dicot(*words)
    assert kept.read_bytes() == MINE


@pytest.mark.parametrize("name", [name for name, words in WRITERS.items() if their_output(words).suffix])
def test_even_overwrite_does_not_replace_a_file_of_another_kind(name: str, folder: Path) -> None:
    """A page, a table or a model went into notes.txt where --overwrite was said for another file."""
    words = ["mine.txt" if word.startswith("mine") else word for word in WRITERS[name]]
    notes = Path("mine.txt")
    notes.write_bytes(MINE)
    Path("labels.sqlite").unlink()
    LabelStore("labels.sqlite").close()
    with pytest.raises(InputError, match=r"mine\.txt( has |: a ledger)"):
        dicot(*words, "--overwrite")
    assert notes.read_bytes() == MINE


def test_the_sentence_names_the_option_and_a_name_for_the_page(folder: Path) -> None:
    for words in (["explore", "v.npz", "--export", "notes.txt"], ["monitor", "v.npz", "v.npz", "--out", "notes.txt"]):
        with pytest.raises(
            WrongCallError, match=rf"{words[-2]} notes.txt has .*'\.txt'; .*: {words[-2]} notes\.html\."
        ):
            dicot(*words)


def test_a_training_leaves_the_weights_of_another_program_alone(folder: Path) -> None:
    Path("theirs").mkdir()
    weights = Path("theirs/model.safetensors")
    weights.write_bytes(MINE)
    with pytest.raises(InputError, match=r"theirs/model\.safetensors is there already.*--overwrite"):
        dicot("pretrain", "cases.npz", "--out", "theirs", "--device", "cpu")
    assert weights.read_bytes() == MINE


@pytest.mark.parametrize(
    "words",
    [
        ["segment", "v.parquet", "--out", "v.parquet"],
        ["vectors", "select", "v.npz", *WHERE, "--out", "v.npz"],
        ["classify", "v.npz", "--labels", "l.csv", "--out", "l.csv"],
    ],
    ids=lambda words: words[0],
)
def test_what_a_command_reads_is_never_replaced_by_what_it_writes(words: list[str], folder: Path) -> None:
    Path("v.parquet").touch()
    Path("l.csv").write_text("recording,start,end,label\n")
    before = {file: file.read_bytes() for file in Path().glob("*.*")}
    with pytest.raises(InputError, match="is read by this command"):
        dicot(*words, "--overwrite")
    assert {file: file.read_bytes() for file in Path().glob("*.*")} == before


def test_the_same_call_finds_its_vectors_up_to_date_and_others_ask(folder: Path) -> None:
    call = ["embed", "walks", "--window", "1s", "--label", "activity", "--out", "w.npz", "--device", "cpu"]
    dicot(*call)
    before = Path("w.npz").read_bytes()
    assert "w.npz is up to date" in dicot(*call)

    without_labels = ["embed", "walks", "--window", "1s", "--out", "w.npz", "--device", "cpu"]
    with pytest.raises(InputError, match=r"w\.npz is there already\. Say --overwrite .*--append"):
        dicot(*without_labels)
    Path("short").mkdir()
    write_walk(Path("short/monday.csv"), 200)
    with pytest.raises(InputError, match=r"w\.npz is there already"):
        dicot("embed", "short", "--window", "1s", "--out", "w.npz", "--device", "cpu")
    assert Path("w.npz").read_bytes() == before

    dicot(*without_labels, "--overwrite")
    assert read_vectors("w.npz").label is None
    with pytest.raises(InputError, match="Give one of them"):
        dicot(*call, "--append", "--overwrite")


def test_explore_makes_its_vectors_anew_only_where_nothing_is_lost(folder: Path) -> None:
    dicot("embed", "walks", "--window", "1s", "--label", "activity", "--out", "walks-vectors.npz", "--device", "cpu")
    before = Path("walks-vectors.npz").read_bytes()
    with pytest.raises(InputError, match=r"label=activity.*dicot explore walks-vectors\.npz.*--overwrite"):
        dicot("explore", "walks", "--window", "1s", "--export", "page.html")
    assert Path("walks-vectors.npz").read_bytes() == before

    Path("walks-vectors.npz").write_bytes(MINE)
    with pytest.raises(InputError, match=r"walks-vectors\.npz is there already, and not made of walks"):
        dicot("explore", "walks", "--window", "1s", "--export", "page.html")
    assert Path("walks-vectors.npz").read_bytes() == MINE
