"""The large view's side of the server: levels of detail, tiles, and ranges that give windows their labels."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicot.explorer.recording import TILE, Detail, runs
from dicot.explorer.workspace import ExplorerWorkspace
from dicot.store.series import Track
from tests.commands import dicot


def unpacked(tile: bytes, level: int, n_channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return times (1 or 2, n) and values (1 or 2, C, n) of a tile."""
    kinds = 1 if level == 0 else 2
    n = len(tile) // (kinds * (8 + 4 * n_channels))
    times, values = np.frombuffer(tile[: 8 * kinds * n], "<f8"), np.frombuffer(tile[8 * kinds * n :], "<f4")
    return times.reshape(kinds, n), values.reshape(kinds, n_channels, n)


@pytest.mark.parametrize(("n", "kind"), [(50, np.float32), (TILE + 1, np.float64), (70_001, np.float32)])
def test_every_level_holds_the_extremes_of_its_bins(n: int, kind: Any) -> None:
    values = np.random.default_rng(n).normal(size=(3, n)).astype(kind) + (1e9 if kind is np.float64 else 0)
    values[1, n // 3 : n // 2] = np.nan
    times = np.arange(n) / 50 + np.where(np.arange(n) > n // 2, 100, 0)  # a gap
    detail = Detail(Track(times, values, ("a", "b", "c"), 50.0))
    about = detail.about()
    assert about["counts"][0] == n and about["counts"][-1] <= TILE and about["end"] == times[-1] + 0.02
    for level, size in enumerate(about["sizes"]):
        tiles = [unpacked(detail.tile(level, t), level, 3) for t in range(-(-about["counts"][level] // TILE))]
        first, last = np.concatenate([t for t, _ in tiles], axis=1)[[0, -1]]
        starts = np.arange(0, n, size)
        np.testing.assert_array_equal(first, times[starts])
        np.testing.assert_array_equal(last, times[np.minimum(starts + size, n) - 1])
        ends = np.concatenate([v for _, v in tiles], axis=2)[[0, -1]]
        for got, extreme in zip(ends, (np.fmin, np.fmax), strict=True):
            wanted = extreme.reduceat(values, starts, axis=1) - detail.offset[:, None]
            np.testing.assert_allclose(got, wanted, atol=1e-6)  # NaN where a bin has no value at all


def test_runs_are_stretches_of_windows_that_are_called_the_same() -> None:
    start = np.array([0.0, 1, 2, 3, 10, 11])  # two seconds each, half of them shared; then a gap
    names = np.array(["walk", "walk", "run", "", "run", "run"])
    order = [4, 2, 0, 5, 1, 3]
    found = runs(start[order], start[order] + 2, names[order])
    assert found == [(0.0, 2.5, "walk"), (2.5, 3.5, "run"), (10.0, 13.0, "run")]


def test_a_recording_comes_in_tiles(client: Any, folder: Path) -> None:
    names = client.get("/api/recordings").json()["recordings"]
    assert names == [{"name": name, "lost": False} for name in ("ann", "bob", "eve")]
    about = client.get("/api/recordings/1").json()
    assert about["channels"] == ["x", "y"] and about["rate"] == 50 and about["counts"] == [1100]
    times, values = unpacked(client.get("/api/recordings/1/tile?level=0&tile=0").content, 0, 2)
    rows = list(csv.DictReader((folder / "recordings" / "bob.csv").read_text().splitlines()))
    np.testing.assert_allclose(times[0], [float(row["time"]) for row in rows])
    np.testing.assert_allclose(values[0, 0], [float(row["x"]) for row in rows], atol=1e-5)
    assert np.isnan(values[0, 1, 7])


def change(client: Any, number: int, before: Any, after: Any, label: Any, seen: Any = None) -> Any:
    """Change a range as the page does, which says what it shows: the ranges of now, or those `seen` before."""
    if seen is None:
        seen = client.get(f"/api/recordings/{number}/ranges").json()["ranges"]
    labels = {(start, end): name for start, end, name in seen}
    body: dict[str, Any] = {"before": None, "after": None, "label": label, "over": labels.get(after)}
    if before is not None:
        body["before"] = {"start": before[0], "end": before[1], "label": labels.get(before, "walk")}
    if after is not None:
        body["after"] = {"start": after[0], "end": after[1]}
    return client.post(f"/api/recordings/{number}/ranges", json=body)


def test_windows_take_labels_from_ranges_and_undo_takes_each_step_back(client: Any, folder: Path) -> None:
    def labelled() -> int:
        return len(client.get("/api/labels").json()["labels"])

    assert client.get("/api/ranges/csv").status_code == 422  # there are none
    answer = change(client, 0, None, (-5, 6.25), " walk ").json()
    assert answer["ranges"] == [[0, 6.25, "walk"]]  # cut to the recording
    assert answer["windows"] == [[0, 6.5, "walk"]] and labelled() == 6  # the last is covered by 1.25 of its 2 s
    answer = change(client, 0, (0, 6.25), (3, 6.25), "walk").json()
    assert answer["ranges"] == [[3, 6.25, "walk"]] and labelled() == 3
    refused = client.post("/api/labels", json={"rows": [4], "label": None})
    assert refused.status_code == 422 and "range" in refused.json()["detail"]
    change(client, 0, (3, 6.25), (3, 6.25), "=run")
    assert client.get("/api/recordings/1/ranges").json()["ranges"] == []
    (row,) = csv.DictReader(io.StringIO(client.get("/api/ranges/csv").text))
    assert (row["recording"], row["start"], row["end"], row["label"]) == ("ann", "3.0", "6.25", "'=run")
    assert "=run" in json.dumps(client.get("/api/ranges/json").json())
    change(client, 0, (3, 6.25), None, None)
    assert labelled() == 0
    for expected in ([[3, 6.25, "=run"]], [[3, 6.25, "walk"]], [[0, 6.25, "walk"]], []):
        assert client.post("/api/undo").json()["any"] is True
        assert client.get("/api/recordings/0/ranges").json()["ranges"] == expected
    assert client.post("/api/undo").json()["any"] is False


def test_what_is_not_there_is_refused_in_a_sentence(client: Any) -> None:
    numbers = {"recordings/3": "0 to 2", "recordings/-1/ranges": "0 to 2", "recordings/ann": "integer"}
    tiles = {"recordings/0/tile?level=1&tile=0": "level 1", "recordings/0/tile?level=0&tile=-1": "tile -1"}
    for path, word in {**numbers, **tiles, "ranges/xml": "csv"}.items():
        answer = client.get(f"/api/{path}")
        assert answer.status_code == 422 and word in answer.json()["detail"]


def test_a_range_that_is_none_is_refused_and_nothing_is_written(client: Any, workspace: ExplorerWorkspace) -> None:
    for before, after, label, word in (
        (None, (3, 3), "walk", "ends after it starts"),
        (None, (30, 40), "walk", "from 0 to 24 s"),
        ((1, 2), None, "walk", "has none"),
    ):
        answer = change(client, 0, before, after, label)
        assert answer.status_code == 422 and word in answer.json()["detail"], answer.text
    for more in ('"end": Infinity', '"end": 1, "path": "x"'):
        body = f'{{"before": null, "after": {{"start": 0, {more}}}, "label": "walk"}}'
        assert client.post("/api/recordings/0/ranges", content=body).status_code == 422
    assert workspace.labels.given().ranges == {}


def test_who_comes_second_to_a_range_is_told_and_changes_nothing(client: Any, workspace: ExplorerWorkspace) -> None:
    seen = change(client, 0, None, (1, 3), "walk").json()["ranges"]
    assert change(client, 0, (1, 3), (1, 4), "walk", seen).status_code == 200
    gone = change(client, 0, (1, 3), (2, 3), "walk", seen)
    assert gone.status_code == 409 and "from 1 to 3 s" in gone.json()["detail"], gone.text

    seen = change(client, 0, (1, 4), (1, 4), "run").json()["ranges"]  # the same place has another label
    assert change(client, 0, (1, 4), (1, 4), "rest", seen).status_code == 200
    for after, label in (((1, 5), "run"), ((1, 4), "walk"), (None, None)):
        renamed = change(client, 0, (1, 4), after, label, seen)
        assert renamed.status_code == 409 and "'rest'" in renamed.json()["detail"], renamed.text

    drawn_over = change(client, 0, None, (1, 4), "walk", [])  # a page on which there is no range yet
    assert drawn_over.status_code == 409
    (kept,) = workspace.labels.given().ranges.items()
    assert kept == (("ann", 1.0, 4.0), "rest")


def test_predictions_are_the_stretches_of_dicot_segment(workspace: ExplorerWorkspace, folder: Path) -> None:
    known = workspace.known
    middle = (known.start + known.end) / 2
    for label, rows in (("walk", [1, 8, 25]), ("run", [4, 15, 19, 38])):  # window 4 is in the midst of walking
        workspace.labels.set(rows, label)
    found = workspace.classify()
    assert found.label[known.recording == "ann"].tolist()[4] == "run" and middle[4] < 12
    words = ("--labels", workspace.labels.store, "--features", "vector", "--least", "2s")  # two windows
    dicot("segment", folder / "vectors.npz", "--out", folder / "s.csv", *words)
    told = pd.read_csv(folder / "s.csv")
    for number, name in enumerate(("ann", "bob", "eve")):
        own = told.loc[told["recording"] == name, ["start", "end", "label"]]
        assert workspace.along(number)["predictions"] == list(own.itertuples(index=False, name=None))
    assert workspace.along(0, 5.0)["predictions"][0][1] > 10, "a window alone is no stretch of five seconds"


def test_events_shorter_than_five_seconds_stay_among_the_predictions(client: Any, workspace: ExplorerWorkspace) -> None:
    known = workspace.known  # windows of two seconds, one each second
    for label, rows in (("walk", [1, 2, 3, 6, 7, 8]), ("run", [15, 19, 38]), ("fall", [4, 5])):
        workspace.labels.set(rows, label)
    workspace.classify()

    def falls(query: str = "") -> list[list[Any]]:
        along = client.get(f"/api/recordings/0/ranges{query}").json()
        assert along["least"] == (float(query.partition("=")[2]) if query else 2.0)
        return [run for run in along["predictions"] if run[2] == "fall"]

    ((start, end, _),) = falls()
    assert start <= known.start[5] and known.end[4] <= end and end - start < 5
    assert falls("?least=5") == [], "five seconds swallow it, and who wants that can have it"
    assert falls("?least=1") == [[start, end, "fall"]]
    for wrong in ("0", "-1", "inf", "x"):
        assert client.get(f"/api/recordings/0/ranges?least={wrong}").status_code == 422
