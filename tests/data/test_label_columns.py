"""Columns of labels in tables: several of them, those that look like a second label, and files that have none."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile
from tests.commands import dicot

from dicot.core.errors import DicotWarning, InputError
from dicot.data import Windows, inspect_recordings
from dicot.data.readers import read_recording
from dicot.store.embedding import embed_recordings
from dicot.store.folder import Corpus
from dicot.store.vectors import read_vectors

N_ROWS = 400


def write_machine(path: Path, **columns: np.ndarray) -> Path:
    """Two sensors of a machine at 1 Hz, and further columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(len(path.name)).normal(size=(N_ROWS, 2)).round(4)
    table = {"time": np.arange(N_ROWS), "current": noise[:, 0], "pressure": noise[:, 1], **columns}
    rows = [",".join(str(value) for value in row) for row in zip(*table.values(), strict=True)]
    path.write_text(",".join(table) + "\n" + "\n".join(rows) + "\n")
    return path


ANOMALY = (np.arange(N_ROWS) > 300).astype(int)
CHANGE = (np.isin(np.arange(N_ROWS), [301, 302, 390])).astype(int)
LABELLED = {"label": "anomaly", "time": "time"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        write_machine(tmp_path / "rec" / f"{name}.csv", anomaly=ANOMALY, changepoint=CHANGE)
    return tmp_path / "rec"


def channels_of(source: Path, **options: object) -> tuple[str, ...]:
    channels = Windows.from_folder(source, 20, **{**LABELLED, **options}).channels
    assert channels is not None
    return channels


def test_a_second_label_is_asked_about_and_each_remedy_works(folder: Path) -> None:
    with pytest.raises(InputError, match="'changepoint' holds 0, 1") as caught:
        channels_of(folder)
    message = str(caught.value)
    assert "--ignore changepoint" in message
    assert "--channels current,pressure,changepoint" in message
    assert channels_of(folder, ignore=["changepoint"]) == ("current", "pressure")
    assert channels_of(folder, label="anomaly,changepoint") == ("current", "pressure")
    asked_for = ["current", "pressure", "changepoint"]
    assert channels_of(folder, channels=asked_for) == tuple(asked_for)


def test_the_first_of_several_labels_is_the_label(folder: Path) -> None:
    both = Windows.from_folder(folder, 20, label="anomaly, changepoint", time="time")
    one = Windows.from_folder(folder, 20, ignore=["changepoint"], **LABELLED)
    assert both.y is not None and one.y is not None
    assert both.y.tolist() == one.y.tolist()
    with pytest.raises(InputError, match="no column 'changepoin'. Did you mean 'changepoint'"):
        Windows.from_folder(folder, 20, label="anomaly,changepoin", time="time", channels=["current"])


def test_commands_take_columns_to_ignore(folder: Path) -> None:
    shown = dicot("inspect", folder, "--label", "anomaly", "--ignore", "changepoint")
    assert "2 channel(s): current, pressure" in shown
    assert "--ignore changepoint" in shown
    corpus = folder.parent / "corpus"
    dicot("corpus", "build", folder, "--window", 20, "--label", "anomaly,changepoint", "--workers", 1, "--out", corpus)
    assert Corpus.open(corpus).channels == ("current", "pressure")
    toml = folder / "dicot.toml"
    toml.write_text('window = 20\nlabel = "anomaly"\nignore = ["changepoint"]\n')
    assert "2 channel(s): current, pressure" in dicot("inspect", folder)


def test_what_is_ignored_must_be_a_column(folder: Path) -> None:
    with pytest.raises(InputError, match="no column 'changepiont'. Did you mean 'changepoint'"):
        channels_of(folder, ignore=["changepiont"])
    with pytest.raises(InputError, match="'anomaly' cannot be used and ignored"):
        channels_of(folder, ignore=["anomaly"])


def test_a_column_of_few_values_is_a_channel_where_nothing_says_label(tmp_path: Path) -> None:
    path = write_machine(tmp_path / "one.csv", valve=CHANGE)
    assert Windows.from_folder(path, 20, time="time").channels == ("current", "pressure", "valve")


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).integers(0, 4, N_ROWS),  # the noise of a sensor at rest
        np.where(ANOMALY, 0.25, 0.75),  # no class is called so
        np.full(N_ROWS, 3),
        np.arange(N_ROWS) // 20 % 17,  # too many values for a label
    ],
)
def test_a_coarse_measurement_is_no_second_label(tmp_path: Path, values: np.ndarray) -> None:
    path = write_machine(tmp_path / "one.csv", anomaly=ANOMALY, other=values)
    assert channels_of(path) == ("current", "pressure", "other")


def test_where_all_channels_are_coarse_none_is_a_label(tmp_path: Path) -> None:
    rows = [f"{row},{row // 100},{row // 50 % 2},{row // 200}" for row in range(N_ROWS)]
    (tmp_path / "switches.csv").write_text("time,left,right,anomaly\n" + "\n".join(rows) + "\n")
    assert channels_of(tmp_path / "switches.csv") == ("left", "right")


def test_files_without_the_column_of_labels_give_windows_without_a_label(folder: Path) -> None:
    write_machine(folder / "three.csv")
    write_machine(folder / "four.csv")
    options = {"ignore": ["changepoint"], **LABELLED}
    with pytest.warns(DicotWarning, match="2 of 4 recordings have no column 'anomaly'.*: four, three"):
        windows = Windows.from_folder(folder, 20, **options)
    assert windows.y is not None and windows.recording is not None
    known = {name: set(windows.y[windows.recording == name].tolist()) for name in set(windows.recording.tolist())}
    assert {"0", "1"} == {str(int(label)) for label in known["one"]}
    assert np.isnan(list(known["three"])).all()
    with pytest.warns(DicotWarning, match="2 of 4 recordings have no column 'anomaly'"):
        assert not any(row.problem for row in inspect_recordings(folder, **options))
    corpus = folder.parent / "corpus"
    words = ("--label", "anomaly", "--ignore", "changepoint", "--workers", 1, "--out", corpus)
    assert "2 of 4 recordings have no column" in dicot("corpus", "build", folder, "--window", 20, *words)
    assert len(Corpus.open(corpus)) == len(windows)


