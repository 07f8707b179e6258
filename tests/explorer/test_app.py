"""The explorer's HTTP interface: every question that the page asks, and what is refused."""

import base64
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot import LabelStore
from dicot.core.errors import InputError
from dicot.explorer.guard import LARGEST_BODY
from dicot.explorer.workspace import ExplorerWorkspace, open_workspace
from dicot.store.embedding import embed_recordings
from dicot.store.vectors import read_vectors, write_vectors
from tests.commands import dicot
from tests.explorer.conftest import PORT, TOKEN, client_of


def numbers(answer: Any, kind: str) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    return np.frombuffer(answer.content, kind)


def test_about_names_what_there_is(client: Any, workspace: ExplorerWorkspace) -> None:
    about = client.get("/api/about").json()
    assert about["n"] == len(workspace) and about["title"] == "vectors.npz"
    assert about["channels"] == ["x", "y"] and about["rate"] == 50 and about["series"] is True
    assert about["limits"] == {"series_rows": 64, "label_rows": 20_000}
    columns = {one["name"]: one for one in about["columns"]}
    assert list(columns) == ["cluster", "outlier", "group", "recording", "start"]  # no label was given yet
    assert columns["recording"]["categories"] == ["ann", "bob", "eve"]
    assert columns["start"]["kind"] == "number" and "categories" not in columns["start"]


def test_points_and_columns_are_one_value_per_window(client: Any, workspace: ExplorerWorkspace) -> None:
    n = len(workspace)
    points = numbers(client.get("/api/points"), "<f4").reshape(n, 2)
    assert np.abs(points).max() == pytest.approx(1)
    recording = numbers(client.get("/api/columns/recording"), "<i4")
    assert [["ann", "bob", "eve"][code] for code in recording] == workspace.known.recording.tolist()
    start = numbers(client.get("/api/columns/start"), "<f8")
    np.testing.assert_allclose(start, workspace.known.start)
    outlier = numbers(client.get("/api/columns/outlier"), "<f8")
    assert outlier.shape == (n,) and (outlier > 0).all()
    cluster = numbers(client.get("/api/columns/cluster"), "<i4")
    counts = np.bincount(cluster)
    assert (np.diff(counts) <= 0).all() and counts.sum() == n  # the largest cluster is the first


def test_series_are_those_of_the_recording(client: Any, workspace: ExplorerWorkspace, folder: Path) -> None:
    rows = csv.DictReader((folder / "recordings" / "bob.csv").read_text().splitlines())
    written = [(float(row["time"]), float(row["x"]), float(row["y"] or "nan")) for row in rows]
    known = workspace.known
    chosen = np.flatnonzero(known.recording == "bob")[[0, 3, -1]].tolist()
    answer = client.get("/api/series", params={"rows": ",".join(map(str, chosen))}).json()["series"]
    assert [one["row"] for one in answer] == chosen
    for one in answer:
        start, end = known.start[one["row"]], known.end[one["row"]]
        assert (one["recording"], one["group"], one["start"], one["end"]) == ("bob", "bob", start, end)
        wanted = [value for value in written if start <= value[0] < end - 1e-6]
        assert len(wanted) == 100  # 2 s at 50 Hz
        for channel, got in enumerate(one["channels"], start=1):
            held = [None if np.isnan(value[channel]) else value[channel] for value in wanted]
            assert [value is None for value in got] == [value is None for value in held]
            there = [pair for pair in zip(got, held, strict=True) if pair[1] is not None]
            np.testing.assert_allclose(*zip(*there, strict=True), atol=1e-5)
    assert any(value is None for value in answer[0]["channels"][1])  # the missing value is in the first window


def test_the_context_shows_the_window_in_its_recording(client: Any, workspace: ExplorerWorkspace) -> None:
    row = int(np.flatnonzero(workspace.known.recording == "ann")[12])
    context = client.get("/api/context", params={"row": row}).json()
    first, last = context["window"]
    assert context["recording"] == "ann" and len(context["time"]) == len(context["channels"][0]) <= 2000
    assert context["time"][first] == pytest.approx(workspace.known.start[row])
    assert context["time"][last] == pytest.approx(workspace.known.end[row] - 0.02)
    assert context["time"][0] == pytest.approx(workspace.known.start[row] - 9, abs=0.03)  # ten windows wide
    series = client.get("/api/series", params={"rows": row}).json()["series"][0]["channels"]
    assert series[0] == pytest.approx(context["channels"][0][first : last + 1], abs=1e-4)


