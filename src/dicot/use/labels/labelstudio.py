"""Labels as Label Studio's JSON has them: a task for each recording, with its ranges as TimeSeriesLabels."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from dicot.core.errors import InputError, quoted
from dicot.data.clocks import EPOCH, seconds_since
from dicot.data.labels import as_text, plain_text

Place = tuple[str, int | float | str, int | float | str]  # recording, start and end, as a label store has them

KIND = "timeserieslabels"
# What `to_label_studio` writes into the data of a task, and Label Studio gives back: what start and end count. Without
# it, as in the tasks of others, large numbers are taken for times since 1970.
TIMES, FROM_1970, FROM_START = "times", "milliseconds since 1970", "seconds"
SINCE_1970, MILLISECONDS = 1e8, 1e10  # numbers from here on are such times; a recording of seconds lasts three years
UPLOADED = re.compile(r"[0-9a-f]{8}-")  # what Label Studio writes before the name of a file that was uploaded


def to_label_studio(ranges: Iterable[tuple[str, Any, Any, Any]], begun: Mapping[str, float]) -> str:
    """Write ranges (recording, start, end, label) as tasks that Label Studio imports.

    Times are milliseconds since 1970 where it is known when a recording began, and else seconds from its beginning.
    """
    results: dict[str, list[dict[str, Any]]] = {}  # by recording
    for recording, start, end, label in ranges:
        if start is None:
            raise InputError(f"{recording!r} has no start and end, and Label Studio keeps ranges. Write a .csv.")
        if recording in begun and not isinstance(start, str):
            start, end = (round(1000 * (begun[recording] + time), 3) for time in (start, end))
        own = results.setdefault(recording, [])
        value = {"start": start, "end": end, "instant": start == end, KIND: [as_text(label)]}
        own.append({"id": str(len(own)), "from_name": "label", "to_name": "ts", "type": KIND, "value": value})

    tasks = []
    for recording, own in results.items():
        counted = FROM_1970 if recording in begun else FROM_START
        data = {"csv": f"{recording}.csv", "recording": recording, TIMES: counted}
        tasks.append({"data": data, "annotations": [{"result": own}]})
    return json.dumps(tasks, indent=1, ensure_ascii=False)


def from_label_studio(text: str, begun: Mapping[str, float]) -> list[tuple[Place, str]]:
    """Read the ranges of an export ("JSON"), or what `to_label_studio` wrote; other kinds of annotations are left out.

    A recording is called by the task's data.recording, or else by the name of its file. Times are as in
    `to_label_studio`, or in ISO 8601.
    """
    try:
        tasks = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise InputError(f"it is no JSON ({error}). Export it from Label Studio as JSON.") from error
    ranges: list[tuple[Place, str]] = []
    for number, task in enumerate(tasks if isinstance(tasks, list) else [tasks], 1):
        ranges += _ranges_of_task(task, begun, f"task {number}")
    return ranges


def _ranges_of_task(task: Any, begun: Mapping[str, float], where: str) -> list[tuple[Place, str]]:
    if not isinstance(task, dict) or not isinstance(task.get("annotations"), list):
        raise InputError(f"{where} has no list 'annotations'. Export as JSON, not as JSON-MIN.")
    annotations = [one for one in task["annotations"] if isinstance(one, dict) and not one.get("was_cancelled")]
    if len(annotations) > 1:
        raise InputError(
            f"{where} has {len(annotations)} annotations. Keep one, or import each into a store of its own."
        )
    results = annotations[0].get("result") if annotations else []
    ranges = []
    for place, result in enumerate(results if isinstance(results, list) else [results], 1):
        value = result.get("value") if isinstance(result, dict) else None
        if isinstance(value, dict) and KIND in value:
            name = _recording(task, where)
            times = _data(task).get(TIMES)
            ranges.append(_range(value, name, begun.get(name), times, f"{where}, result {place}"))
    return ranges


def _data(task: Mapping[str, Any]) -> dict[str, Any]:
    return task["data"] if isinstance(task.get("data"), dict) else {}


def _recording(task: Mapping[str, Any], where: str) -> str:
    data = _data(task)
    if isinstance(name := data.get("recording"), str) and name:
        return name
    texts = [task.get("file_upload"), *(value for key, value in data.items() if key != TIMES)]
    files = [text for text in texts if isinstance(text, str) and text]
    if not files:
        raise InputError(f"{where} names no recording. Write it as 'recording' into the 'data' of the task.")
    return UPLOADED.sub("", PurePosixPath(files[0].replace("?d=", "/")).stem, count=1)


def _range(value: Mapping[str, Any], name: str, begun: float | None, counted: object, where: str) -> tuple[Place, str]:
    labels = value[KIND]
    if not isinstance(labels, list) or len(labels) != 1 or not isinstance(labels[0], str) or not labels[0]:
        raise InputError(f"{where} has {KIND!r} {quoted(labels)}; a range has one label. Correct it.")
    start, end = (_seconds(value.get(column), column, name, begun, counted, where) for column in ("start", "end"))
    if not start <= end:
        raise InputError(f"{where} has an 'end' before its 'start'. Correct it.")
    return (name, start, end), plain_text(labels[0])


def _seconds(given: Any, column: str, name: str, begun: float | None, counted: object, where: str) -> float:
    """Return a time of a recording in seconds from its beginning."""
    try:
        time, since_1970 = _time(given, counted)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where} has {quoted(given)} as {column!r}, which is no number and no time in ISO 8601. Correct it."
        ) from error
    if not since_1970:
        return time
    if begun is None:
        raise InputError(
            f"{where} has {given!r} as {column!r}, and nothing says when the recording {name!r} began. Name vectors "
            "that say it (--vectors), or write seconds."
        )
    return round(time - begun, 6)


def _time(given: Any, counted: object) -> tuple[float, bool]:
    """Return a time in seconds, and whether it counts from 1970; a task may say what its numbers have `counted`."""
    if isinstance(given, str):
        return seconds_since(EPOCH, given), True
    if counted == FROM_1970:
        return float(given) / 1000, True
    if counted == FROM_START:
        return float(given), False
    return float(given) / (1000 if given >= MILLISECONDS else 1), given >= SINCE_1970
