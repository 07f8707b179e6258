"""A line of the ledger: what is kept of a job, its values and the places in suites that it fills."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dicot import __version__
from dicot.bench.jobs import Job, canonical
from dicot.bench.record import Record

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
Row = dict[str, Any]
Member = tuple[str, str]  # suite, contender
Wanted = tuple[str, str, str]  # suite, source, target


@dataclass(frozen=True)
class Result:
    """What became of a job: its values (NaN where it failed) and where they come from."""

    values: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)  # as the training used it, with the method's settings
    source_data: str = ""  # fingerprints
    target_data: str = ""
    device: str = ""
    fit_seconds: float = math.nan
    embed_seconds: float = math.nan
    score_seconds: float = math.nan
    peak_memory: int = 0


@dataclass(frozen=True)
class Line:
    """A row with its values and the places in suites that it fills."""

    row: Row
    values: Mapping[str, float | None]
    members: tuple[Member, ...]


class Contents(NamedTuple):
    """All that a ledger holds, or what is to be taken over into one."""

    lines: list[Line]
    wanted: list[Wanted]  # what suites were to cover and has no line


def line_of(job: Job, result: Result) -> Line:
    """The line to be written for a job."""
    settings, recipe = job.contender.settings, result.recipe
    row = {
        "key": job.key,
        "config": canonical(job.config),
        "source": job.source.name,
        "target": job.target.name,
        "protocol": job.protocol,
        "seed": job.seed,
        "schedule": settings.get("schedule", ""),
        "steps": recipe.get("steps", settings.get("steps", 0)),
        "batch_size": recipe.get("batch_size", settings.get("batch_size", 0)),
        "precision": settings.get("precision", ""),
        "trial": int(job.trial),
        "recipe": json.dumps({k: v for k, v in recipe.items() if k not in COLUMNS}, sort_keys=True),
        "source_data": result.source_data,
        "target_data": result.target_data,
        "version": __version__,
        "device": result.device,
        "seconds_fit": number(round(result.fit_seconds, 4)),
        "seconds_embed": number(round(result.embed_seconds, 4)),
        "seconds_score": number(round(result.score_seconds, 4)),
        "peak_memory": result.peak_memory,
        "error": result.error,
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return Line(row, dict(result.values), ((job.suite, job.contender.name),))


def preferred(new: Row, old: Row) -> bool:
    """The newer one, but a failure takes the place of a result only where the data changed."""
    newer = bool(new["recorded"] >= old["recorded"])
    if (new["error"] is None) == (old["error"] is None):
        return newer
    changed = any(new[name] and new[name] != old[name] for name in ("source_data", "target_data"))
    return new["error"] is None or (newer and changed)


def record_of(row: Row, member: Member, metric: str, value: float | None) -> Record:
    """What a report reads of one value."""
    taken = ("source", "target", "protocol", "seed", "error", "schedule", "steps", "batch_size", "precision")
    provenance = ("peak_memory", "device", "version", "recorded", "key")
    return Record(
        suite=member[0],
        contender=member[1],
        metric=metric,
        value=math.nan if value is None else value,
        trial=bool(row["trial"]),
        fit_seconds=math.nan if row["seconds_fit"] is None else row["seconds_fit"],
        **{name: row[name] for name in (*taken, *provenance)},
    )


def number(value: float | None) -> float | None:
    """NaN as NULL, which is what SQLite would make of it anyway."""
    return None if value is None or math.isnan(value) else value
