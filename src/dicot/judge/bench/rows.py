"""A row of the ledger: what is kept of a result, and whether a row that comes from a file can be one."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from dicot.core.errors import InputError, quoted
from dicot.judge.evaluation.result import Result

COLUMNS = {
    "key": "TEXT PRIMARY KEY",
    "config": "TEXT NOT NULL",
    "source": "TEXT NOT NULL",
    "target": "TEXT NOT NULL",
    "protocol": "TEXT NOT NULL",
    "seed": "INTEGER NOT NULL",
    "schedule": "TEXT NOT NULL",
    "steps": "INTEGER NOT NULL",
    "batch_size": "INTEGER NOT NULL",
    "precision": "TEXT NOT NULL",
    "trial": "INTEGER NOT NULL",
    "recipe": "TEXT NOT NULL",
    "source_data": "TEXT NOT NULL",
    "target_data": "TEXT NOT NULL",
    "version": "TEXT NOT NULL",
    "device": "TEXT NOT NULL",
    "seconds_fit": "REAL",
    "seconds_embed": "REAL",
    "seconds_score": "REAL",
    "peak_memory": "INTEGER NOT NULL",
    "error": "TEXT",
    "recorded": "TEXT NOT NULL",
}
# Columns that are called otherwise than the field of a result.
FIELDS = {"seconds_fit": "fit_seconds", "seconds_embed": "embed_seconds", "seconds_score": "score_seconds"}
KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "TEXT": ("text", (str,)),
    "INTE": ("a whole number", (int,)),
    "REAL": ("a number", (int, float)),
}
LARGEST = 2**63 - 1  # whole number that SQLite holds
NOT_EMPTY = ("source", "target", "protocol", "recorded")
NOT_NEGATIVE = ("steps", "batch_size", "peak_memory", "seconds_fit", "seconds_embed", "seconds_score")

Row = Mapping[str, Any]  # by column
Draws = Mapping[int, Mapping[str, Any]]  # values by draw and metric
Member = tuple[str, str]  # suite, contender
Wanted = tuple[str, str, str]  # suite, source, target


def row_of(result: Result) -> dict[str, Any]:
    """The facts of a result by column; NaN becomes NULL, which is what SQLite would make of it anyway."""
    row = {column: getattr(result, FIELDS.get(column, column)) for column in COLUMNS}
    return {name: or_null(value) for name, value in row.items()} | {"trial": int(result.trial)}


def or_null(value: Any) -> Any:
    """None in place of NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def preferred(new: Row, old: Row, *, just_made: bool = False) -> bool:
    """Whether a row replaces another: the newer one does, but a failure replaces a result only where data changed.

    What was `just_made` is the newer one, even where a clock has been put back since the other was recorded.
    """
    newer = just_made or bool(new["recorded"] >= old["recorded"])
    if (new["error"] is None) == (old["error"] is None):
        return newer
    changed = any(new[name] and new[name] != old[name] for name in ("source_data", "target_data"))
    return new["error"] is None or (newer and changed)


def checked_results(row: Row, draws: Draws, members: Iterable[Member]) -> list[Result]:
    """The results that a row stands for, one for each draw and place in a suite, unless a cell is wrong."""
    for name, kind in COLUMNS.items():
        _check_cell(name, row[name], kind)
    _check_config(row)
    _check_time(row["recorded"])
    if row["trial"] not in (0, 1):
        raise InputError(f"trial must be 0 or 1; got {row['trial']}.")
    _as_object(row["recipe"], "recipe")
    if not draws:
        raise InputError(
            "there are no scores" + (" and no error: the row is not whole." if row["error"] is None else ".")
        )
    facts = {FIELDS.get(name, name): value for name, value in row.items()}
    facts |= {field: math.nan if facts[field] is None else facts[field] for field in FIELDS.values()}
    facts["trial"] = bool(row["trial"])
    scores = {_checked_draw(draw): _checked_values(values, row["error"]) for draw, values in draws.items()}
    results = []
    for suite, contender in members:
        check_names(suite=suite, contender=contender)
        results += [
            Result(suite=suite, contender=contender, draw=draw, values=scores[draw], **facts) for draw in sorted(scores)
        ]
    return results