def test_neighbours_do_not_overlap_the_window(client: Any, workspace: ExplorerWorkspace) -> None:
    answer = client.get("/api/neighbours", params={"row": 5, "k": 7}).json()
    assert len(answer["rows"]) == len(answer["distances"]) == 7
    assert answer["distances"] == sorted(answer["distances"])
    assert not {4, 5, 6} & set(answer["rows"])
    x = workspace.known.x.astype(np.float64)
    cosine = 1 - x[answer["rows"][0]] @ x[5] / np.linalg.norm(x[answer["rows"][0]]) / np.linalg.norm(x[5])
    assert answer["distances"][0] == pytest.approx(cosine, abs=1e-6)


def test_a_window_is_found_by_recording_and_time(client: Any, workspace: ExplorerWorkspace) -> None:
    row = client.get("/api/find", params={"recording": "eve", "time": 3.4}).json()["row"]
    assert workspace.known.recording[row] == "eve" and workspace.known.start[row] <= 3.4 < workspace.known.end[row]
    for query, word in (
        ({"recording": "eva", "time": 3}, "eve"),
        ({"recording": "eve", "time": 900}, "900"),
        ({"recording": "eve", "time": "nan"}, "nan"),
    ):
        answer = client.get("/api/find", params=query)
        assert answer.status_code == 422 and word in answer.json()["detail"]


def test_labels_are_set_removed_and_taken_back(client: Any) -> None:
    assert client.get("/api/labels").json() == {"labels": {}, "names": [], "can_undo": False}
    answer = client.post("/api/labels", json={"rows": [3, 4, 3], "label": " walk "}).json()
    assert answer == {"labels": {"3": "walk", "4": "walk"}, "names": ["walk"], "can_undo": True}
    client.post("/api/labels", json={"rows": [4, 9], "label": "run"})
    answer = client.post("/api/labels", json={"rows": [3, 30], "label": None}).json()
    assert answer["labels"] == {"4": "run", "9": "run"} and answer["names"] == ["walk", "run"]
    undone = client.post("/api/undo").json()
    assert undone["labels"] == {"3": "walk", "4": "run", "9": "run"} and undone["undone"] == [3]
    undone = client.post("/api/undo").json()
    assert undone["labels"] == {"3": "walk", "4": "walk"} and undone["undone"] == [4, 9]
    undone = client.post("/api/undo").json()
    assert undone["labels"] == {} and undone["undone"] == [3, 4] and not undone["can_undo"]
    assert client.post("/api/undo").json()["undone"] == []


def test_a_label_keeps_its_number_while_others_come(client: Any) -> None:
    client.post("/api/labels", json={"rows": [0], "label": "walk"})
    client.post("/api/labels", json={"rows": [1], "label": "run"})
    first = numbers(client.get("/api/columns/label"), "<i4")
    assert (first[:2] == [0, 1]).all() and (first[2:] == -1).all()
    client.post("/api/undo")
    assert numbers(client.get("/api/columns/label"), "<i4")[0] == 0
    client.post("/api/labels", json={"rows": [2], "label": "a first one"})
    (column,) = [one for one in client.get("/api/about").json()["columns"] if one["name"] == "label"]
    assert column["categories"] == ["walk", "run", "a first one"]
    assert client.get("/api/labels").json()["names"] == ["walk", "a first one"]


def test_suggestions_are_those_of_the_library(client: Any, workspace: ExplorerWorkspace) -> None:
    from dicot import suggest

    answer = client.post("/api/suggest", json={"k": 4}).json()
    assert answer == {"rows": suggest(workspace.known.x, None, 4).tolist(), "reason": "coverage"}
    walks = (workspace.known.start < 11).tolist()
    for label, wanted in (("walk", True), ("run", False)):
        rows = [row for row, walk in enumerate(walks) if walk is wanted][:6]
        client.post("/api/labels", json={"rows": rows, "label": label})
    answer = client.post("/api/suggest", json={"k": 4}).json()
    assert answer["reason"] == "uncertainty"
    assert not {str(row) for row in answer["rows"]} & set(client.get("/api/labels").json()["labels"])


