"""The file that runs an exported model with numpy and onnxruntime alone answers as dicot does."""

import json
import os
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dicot import FewLabelClassifier, Stream, TimeSeriesEmbedder, Windows, export_onnx
from dicot.core.errors import InputError
from dicot.data.cutting import without_noise
from dicot.model.edge import EdgeStream, ExportedModel, SavedHead, length_in_steps, rounded_time
from dicot.model.export.runner import write_runner
from dicot.model.head import Neighbours
from tests.commands import dicot

RATE, WINDOW, CHANNELS = 50.0, 64, ("x", "y", "z")
ALONE = """
import sys
class OnlyTheseTwo:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('dicot', 'torch', 'scipy', 'sklearn', 'pandas', 'pyarrow', 'safetensors', 'onnx'):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, OnlyTheseTwo())
"""


def samples(n: int = 640) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, len(CHANNELS))).cumsum(axis=0)


def lines(values: np.ndarray, *, dated: bool = True) -> list[str]:
    head = ",".join(["time", *CHANNELS] if dated else CHANNELS)
    rows = [",".join(map(repr, row)) for row in values.tolist()]
    if dated:
        rows = [f"{at / RATE:.2f},{row}" for at, row in enumerate(rows)]
    return [head, *rows]


def as_text(content: list[str]) -> str:
    return "".join(f"{line}\n" for line in content)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, the model with a classifier inside, and classifiers with and without a graph."""
    folder = tmp_path_factory.mktemp("edge")
    windows = Windows.from_array(samples().T, window=WINDOW, stride=16, rate=RATE)
    model = TimeSeriesEmbedder(prepare={"scale": "dataset"}, random_state=0, device="cpu").fit(windows)
    vectors = model.transform(windows)
    labels = np.where(np.arange(len(vectors)) % 2, "walks", "stands")
    classifier = FewLabelClassifier().fit(vectors, labels)
    head = classifier.head_
    head.save(folder / "none.safetensors")
    # As a file of an earlier release has it, whose classifier spread labels over a graph.
    settled = np.eye(2)[(labels == "walks").astype(int)]
    graph = Neighbours((vectors - head.mean) * head.factor, settled, np.eye(vectors.shape[1]), 5, "guesses")
    replace(head, neighbours=graph).save(folder / "guesses.safetensors")
    export_onnx(model, folder / "model.onnx")
    export_onnx(model, folder / "classes.onnx", classifier=classifier)
    write_runner(folder / "run.py")
    return folder


def run_alone(folder: Path, *words: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process that finds numpy and onnxruntime, and none of the other packages."""
    (folder / "sitecustomize.py").write_text(ALONE)
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", [["run.py"], ["-m", "dicot", "stream"]], ids=["the runner", "dicot stream"])
def test_a_stream_ends_quietly_when_nobody_reads_its_lines_any_more(place: Path, words: list[str]):
    """As in `dicot stream model.onnx < samples.csv | head -1`."""
    (place / "samples.csv").write_text(as_text(lines(np.tile(samples(), (20, 1)))))
    with open(place / "samples.csv") as text:
        process = subprocess.Popen(
            [sys.executable, *words, "classes.onnx"],
            cwd=place,
            stdin=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    assert process.stdout is not None and process.stderr is not None
    assert json.loads(process.stdout.readline())["start"] == 0
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() == 141
    assert "Broken" not in said and "Error" not in said and "Traceback" not in said


def test_the_runner_answers_a_stream_where_only_numpy_and_onnxruntime_are_found(place: Path):
    text = as_text(lines(samples()))
    assert "No module named 'dicot'" in run_alone(place, "-c", "import dicot", text="").stderr
    done = run_alone(place, "run.py", "classes.onnx", text=text)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expected = Stream(place / "classes.onnx").push(samples(), np.arange(640) / RATE)
    assert len(answers) == len(expected) == 19
    for answer, window in zip(answers, expected, strict=True):
        assert (answer["start"], answer["end"], answer["label"]) == (window.start, window.end, window.label)
        np.testing.assert_array_equal(np.array(answer["vector"], np.float32), window.vector)


@pytest.mark.parametrize("head", ["none", "guesses"])
def test_a_saved_classifier_gives_the_probabilities_that_dicot_gives(head: str, place: Path):
    from dicot.model.head import Head

    file = place / f"{head}.safetensors"
    model = ExportedModel(place / "model.onnx")
    vectors = model.embed(np.stack([samples()[at : at + WINDOW].T for at in range(0, 500, 10)]))
    np.testing.assert_allclose(
        SavedHead(file).predict_proba(vectors), Head.load(file).predict_proba(vectors), atol=1e-9
    )
    answers = EdgeStream(model, head=SavedHead(file)).push(samples())
    expected = Stream(place / "model.onnx", head=file).push(samples())
    assert [answer.label for answer in answers] == [window.label for window in expected]


def test_the_runner_refuses_a_damaged_file_and_other_channels(place: Path, tmp_path: Path):
    for name, kind in (("model.onnx", ExportedModel), ("none.safetensors", SavedHead)):
        content = bytearray((place / name).read_bytes())
        content[-40] ^= 1
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name} is damaged"):
            kind(tmp_path / name)
    model = ExportedModel(place / "model.onnx")
    with pytest.raises(ValueError, match=r"takes \(cases, 3 channels, time steps\); got \(1, 2, 64\)"):
        model.embed(np.zeros((1, 2, 64)))
    with pytest.raises(ValueError, match="cannot use case 1"):
        model.embed(np.stack([samples(64).T, np.full((3, 64), np.nan)]))


