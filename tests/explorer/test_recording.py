"""The large view's side of the server: levels of detail, tiles, and ranges that give windows their labels."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.explorer.recording import FACTOR, FIRST, TILE, Detail, runs
from dicot.explorer.workspace import ExplorerWorkspace, open_workspace
from dicot.store.series import Track
from tests.explorer.conftest import client_of


def unpacked(tile: bytes, level: int, n_channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return times (1 or 2, n) and values (1 or 2, C, n) of a tile."""
    kinds = 1 if level == 0 else 2
    n = len(tile) // (kinds * (8 + 4 * n_channels))
    times, values = np.frombuffer(tile[: 8 * kinds * n], "<f8"), np.frombuffer(tile[8 * kinds * n :], "<f4")
    return times.reshape(kinds, n), values.reshape(kinds, n_channels, n)


@pytest.mark.parametrize("n", [50, TILE, TILE + 1, 70_001])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_level_holds_the_extremes_of_its_bins(n: int, kind: Any) -> None:
    rng = np.random.default_rng(n)
    values = rng.normal(size=(3, n)).astype(kind) + (1e9 if kind is np.float64 else 0)
    values[1, n // 3 : n // 2] = np.nan
    times = np.arange(n) / 50 + np.where(np.arange(n) > n // 2, 100, 0)  # a gap
    detail = Detail(Track(times, values, ("a", "b", "c"), 50.0))
    about = detail.about()
    assert about["counts"][0] == n and about["counts"][-1] <= TILE and about["end"] == times[-1] + 0.02
    whole = np.nanmin(values, axis=1), np.nanmax(values, axis=1)
    np.testing.assert_allclose(np.add([about["low"], about["high"]], detail.offset), whole, rtol=1e-12, atol=1e-6)
    for level, size in enumerate(about["sizes"]):
        assert size == (1 if level == 0 else FIRST * FACTOR ** (level - 1))
        tiles = [unpacked(detail.tile(level, t), level, 3) for t in range(-(-about["counts"][level] // TILE))]
        first, last = np.concatenate([t for t, _ in tiles], axis=1)[[0, -1]]
        low, high = np.concatenate([v for _, v in tiles], axis=2)[[0, -1]]
        starts = np.arange(0, n, size)
        np.testing.assert_array_equal(first, times[starts])
        np.testing.assert_array_equal(last, times[np.minimum(starts + size, n) - 1])
        for got, extreme in ((low, np.fmin), (high, np.fmax)):
            wanted = extreme.reduceat(values, starts, axis=1) - detail.offset[:, None]
            np.testing.assert_allclose(got, wanted, atol=1e-6)  # NaN where a bin has no value at all


def test_runs_are_stretches_of_windows_that_are_called_the_same() -> None:
    start = np.array([0.0, 1, 2, 3, 10, 11])  # two seconds each, half of them shared; then a gap
    names = np.array(["walk", "walk", "run", "", "run", "run"])
    order = [4, 2, 0, 5, 1, 3]
    found = runs(start[order], start[order] + 2, names[order])
    assert found == [(0.0, 2.5, "walk"), (2.5, 3.5, "run"), (10.0, 13.0, "run")]
    assert runs(start[:0], start[:0], names[:0]) == []


def test_a_recording_comes_in_tiles(client: Any, folder: Path) -> None:
    assert client.get("/api/about").json()["recordings"] is True
    names = client.get("/api/recordings").json()["recordings"]
    assert [one["name"] for one in names] == ["ann", "bob", "eve"] and not any(one["lost"] for one in names)
    about = client.get("/api/recordings/1").json()
    assert about["channels"] == ["x", "y"] and about["rate"] == 50 and about["origin"] is None
    assert about["counts"] == [1100] and about["start"] == 0 and about["end"] == pytest.approx(24)
    times, values = unpacked(client.get("/api/recordings/1/tile?level=0&tile=0").content, 0, 2)
    rows = list(csv.DictReader((folder / "recordings" / "bob.csv").read_text().splitlines()))
    np.testing.assert_allclose(times[0], [float(row["time"]) for row in rows])
    np.testing.assert_allclose(values[0, 0], [float(row["x"]) for row in rows], atol=1e-5)
    assert np.isnan(values[0, 1, 7])


def change(client: Any, number: int, before: Any, after: Any, label: Any) -> Any:
    spans = [None if span is None else {"start": span[0], "end": span[1]} for span in (before, after)]
    return client.post(f"/api/recordings/{number}/ranges", json={"before": spans[0], "after": spans[1], "label": label})


def test_windows_take_labels_from_ranges_and_undo_takes_each_step_back(
    client: Any, workspace: ExplorerWorkspace
) -> None:
    known, ann = workspace.known, workspace.known.recording == "ann"

    def labelled() -> set[int]:
        return set(map(int, client.get("/api/labels").json()["labels"]))

    def inside(first: float, last: float) -> set[int]:
        shared = np.minimum(known.end, last) - np.maximum(known.start, first)
        return set(np.flatnonzero(ann & (shared > (known.end - known.start) / 2 + 1e-6)).tolist())

    answer = change(client, 0, None, (-5, 6.25), " walk ").json()
    assert answer["ranges"] == [[0, 6.25, "walk"]]  # cut to the recording
    assert answer["windows"] == [[0, 6.5, "walk"]] and answer["names"] == ["walk"]
    assert labelled() == inside(0, 6.25) and len(labelled()) == 6
    answer = change(client, 0, (0, 6.25), (3, 6.25), "walk").json()
    assert answer["ranges"] == [[3, 6.25, "walk"]] and labelled() == inside(3, 6.25)
    change(client, 0, (3, 6.25), (3, 6.25), "run")
    assert client.get("/api/recordings/0/ranges").json()["ranges"] == [[3, 6.25, "run"]]
    assert client.get("/api/recordings/1/ranges").json()["ranges"] == []
    change(client, 0, (3, 6.25), None, None)
    assert labelled() == set()
    for expected in ([[3, 6.25, "run"]], [[3, 6.25, "walk"]], [[0, 6.25, "walk"]], []):
        assert client.post("/api/undo").json()["any"] is True
        assert client.get("/api/recordings/0/ranges").json()["ranges"] == expected
    assert client.post("/api/undo").json()["any"] is False


def test_predictions_lie_along_the_recording(client: Any, workspace: ExplorerWorkspace) -> None:
    assert client.get("/api/recordings/0/ranges").json()["predictions"] == []
    predicted = np.where(workspace.known.start < 11.5, "walk", "run")
    found = workspace.whole().said(2, predicted)["predictions"]
    assert found == [(0, 12.5, "walk"), (12.5, 24, "run")]


def test_ranges_are_exported_as_a_table_and_for_label_studio(client: Any) -> None:
    assert client.get("/api/ranges/csv").status_code == 422  # there are none
    change(client, 2, None, (1.5, 4), "walk")
    rows = list(csv.DictReader(io.StringIO(client.get("/api/ranges/csv").text)))
    assert [(row["recording"], row["start"], row["end"], row["label"]) for row in rows] == [
        ("eve", "1.5", "4.0", "walk")
    ]
    assert "walk" in json.dumps(client.get("/api/ranges/json").json())
    assert client.get("/api/ranges/xml").status_code == 422


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("recordings/3", "0 to 2"),
        ("recordings/-1", "0 to 2"),
        ("recordings/ann", "integer"),
        ("recordings/0/tile?level=1&tile=0", "level 1"),
        ("recordings/0/tile?level=0&tile=1", "tile 1"),
        ("recordings/0/tile?level=0&tile=-1", "tile -1"),
        ("recordings/9/ranges", "0 to 2"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(client: Any, path: str, word: str) -> None:
    answer = client.get(f"/api/{path}")
    assert answer.status_code == 422 and word in answer.json()["detail"]
    assert client.get(f"/api/{path}", headers={"X-Dicot-Token": "guess"}).status_code == 403


def test_a_range_that_is_none_is_refused_and_nothing_is_written(client: Any, workspace: ExplorerWorkspace) -> None:
    for before, after, label, word in (
        (None, (3, 3), "walk", "ends after it starts"),
        (None, (30, 40), "walk", "from 0 to 24 s"),
        (None, (1, 2), None, "has a label"),
        ((1, 2), None, "walk", "has none"),
        (None, None, None, "has none"),
        ((1, 2), (1, 3), "walk", "Load the page again"),
        (None, (1, 2), "-1", "not -1"),
    ):
        answer = change(client, 0, before, after, label)
        assert answer.status_code == 422 and word in answer.json()["detail"], answer.text
    endless = '{"before": null, "after": {"start": 0, "end": Infinity}, "label": "walk"}'
    for body in (endless, '{"before": null, "after": {"start": 0, "end": 1, "path": "x"}, "label": "walk"}'):
        assert client.post("/api/recordings/0/ranges", content=body).status_code == 422
    assert workspace.labels.given().ranges == {}


def test_without_recordings_there_is_no_large_view(folder: Path) -> None:
    client = client_of(open_workspace(folder / "vectors.npz"))
    assert client.get("/api/about").json()["recordings"] is False
    answer = client.get("/api/recordings")
    assert answer.status_code == 422 and "--data" in answer.json()["detail"]