def check_draws(draws: Iterable[int]) -> None:
    """Refuse draws of which one is missing."""
    numbers = sorted(set(draws))
    if numbers != list(range(1, len(numbers) + 1)):
        raise InputError(f"draws must be numbered from 1; got {', '.join(map(str, numbers))}: a row is lost.")


def checked_wanted(suite: Any, source: Any, target: Any) -> Wanted:
    """What a suite was to cover."""
    check_names(suite=suite, source=source, target=target)
    return suite, source, target


def check_names(**names: Any) -> None:
    """Refuse what is not text, or empty."""
    for what, name in names.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"{what} must be a name; got {quoted(name)}.")


def known_metrics() -> dict[str, tuple[str, ...]]:
    """The names of the metrics of every protocol that is registered."""
    from dicot.judge.evaluation.model_protocols import every_protocol, metric_names

    return {name: metric_names(make()) for name, make in every_protocol().items()}


def _checked_draw(draw: Any) -> int:
    if type(draw) is not int or not 1 <= draw <= LARGEST:
        raise InputError(f"draw must be a whole number from 1; got {quoted(draw)}.")
    return draw


def _check_cell(name: str, value: Any, kind: str) -> None:
    if value is None and "NOT NULL" not in kind and "KEY" not in kind:
        return
    what, expected = KINDS[kind[:4]]
    fits = isinstance(value, expected) and not isinstance(value, bool)
    if not fits:
        raise InputError(f"{name} must be {what}; got {quoted(value)}.")
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise InputError(f"{name} must be a number of usual size; got {value}.")
    if (name in NOT_EMPTY and not value) or (name in NOT_NEGATIVE and value < 0):
        raise InputError(f"{name} must not be {'negative' if value else 'empty'}; got {value!r}.")


def _check_config(row: Row) -> None:
    """Refuse a configuration that is not the one of the key, or that the cells that repeat parts of it contradict."""
    if hashlib.sha256(row["config"].encode("utf-8", "surrogatepass")).hexdigest() != row["key"]:
        raise InputError(f"config does not hash to key: one of them was changed. config is {quoted(row['config'])}.")
    config = _as_object(row["config"], "config")
    settings = config.get("settings", {})
    expected = {name: config.get(name) for name in ("source", "target", "protocol", "seed")}
    if isinstance(settings, dict) and "name" not in config:  # a contender of one's own may keep them elsewhere
        expected |= {name: settings.get(name, "") for name in ("schedule", "precision")}
    for name, value in expected.items():
        if row[name] != value:
            raise InputError(f"{name} is {quoted(row[name])} where config says {quoted(value)}.")


def _check_time(text: str) -> None:
    try:
        aware = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        aware = False
    if not aware:
        raise InputError(f"recorded must be a date and time with its zone (ISO 8601); got {quoted(text)}.")


def _checked_values(values: Mapping[str, Any], error: str | None) -> dict[str, float]:
    """Finite numbers for a job that went well, NaN for one that failed, and a name for each in either case."""
    for metric, value in values.items():
        check_names(metric=metric)
        usable = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        if not usable or (value is not None and math.isinf(value)):
            raise InputError(f"{metric} must be a number; got {quoted(value)}.")
        if isinstance(value, int) and abs(value) > LARGEST:
            raise InputError(f"{metric} must be a number of usual size; got {value}.")
        lost = value is None or math.isnan(value)
        if lost and error is None:
            raise InputError(f"{metric} has no value, and there is no error that says why.")
        if not lost and error is not None:
            raise InputError(f"{metric} is {value}, but the job failed: {quoted(error)}.")
    return {metric: math.nan if value is None else value for metric, value in values.items()}


def _as_object(text: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} must be JSON; got {quoted(text)}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{name} must be a JSON object; got {quoted(text)}.")
    return value