def test_lengths_and_times_are_read_and_rounded_as_in_files():
    assert [length_in_steps(text, RATE, 64) for text in ("2.56s", "500ms", "50%", 12, "1min")] == [
        128,
        25,
        32,
        12,
        3000,
    ]
    for text, said in (("long", "no length"), ("0", "less than one time step")):
        with pytest.raises(ValueError, match=said):
            length_in_steps(text, RATE)
    times = np.concatenate([1.7e9 + np.arange(50) / 50, np.arange(50) / 3, [8.94 + 1 / 50]])
    for rate in (0.1, 50.0, 44_100.0):
        assert [rounded_time(time, rate) for time in times.tolist()] == without_noise(times, rate).tolist()


def test_the_command_writes_a_line_for_each_window(place: Path):
    expected = Stream(place / "model.onnx").push(samples(), np.arange(640) / RATE)
    output = dicot("stream", place / "model.onnx", "--no-vectors", stdin=as_text(lines(samples()))).splitlines()
    assert [json.loads(line) for line in output[:-1]] == [{"start": one.start, "end": one.end} for one in expected]
    assert output[-1] == "640 samples, 19 windows, 0 lines left out."


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("3,1", r"line 4 (3,1) has 2 values. Send 4, one for each of time, x, y, z."),
        ("3,1,oops,2", "line 4 (3,1,oops,2) has 'oops' in the column 'y'. Send a number."),
        ("soon,1,2,3", "'soon' in the column 'time'. Send seconds, or a date"),
        ("1,1,nan,3", "line 4 was refused: Time step 0 of this push has nan in channel 1."),
        ("0,1,2,3", "line 4 was refused: times must increase"),
    ],
)
def test_a_bad_line_is_named_and_left_out_where_there_are_time_stamps(line: str, said: str, place: Path):
    content = lines(samples(200))
    content.insert(3, line)
    words = ("stream", place / "model.onnx")
    output = dicot(*words, "--no-vectors", code=3, stdin=as_text(content))
    assert f"Left out: {said}" in output or said in output
    assert "200 samples, 5 windows, 1 lines left out." in output
    with pytest.raises(InputError, match="line 4"):
        dicot(*words, "--strict", stdin=as_text(content))


def test_a_bad_line_ends_a_stream_without_time_stamps(place: Path):
    content = lines(samples(200), dated=False)
    content.insert(3, "1,2")
    with pytest.raises(InputError, match=r"line 4 \(1,2\) has 2 values"):
        dicot("stream", place / "model.onnx", stdin=as_text(content))
    with pytest.raises(InputError, match="no first line"):
        dicot("stream", place / "model.onnx", stdin="")


def test_a_stream_goes_on_from_the_state_in_a_file(place: Path, tmp_path: Path):
    content = lines(samples())
    words = ("stream", place / "classes.onnx", "--state", tmp_path / "state.json", "--no-vectors")
    windows = []
    for part in (content[:300], [content[0], *content[300:]]):
        output = dicot(*words, stdin=as_text(part))
        windows += [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    expected = Stream(place / "classes.onnx").push(samples(), np.arange(640) / RATE)
    assert [window["start"] for window in windows] == [window.start for window in expected]
    (tmp_path / "state.json").write_text("nothing")
    with pytest.raises(InputError, match=r"state\.json holds no state"):
        dicot(*words)


def test_samples_come_from_a_socket_too(place: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(as_text(lines(samples())).encode())

        sender = threading.Thread(target=send)
        sender.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        output = dicot("stream", place / "model.onnx", "--connect", address, "--no-vectors")
        sender.join()
    assert "640 samples, 19 windows" in output


def test_export_writes_the_runner_beside_the_model(place: Path, tmp_path: Path):
    with pytest.raises(InputError, match="give the name of a .py file"):
        dicot("export", "dicot-base", "--onnx", tmp_path / "base.onnx", "--runner", tmp_path / "run")
    output = dicot("export", "dicot-base", "--onnx", tmp_path / "base.onnx", "--runner", tmp_path / "run.py")
    assert f"python {tmp_path / 'run.py'} {tmp_path / 'base.onnx'} < samples.csv" in output
    done = run_alone(
        tmp_path, "run.py", "base.onnx", "--window", "1.28s", "--rate", "50", text=as_text(lines(samples()))
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 19), done.stderr


def test_a_saved_classifier_brings_its_model_and_its_window(tmp_path: Path):
    folder = tmp_path / "recordings"
    folder.mkdir()
    for number in range(4):
        rows = lines(samples(300) * (number % 2 + 1))
        marked = [f"{rows[0]},state", *(f"{row},{'loud' if number % 2 else 'quiet'}" for row in rows[1:])]
        (folder / f"run{number}.csv").write_text(as_text(marked))
    vectors, head = tmp_path / "vectors.npz", tmp_path / "head.safetensors"
    dicot("embed", "dicot-base", folder, "--window", "1s", "--stride", "25", "--label", "state", "--out", vectors)
    dicot("classify", vectors, "--save", head)
    output = dicot("stream", head, "--no-vectors", stdin=as_text(lines(samples(300))))
    answers = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert [answer["start"] for answer in answers] == [0.5 * n for n in range(11)]
    assert {answer["label"] for answer in answers} <= {"loud", "quiet"}
    assert all(0.5 <= answer["probability"] <= 1 for answer in answers)
