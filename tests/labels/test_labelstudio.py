"""What Label Studio exports is read, and what is wrong in it is named by its task and result."""

import json
from pathlib import Path

import pytest

from dicot.core.errors import InputError
from dicot.use.labels.labelstudio import to_label_studio
from dicot.use.labels.tables import read_labels

NAMED = {"data": {"csv": "/data/upload/1/0a1b2c3d-monday.csv"}, "file_upload": "0a1b2c3d-monday.csv"}


def result(start: object, end: object, *labels: object) -> dict[str, object]:
    value = {"start": start, "end": end, "instant": False, "timeserieslabels": list(labels)}
    return {"id": "x", "from_name": "label", "to_name": "ts", "type": "timeserieslabels", "value": value}


def write(path: Path, *results: object, **more: object) -> Path:
    whole = {**NAMED, "annotations": [{"completed_by": 1, "was_cancelled": False, "result": list(results)}], **more}
    path.write_text(json.dumps([whole]))
    return path


def test_times_are_seconds_or_dates(tmp_path: Path) -> None:
    other = {"from_name": "mood", "to_name": "ts", "type": "choices", "value": {"choices": ["good"]}}
    dates = result(1592250751500, 1592250761500, "Walk"), result("2020-06-15T19:52:50", "2020-06-15T19:52:54.5Z", "Sit")
    file = write(tmp_path / "e.json", result(1.5, 4, "Run"), other, *dates)
    ranges = {("monday", 1.5, 4): "Run", ("monday", 20.5, 30.5): "Walk", ("monday", 39, 43.5): "Sit"}
    assert read_labels(file, {"monday": 1592250731.0}) == ranges


@pytest.mark.parametrize(
    ("results", "more", "message"),
    [
        ([result(1, 2, "Run"), result("noon", 3, "Run")], {}, "task 1, result 2 has 'noon' as 'start'"),
        ([result(1, None, "Run")], {}, "task 1, result 1 has None as 'end'"),
        ([result(3, 2, "Run")], {}, "task 1, result 1 has an 'end' before its 'start'"),
        ([result(1, 2, "Run", "Walk")], {}, "task 1, result 1 .*a range has one label"),
        ([result(1592250751951.5, 1592250761951.5, "Run")], {}, "nothing says when the recording 'monday' began"),
        ([], {"annotations": None}, "task 1 has no list 'annotations'"),
        ([], {"annotations": [{"result": []}, {"result": []}]}, "task 1 has 2 annotations"),
        ([result(1, 2, "Run")], {"data": {}, "file_upload": None}, "task 1 names no recording"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, results: list[object], more: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=rf"e\.json: .*{message}"):
        read_labels(write(tmp_path / "e.json", *results, **more))


@pytest.mark.parametrize("began", [-86400.0, 0.0, 3600.0, 9_000_000.0, 1_600_000_000.0])
def test_what_was_written_is_read_again_whenever_the_recording_began(tmp_path: Path, began: float) -> None:
    ranges = {("monday", 1.5, 4.25): "Run", ("monday", 2000.0, 2e8): "Walk"}
    for begun in ({"monday": began}, {}):
        text = to_label_studio([(*place, label) for place, label in ranges.items()], begun)
        (tmp_path / "e.json").write_text(text)
        assert read_labels(tmp_path / "e.json", begun) == ranges
