"""Is a line what a job can have left behind? Asked of every line that comes from a file, whoever wrote that."""

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dicot.bench.lines import COLUMNS, Line, Member, Wanted, number
from dicot.errors import InputError

KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "TEXT": ("text", (str,)),
    "INTE": ("a whole number", (int,)),
    "REAL": ("a number", (int, float)),
}
LARGEST = 2**63 - 1  # whole number that SQLite holds
NOT_EMPTY = ("source", "target", "protocol", "recorded")
NOT_NEGATIVE = ("steps", "batch_size", "peak_memory", "seconds_fit", "seconds_embed", "seconds_score")


def checked_line(row: Mapping[str, Any], values: Mapping[str, Any], members: tuple[Member, ...]) -> Line:
    """The line, or an InputError that says which cell is wrong."""
    for name, kind in COLUMNS.items():
        _check_cell(name, row[name], kind)
    _check_config(row)
    _check_time(row["recorded"])
    if row["trial"] not in (0, 1):
        raise InputError(f"trial must be 0 or 1; got {row['trial']}.")
    _as_object(row["recipe"], "recipe")
    for member in members:
        check_names(suite=member[0], contender=member[1])
    return Line(dict(row), _checked_values(values, row["error"]), members)


def checked_wanted(suite: Any, source: Any, target: Any) -> Wanted:
    """What a suite was to cover."""
    check_names(suite=suite, source=source, target=target)
    return suite, source, target


def check_names(**names: Any) -> None:
    """Each must be text, and not empty."""
    for what, name in names.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"{what} must be a name; got {_short(name)}.")


def check_metrics(metrics: Mapping[str, tuple[str, ...]], protocol: str, values: Mapping[str, Any]) -> None:
    """Values that this protocol has; `metrics` are those of the protocols known here, others may have any."""
    if foreign := sorted(values.keys() - set(metrics.get(protocol, values))):
        raise InputError(f"{protocol} gives {', '.join(metrics[protocol])}; got a value for {', '.join(foreign)}.")


def known_metrics() -> dict[str, tuple[str, ...]]:
    """The metrics of every protocol that is registered."""
    from dicot.bench.model_protocols import every_protocol

    return {name: tuple(metric.name for metric in make().metrics) for name, make in every_protocol().items()}


def _check_cell(name: str, value: Any, kind: str) -> None:
    if value is None and "NOT NULL" not in kind and "KEY" not in kind:
        return
    what, expected = KINDS[kind[:4]]
    fits = isinstance(value, expected) and not isinstance(value, bool)
    if not fits:
        raise InputError(f"{name} must be {what}; got {_short(value)}.")
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise InputError(f"{name} must be a number of usual size; got {value}.")
    if (name in NOT_EMPTY and not value) or (name in NOT_NEGATIVE and value < 0):
        raise InputError(f"{name} must not be {'negative' if value else 'empty'}; got {value!r}.")


def _check_config(row: Mapping[str, Any]) -> None:
    """The configuration is the one that the key was made of, and the cells that repeat parts of it agree with it."""
    if hashlib.sha256(row["config"].encode("utf-8", "surrogatepass")).hexdigest() != row["key"]:
        raise InputError(f"config does not hash to key: one of them was changed. config is {_short(row['config'])}.")
    config = _as_object(row["config"], "config")
    settings = config.get("settings", {})
    said = {name: config.get(name) for name in ("source", "target", "protocol", "seed")}
    if isinstance(settings, dict):
        said |= {name: settings.get(name, "") for name in ("schedule", "precision")}
    for name, value in said.items():
        if row[name] != value:
            raise InputError(f"{name} is {_short(row[name])} where config says {_short(value)}.")


def _check_time(text: str) -> None:
    try:
        aware = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        aware = False
    if not aware:
        raise InputError(f"recorded must be a date and time with its zone (ISO 8601); got {_short(text)}.")


def _checked_values(values: Mapping[str, Any], error: str | None) -> dict[str, float | None]:
    """Finite numbers for a job that went well, none of them for one that failed, and a name for each in either case."""
    if not values:
        raise InputError("there are no scores" + (" and no error: the row is not whole." if error is None else "."))
    for metric, value in values.items():
        check_names(metric=metric)
        usable = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        if not usable or (value is not None and math.isinf(value)):
            raise InputError(f"{metric} must be a number; got {_short(value)}.")
        lost = value is None or math.isnan(value)
        if lost and error is None:
            raise InputError(f"{metric} has no value, and there is no error that says why.")
        if not lost and error is not None:
            raise InputError(f"{metric} is {value}, but the job failed: {_short(error)}.")
    return {metric: number(value) for metric, value in values.items()}


def _as_object(text: str, name: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} must be JSON; got {_short(text)}.") from error
    if not isinstance(found, dict):
        raise InputError(f"{name} must be a JSON object; got {_short(text)}.")
    return found


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