def test_classify_predicts_and_is_honest(client: Any, workspace: ExplorerWorkspace) -> None:
    answer = client.post("/api/classify")
    assert answer.status_code == 422 and "Label some windows" in answer.json()["detail"]
    walks = workspace.known.start < 10.5
    client.post("/api/labels", json={"rows": np.flatnonzero(walks)[::9].tolist(), "label": "walk"})
    answer = client.post("/api/classify")
    assert answer.status_code == 422 and "'walk'" in answer.json()["detail"]
    client.post("/api/labels", json={"rows": np.flatnonzero(~walks)[::9].tolist(), "label": "run"})
    answer = client.post("/api/classify").json()
    assert "Accuracy" in answer["sentence"] and "held out by recording" in answer["sentence"]
    assert any("chosen" in warning for warning in answer["warnings"])
    assert "Always answering" in answer["sentence"]
    assert [one["label"] for one in answer["classes"]] == ["run", "walk"]
    shares = [one[name] for one in answer["classes"] for name in ("recall", "precision")]
    assert min(shares) > 0.4 and max(shares) <= 1, shares
    hidden = [sum(row) for row in answer["confusion"]]
    assert hidden == pytest.approx([one["cases"] for one in answer["classes"]])
    columns = {one["name"]: one for one in client.get("/api/about").json()["columns"]}
    predicted = numbers(client.get("/api/columns/prediction"), "<i4")
    names = np.array(columns["prediction"]["categories"])[predicted]
    clear = (workspace.known.end < 12) | (workspace.known.start > 12)
    assert (names[clear] == np.where(walks, "walk", "run")[clear]).mean() > 0.95
    confidence = numbers(client.get("/api/columns/confidence"), "<f8")
    assert ((confidence >= 0.5) & (confidence <= 1)).all()
    assert "prediction" in client.post("/api/export", json={"rows": [0]}).text.splitlines()[0]


def test_an_export_is_a_table_that_no_spreadsheet_runs(client: Any, workspace: ExplorerWorkspace) -> None:
    formula, comma = '=HYPERLINK("http://a.b","x")', 'a "b", c'
    client.post("/api/labels", json={"rows": [0], "label": formula})
    client.post("/api/labels", json={"rows": [1], "label": comma})
    client.post("/api/labels", json={"rows": [2], "label": "-5.5"})
    answer = client.post("/api/export", json={"rows": [2, 0, 1, 5]})
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["row"] for row in rows] == ["2", "0", "1", "5"]
    assert [row["label"] for row in rows] == ["-5.5", f"'{formula}", comma, ""]
    assert rows[1]["recording"] == "ann" and float(rows[1]["end"]) == workspace.known.end[0]


def test_the_page_and_its_files_need_no_token_and_hold_no_data(workspace: ExplorerWorkspace) -> None:
    bare = client_of(workspace)
    del bare.headers["X-Dicot-Token"]
    assert "map" in bare.get("/").text and TOKEN not in bare.get("/").text
    assert bare.get("/assets/app.js").headers["content-type"].startswith("text/javascript")
    answer = bare.get("/")
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["referrer-policy"] == "no-referrer"
    assert bare.get("/favicon.ico").status_code == 204


def test_without_the_token_nothing_is_answered(client: Any) -> None:
    paths = {"{name}": "label", "{number}": "0", "{form}": "csv"}
    routes = [route for route in client.app.routes if route.path.startswith("/api")]
    calls = [(verb, route.path) for route in routes for verb in route.methods] + [("GET", "/api"), ("GET", "/api/none")]
    assert len(calls) > 20
    two = [("X-Dicot-Token", TOKEN), ("X-Dicot-Token", "other")]
    del client.headers["X-Dicot-Token"]
    for verb, path in calls:
        for part, value in paths.items():
            path = path.replace(part, value)
        for token in ("", "wrong", TOKEN[:-1], f"{TOKEN}x", "ü"):
            answer = client.request(verb, path, headers={"X-Dicot-Token": token.encode()})
            assert answer.status_code == 403 and "token" in answer.json()["detail"], path
            assert answer.headers["cache-control"] == "no-store"
        assert client.request(verb, path).status_code == client.request(verb, path, headers=two).status_code == 403
        assert client.request(verb, path, params={"token": TOKEN}).status_code == 403  # in the address it counts not