def test_new_files_without_labels_are_appended_to_vectors_with_them(folder: Path) -> None:
    out = folder.parent / "v.parquet"
    options = {"window": 20, "ignore": ["changepoint"], **LABELLED}

    def embed(append: bool) -> int:
        return embed_recordings(lambda windows: windows.x.mean(axis=2), "m", out, folder, options, append=append).added

    embed(append=False)
    write_machine(folder / "new.csv")
    with pytest.warns(DicotWarning, match="1 of 1 recordings have no column 'anomaly'.*: new"):
        assert embed(append=True) == 39
    vectors = read_vectors(out)
    assert vectors.label is not None and vectors.recording is not None
    assert not set(vectors.label[vectors.recording == "new"].tolist()) & {0, 1, "0", "1"}


def test_a_label_that_no_file_has_is_refused_with_what_may_be_meant(folder: Path) -> None:
    for call in (
        lambda: Windows.from_folder(folder, 20, label="anomly", ignore=["changepoint"]),
        lambda: read_recording(folder / "one.csv", label="anomly", ignore=["changepoint"]),
        lambda: inspect_recordings(folder, label="anomly", ignore=["changepoint"]),
    ):
        with pytest.raises(InputError, match="no column 'anomly'. Did you mean 'anomaly'"):
            call()


def test_signals_are_ignored_by_name_as_columns_are(tmp_path: Path) -> None:
    wavfile.write(tmp_path / "sound.wav", 100, np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32))
    options = {"window": 50, "ignore": ["channel 1"]}
    assert Windows.from_folder(tmp_path / "sound.wav", **options).channels == ("channel 0", "channel 2")
    np.savez(tmp_path / "matrix.npz", X=np.random.default_rng(0).normal(size=(3, 400)), rate=100)
    assert Windows.from_folder(tmp_path / "matrix.npz", **options).channels == ("channel 0", "channel 2")
    with pytest.raises(InputError, match="no column 'channel 7'"):
        Windows.from_folder(tmp_path / "sound.wav", 50, ignore=["channel 7"])


def next_command(said: str) -> str:
    return " ".join(said.partition("Next: ")[2].split())


def test_inspect_names_columns_like_labels_and_its_next_command_keeps_them_out_of_the_channels(folder: Path) -> None:
    said = dicot("inspect", folder)
    sentence = "anomaly and changepoint hold only 0 and 1. If they are labels, say --label anomaly,changepoint; "
    assert sentence + "if they are nothing, --ignore anomaly,changepoint." in " ".join(said.split())
    assert "--label anomaly,changepoint" in next_command(said)
    for decided in (["--label", "anomaly,changepoint"], ["--channels", "current"], ["--ignore", "anomaly,changepoint"]):
        assert "hold only" not in dicot("inspect", folder, *decided)

    dicot("inspect", folder, "--write")
    toml = (folder / "dicot.toml").read_text()
    assert 'label = "anomaly,changepoint"' in toml and 'channels = ["current", "pressure"]' in toml
    assert "# all columns of numbers, but for what looks like a label" in toml


def test_a_label_that_never_changes_in_some_recordings_is_seen_over_all_of_them(tmp_path: Path) -> None:
    write_machine(tmp_path / "normal.csv", anomaly=np.zeros(N_ROWS, int))
    write_machine(tmp_path / "broken.csv", anomaly=np.ones(N_ROWS, int))
    assert "anomaly holds only 0 and 1. If it is a label, say --label anomaly" in dicot("inspect", tmp_path)


def test_readings_of_a_coarse_sensor_are_not_taken_for_labels(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 4, N_ROWS)
    write_machine(tmp_path / "one.csv", coarse=noise, constant=np.full(N_ROWS, 3), counted=np.arange(N_ROWS) // 20 % 17)
    said = dicot("inspect", tmp_path)
    assert "hold" not in said.partition("channel(s)")[2].partition("window")[0] and "--label" not in next_command(said)


def test_inspect_names_a_column_of_words_as_the_label(tmp_path: Path) -> None:
    for name, activity in (("one", "walk"), ("two", "sit")):
        whose = np.full(N_ROWS, name)
        write_machine(tmp_path / f"{name}.csv", activity=np.full(N_ROWS, activity), subject=whose)
    said = dicot("inspect", tmp_path)
    assert "activity is a column of text with 2 values: --label activity gives each window its label." in said
    assert "--label activity" in next_command(said) and "subject is a column" not in said


def test_embedding_without_a_window_warns_of_columns_like_labels(folder: Path, tmp_path: Path) -> None:
    said = dicot("embed", folder, "--out", tmp_path / "v.parquet")
    assert "anomaly and changepoint hold only 0 and 1" in " ".join(said.split())
    assert "current, pressure, anomaly, changepoint" in said, "they stay channels"


def test_beside_a_table_of_labels_columns_like_labels_can_only_be_left_out(folder: Path) -> None:
    (folder / "labels.csv").write_text("file,label\none,good\ntwo,bad\n")
    said = dicot("inspect", folder)
    assert "anomaly and changepoint hold only 0 and 1. To keep labels out of the channels: --ignore" in said
    assert "--label" not in next_command(said)
