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
    tasks: dict[str, list[dict[str, Any]]] = {}
    for recording, start, end, label in ranges:
        if start is None:
            raise InputError(f"{recording!r} has no start and end, and Label Studio keeps ranges. Write a .csv.")
        if recording in begun and not isinstance(start, str):
            start, end = (round(1000 * (begun[recording] + time), 3) for time in (start, end))
        own = tasks.setdefault(recording, [])
        value = {"start": start, "end": end, "instant": start == end, KIND: [as_text(label)]}
        own.append({"id": str(len(own)), "from_name": "label", "to_name": "ts", "type": KIND, "value": value})
    data = {
        name: {"csv": f"{name}.csv", "recording": name, TIMES: FROM_1970 if name in begun else FROM_START}
        for name in tasks
    }
    whole = [{"data": data[name], "annotations": [{"result": own}]} for name, own in tasks.items()]
    return json.dumps(whole, indent=1, ensure_ascii=False)


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
        where = f"task {number}"
        if not isinstance(task, dict) or not isinstance(task.get("annotations"), list):
            raise InputError(f"{where} has no list 'annotations'. Export as JSON, not as JSON-MIN.")
        given = [one for one in task["annotations"] if isinstance(one, dict) and not one.get("was_cancelled")]
        if len(given) > 1:
            raise InputError(f"{where} has {len(given)} annotations. Keep one, or import each into a store of its own.")
        results = given[0].get("result") if given else []
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
    labels, times = value[KIND], []
    if not isinstance(labels, list) or len(labels) != 1 or not isinstance(labels[0], str) or not labels[0]:
        raise InputError(f"{where} has {KIND!r} {quoted(labels)}; a range has one label. Correct it.")
    for column in ("start", "end"):
        given = value.get(column)
        try:
            time, since_1970 = _time(given, counted)
        except (TypeError, ValueError) as error:
            said = f"{where} has {quoted(given)} as {column!r}"
            raise InputError(f"{said}, which is no number and no time in ISO 8601. Correct it.") from error
        if since_1970 and begun is None:
            said = f"{where} has {given!r} as {column!r}, and nothing says when the recording {name!r} began."
            raise InputError(f"{said} Name vectors that say it (--vectors), or write seconds.")
        times.append(round(time - (begun or 0.0), 6) if since_1970 else time)
    if not times[0] <= times[1]:
        raise InputError(f"{where} has an 'end' before its 'start'. Correct it.")
    return (name, times[0], times[1]), plain_text(labels[0])


def _time(given: Any, counted: object) -> tuple[float, bool]:
    """Return a time in seconds, and whether it counts from 1970; a task may say what its numbers have `counted`."""
    if isinstance(given, str):
        return seconds_since(EPOCH, given), True
    if counted == FROM_1970:
        return float(given) / 1000, True
    if counted == FROM_START:
        return float(given), False
    return float(given) / (1000 if given >= MILLISECONDS else 1), given >= SINCE_1970