@pytest.mark.parametrize("path", ["/", "/api/about"])
@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"127.0.0.1:{PORT}.a.b", ""]
)
def test_another_host_is_refused_everywhere(client: Any, path: str, host: str) -> None:
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 400 and "Host" in answer.json()["detail"]
    assert client.get(path, headers={"Host": f"localhost:{PORT}"}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../workspace.py",
        "/assets/..%2fworkspace.py",
        "/assets//etc/passwd",
        "/assets/app.js%00.css",
        "/assets/",
        "/../../etc/passwd",
    ],
)
def test_no_path_reaches_the_file_system(client: Any, path: str) -> None:
    import httpx

    request = client.build_request("GET", "/")
    request.url = httpx.URL(f"http://127.0.0.1:{PORT}").copy_with(raw_path=path.encode())
    assert client.send(request).status_code == 404


@pytest.mark.parametrize("announced", [True, False])
def test_no_more_of_a_large_body_is_read_than_is_allowed(workspace: ExplorerWorkspace, announced: bool) -> None:
    """As a server hands it on, chunk by chunk, with or without a length that it announces."""
    import asyncio

    from dicot.explorer.routes import create_app

    app = create_app(workspace, TOKEN, PORT, {})
    length = [(b"content-length", b"10")] if announced else [(b"transfer-encoding", b"chunked")]
    headers = [(b"host", f"127.0.0.1:{PORT}".encode()), (b"x-dicot-token", TOKEN.encode()), *length]
    scope = {"type": "http", "method": "POST", "path": "/api/labels", "query_string": b"", "headers": headers}
    read, sent = [], []

    async def receive() -> dict[str, Any]:
        read.append(2**16)
        return {"type": "http.request", "body": b"x" * 2**16, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app({**scope, "http_version": "1.1", "scheme": "http", "root_path": ""}, receive, send))
    assert sent[0]["status"] == 413 and sum(read) <= LARGEST_BODY + 2**16


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/api/series?rows=" + ",".join(map(str, range(65))), "64"),
        ("/api/series?rows=-1", "-1"),
        ("/api/series?rows=1,100000", "100000"),
        ("/api/series?rows=", "rows"),
        ("/api/series?rows=%D9%A1", "rows"),  # a digit of another script
        ("/api/series", "rows"),
        ("/api/series?rows=" + "1" * 5000, "rows"),
        ("/api/context?row=-1", "-1"),
        ("/api/context?row=99999", "99999"),
        ("/api/neighbours?row=-1", "-1"),
        ("/api/neighbours?row=1&k=NaN", "k"),
        ("/api/neighbours?row=1&k=100000", "k"),
        ("/api/why?row=100000", "100000"),
        ("/api/why?row=3", "dicot explore vectors.npz --model MODEL"),
        ("/api/find?recording=ann&time=soon", "time"),
    ],
)
def test_questions_that_make_no_sense_are_refused_in_words(client: Any, path: str, word: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 422 and word in answer.json()["detail"]


def test_there_is_nothing_else(client: Any) -> None:
    columns = [f"/api/columns/{name}" for name in ("velocity", "prediction", "confidence", "..%2f", "__class__")]
    for path in [*columns, "/docs", "/redoc", "/openapi.json", "/api/rows?from=1&to=2"]:
        assert client.get(path).status_code == 404, path


def test_labels_that_make_no_sense_change_nothing(client: Any, folder: Path) -> None:
    names = ("", "x" * 201, "-1", "a\nb", "a\u0000", 5)
    rows = ([], [-1], [10**30], [1.5], ["1"], [True], list(range(10)) * 2001)
    bodies = [{"rows": [1], "label": name} for name in names] + [{"rows": one, "label": "walk"} for one in rows]
    for body in [*bodies, {"rows": [1], "label": "walk", "by": "me"}, [1, 2]]:
        answer = client.post("/api/labels", json=body)
        assert answer.status_code == 422 and isinstance(answer.json()["detail"], str), body
    half = b'{"rows": [1], "label": "a\\ud800"}'
    for content in (b"", b"{", b'{"rows": [NaN], "label": "x"}', b'"\\ud800"', b"[" * 100_000, b"\xff", half):
        answer = client.post("/api/labels", content=content)
        assert answer.status_code in (400, 422) and isinstance(answer.json()["detail"], str), content
    assert not (folder / "vectors.labels.sqlite").exists()
    for one in ([], [-1], [0, 10**6], ["0"], None):
        assert client.post("/api/export", json={"rows": one}).status_code == 422


def test_without_recordings_all_else_works(folder: Path) -> None:
    client = client_of(open_workspace(folder / "vectors.npz"))
    about = client.get("/api/about").json()
    assert about["series"] is about["recordings"] is False and about["channels"] == [] and about["rate"] is None
    (one,) = client.get("/api/series?rows=4").json()["series"]
    assert one["channels"] == [] and one["recording"] == "ann"
    for path in ("context?row=4", "recordings", "recordings/0", "recordings/0/ranges"):
        assert "--data" in client.get(f"/api/{path}").json()["detail"]
    assert len(client.get("/api/neighbours?row=4").json()["rows"]) == 10
    assert client.post("/api/labels", json={"rows": [4], "label": "walk"}).status_code == 200


def test_a_recording_that_has_changed_is_told_and_not_drawn(tmp_path: Path) -> None:
    folder, vectors = tmp_path / "recordings", tmp_path / "v.npz"
    folder.mkdir()
    for name in ("ann", "bob"):
        (folder / f"{name}.csv").write_text("time,v\n" + "\n".join(f"{i / 10},{i % 7}" for i in range(60)))
    embed_recordings(lambda windows: windows.x[:, 0, :3], "abc", vectors, folder, {"window": 10, "stride": 5})
    bob = folder / "bob.csv"
    bob.write_text(bob.read_text().replace(",3", ",9"))
    said: list[str] = []
    client = client_of(open_workspace(vectors, say=said.append))
    assert any(f"1 recording(s) are not drawn: bob. {bob} has changed since" in sentence for sentence in said)
    first, last = client.get("/api/series?rows=0,21").json()["series"]
    assert (first["recording"], last["recording"]) == ("ann", "bob")
    assert first["channels"] and not last["channels"]
    assert client.get("/api/context?row=0").status_code == 200
    told = client.get("/api/context?row=21")
    assert told.status_code == 422 and f"{bob} has changed since" in told.json()["detail"]
    search = ("search", vectors, "--like", 0, "-k", 21, "--plot", tmp_path / "page.html")
    with pytest.raises(InputError, match=r"Row \d+ of .*v\.npz, bob @ .*: .*bob\.csv has changed since"):
        dicot(*search, "--strict")
    assert not (tmp_path / "page.html").exists()
    assert "bob.csv has changed since" in dicot(*search, code=3)
    assert "ann @" in (tmp_path / "page.html").read_text()
    (folder / "ann.csv").write_text(bob.read_text())
    said.clear()
    assert open_workspace(vectors, say=said.append).series is None
    assert any("has changed since" in sentence for sentence in said)


def bits(flags: np.ndarray) -> str:
    return base64.b64encode(np.packbits(flags, bitorder="little").tobytes()).decode()


def test_suggestions_leave_out_what_is_hidden(client: Any, workspace: ExplorerWorkspace) -> None:
    client.post("/api/labels", json={"rows": [0, 1], "label": "walk"})
    shown = workspace.known.recording == "eve"
    answer = client.post("/api/suggest", json={"k": 5, "hidden": bits(~shown)}).json()
    assert len(answer["rows"]) == 5 and shown[answer["rows"]].all()
    everything = np.ones(len(workspace), bool)
    assert client.post("/api/suggest", json={"k": 5, "hidden": bits(everything)}).json()["rows"] == []
    for hidden in ("?", bits(everything[:8]), "", bits(np.ones(10**5, bool))):
        answer = client.post("/api/suggest", json={"k": 5, "hidden": hidden})
        assert answer.status_code == 422 and "hidden" in answer.json()["detail"]


def test_doubtful_labels_are_listed_until_they_are_confirmed(client: Any, workspace: ExplorerWorkspace) -> None:
    assert client.post("/api/doubts").status_code == 422  # there is no label
    run = workspace.known.start > 12
    for label, rows in (("run", np.flatnonzero(run)), ("walk", np.flatnonzero(workspace.known.start < 10))):
        client.post("/api/labels", json={"rows": rows.tolist(), "label": label})
    wrong = np.flatnonzero(run)[[3, 20]].tolist()
    client.post("/api/labels", json={"rows": wrong, "label": "walk"})
    answer = client.post("/api/doubts").json()
    found = {doubt["row"]: (doubt["label"], doubt["suggestion"]) for doubt in answer["doubts"]}
    assert found == dict.fromkeys(wrong, ("walk", "run")) and "2 differ" in answer["sentence"]
    client.post("/api/labels", json={"rows": wrong[:1], "label": "walk", "confirm": True})
    assert [doubt["row"] for doubt in client.post("/api/doubts").json()["doubts"]] == wrong[1:]
    client.post("/api/undo")
    assert len(client.post("/api/doubts").json()["doubts"]) == 2


def test_labels_of_others_are_columns_beside_their_agreement(folder: Path, workspace: ExplorerWorkspace) -> None:
    ben = folder / "ben.sqlite"
    with LabelStore(ben) as store:
        places = list(zip(*(values.tolist() for values in workspace.known.places()), strict=True))
        store.set(places[:4], ["walk", "walk", "run", "run"])
    before = ben.read_bytes()
    client = client_of(open_workspace(folder / "vectors.npz", others=[ben]))
    for label, rows in (("walk", [0, 1, 2]), ("run", [3, 9])):
        client.post("/api/labels", json={"rows": rows, "label": label})
    about = client.get("/api/about").json()
    (told,) = about["stores"]
    assert told.pop("sentence").startswith("3 of 4 labels are equal")
    assert told == {"name": "ben", "both": 4, "same": 3, "kappa": pytest.approx(0.5)}
    names = next(one["categories"] for one in about["columns"] if one["name"] == "by ben")
    codes = numbers(client.get("/api/columns/by ben"), "<i4")
    assert [names[code] for code in codes[:4]] == ["walk", "walk", "run", "run"] and (codes[4:] == -1).all()
    agreed = numbers(client.get("/api/columns/with ben"), "<i4")
    assert agreed[[0, 1, 2, 3, 9, 10]].tolist() == [0, 0, 1, 0, 2, -1]
    client.post("/api/undo")
    assert ben.read_bytes() == before
    with pytest.raises(InputError, match=r"nobody\.sqlite"):
        open_workspace(folder / "vectors.npz", others=[folder / "nobody.sqlite"])


def test_times_in_utc_are_a_column_and_in_the_export(folder: Path) -> None:
    known = read_vectors(folder / "vectors.npz")
    first = np.datetime64("2024-03-01T10:00:00", "us")
    times = {f"{name}_time": first + (1e6 * getattr(known, name)).astype("m8[us]") for name in ("start", "end")}
    times["start_time"][5] = np.datetime64("NaT")
    write_vectors(folder / "dated.npz", {"": {"X": known.x, **known.columns(), **times}})
    client = client_of(open_workspace(folder / "dated.npz"))
    (column,) = [one for one in client.get("/api/about").json()["columns"] if one["name"] == "time"]
    assert column == {"name": "time", "title": "Time (UTC)", "kind": "time"}
    seconds = numbers(client.get("/api/columns/time"), "<f8")
    assert seconds[1] == 1709287200 + known.start[1] and np.isnan(seconds[5])
    line = next(csv.DictReader(io.StringIO(client.post("/api/export", json={"rows": [1]}).text)))
    assert line["start_time"].startswith("2024-03-01 10:00:0") and line["end_time"] > line["start_time"]
