"""The ledger: a SQLite file that many processes may write to, one row per job, failures included."""

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from dicot import __version__
from dicot.core.errors import InputError, quoted
from dicot.core.storage.database import PATIENCE, connect, keep_log, snapshot, tables_in, transaction, translated
from dicot.judge.evaluation.jobs import Job
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
TYPES: dict[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (int, float)}

SCHEMA_VERSION = 2
WHAT = "ledger"  # in what is said of the file
# A job may belong to several suites, and in one of them to several lines of a table. What a suite was asked to cover
# is kept too, so that a data set that was not at hand can be named.
TABLES = {
    "jobs": ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()),
    "scores": "key TEXT, draw INTEGER, metric TEXT, value REAL, PRIMARY KEY (key, draw, metric)",
    "members": "suite TEXT, contender TEXT, key TEXT, PRIMARY KEY (suite, contender, key)",
    "wanted": "suite TEXT, source TEXT, target TEXT, PRIMARY KEY (suite, source, target)",
}

Row = Mapping[str, Any]  # by column
Wanted = tuple[str, str, str]  # suite, source, target


class Contents(NamedTuple):
    """All that a ledger holds, or what is to be taken over into one."""

    results: list[Result]
    wanted: list[Wanted]  # what suites were to cover and has no result


class Ledger:
    """An open ledger; close it, or use it in a `with`. Every process opens its own.

    With `read_only` it is the ledger as it was when it was opened: a copy in memory, so that the file may be read-only,
    is never changed, and may be written to by others meanwhile. Otherwise a file that is not there is made; an empty
    one counts as not there, because that is what another process begins with.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        if read_only and not self.path.exists():
            raise InputError(f"There is no ledger at {self.path}. Name another with --ledger, or run a suite first.")
        self._db = (snapshot if read_only else connect)(self.path, WHAT, PATIENCE)
        self._db.row_factory = sqlite3.Row
        try:
            with self._transaction("DEFERRED"):  # before anything is changed, a journal mode too
                if not self._is_ledger() and read_only:
                    raise InputError(f"{self.path} is no ledger: there is nothing in it. Name another file.")
            with translated(self.path, WHAT):
                keep_log(self._db, PATIENCE)
            with self._transaction():  # of several processes that meet at a new file, one makes the tables
                if not self._is_ledger():
                    for name, columns in TABLES.items():
                        self._db.execute(_create(name, columns))
                    self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            if read_only:
                self._db.execute("PRAGMA query_only = ON")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def enrol(self, jobs: Iterable[Job]) -> None:
        """Say which places in suites these jobs fill, whether or not they have been run."""
        jobs = list(jobs)
        places = {(job.suite, job.contender.name, job.key) for job in jobs}
        with self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO members VALUES (?, ?, ?)", sorted(places))
            self._want({(job.suite, job.source.name, job.target.name) for job in jobs})

    def _want(self, wanted: Iterable[Wanted]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO wanted VALUES (?, ?, ?)", sorted(wanted))

    def record(self, results: Sequence[Result]) -> None:
        """Write down the results of a job that has just run, unless what was recorded before is to be preferred."""
        with self._transaction():
            self._add(results, just_made=True)

    def take(self, sources: Sequence[Contents]) -> list[tuple[int, int]]:
        """Take over what others recorded, all of it or nothing; of each how many results, and how many were taken."""
        with self._transaction():
            counts = []
            for results, wanted in sources:
                self._want(wanted)
                jobs: dict[tuple[str, str], list[Result]] = {}
                for result in results:
                    jobs.setdefault((result.key, result.recorded), []).append(result)
                counts.append((len(results), sum(len(group) for group in jobs.values() if self._add(group))))
        return counts

    def _add(self, results: Sequence[Result], *, just_made: bool = False) -> bool:
        """Write down the results of one job; False where what is recorded already is to be preferred."""
        key, row = results[0].key, row_of(results[0])
        places = dict.fromkeys((one.suite, one.contender, key) for one in results)
        self._db.executemany("INSERT OR IGNORE INTO members VALUES (?, ?, ?)", list(places))
        old = self._db.execute("SELECT * FROM jobs WHERE key = ?", (key,)).fetchone()
        if old is not None and not preferred(row, dict(old), just_made=just_made):
            return False
        marks = ", ".join("?" * len(COLUMNS))
        self._db.execute(f"INSERT OR REPLACE INTO jobs VALUES ({marks})", list(row.values()))
        self._db.execute("DELETE FROM scores WHERE key = ?", (key,))
        values = [(key, one.draw, metric, or_null(value)) for one in results for metric, value in one.values.items()]
        self._db.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?)", values)
        return True

    def contents(self) -> Contents:
        """Everything as it is at one moment, in an order that does not depend on when it was written."""
        with self._transaction("DEFERRED"):
            places = self._db.execute(
                "SELECT suite, source, target FROM wanted EXCEPT "
                "SELECT members.suite, jobs.source, jobs.target FROM members JOIN jobs USING (key) ORDER BY 1, 2, 3"
            )
            return Contents(self._results(), [tuple(place) for place in places])

    def results(self, suite: str | None = None) -> list[Result]:
        """One result for each draw and each place that a job fills, of one suite or of all."""
        return [one for one in self.contents().results if suite in (None, one.suite)]

    def _results(self) -> list[Result]:
        draws: dict[str, dict[int, dict[str, Any]]] = {}
        for key, draw, metric, value in self._db.execute("SELECT * FROM scores ORDER BY key, draw, metric"):
            draws.setdefault(key, {}).setdefault(draw, {})[metric] = value
        members: dict[str, list[tuple[str, str]]] = {}
        for suite, contender, key in self._db.execute("SELECT * FROM members ORDER BY suite, contender"):
            members.setdefault(key, []).append((suite, contender))
        rows = self._db.execute("SELECT * FROM jobs ORDER BY source, target, protocol, seed, key").fetchall()
        results: list[Result] = []
        for row in map(dict, rows):
            try:
                scores = draws.pop(row["key"], {})
                check_draws(scores)
                for suite, contender in members.get(row["key"], ()):
                    results += [result_of(row, suite, contender, draw, scores[draw]) for draw in sorted(scores)]
            except InputError as error:
                raise InputError(f"{self.path} is damaged. Job {str(row['key'])[:16]}: {error}") from error
        if draws:
            raise InputError(f"{self.path} is damaged: it has scores of jobs that are not in it ({len(draws)}).")
        return results

    def _transaction(self, kind: str = "IMMEDIATE") -> AbstractContextManager[None]:
        return transaction(self._db, self.path, WHAT, kind)

    def _is_ledger(self) -> bool:
        """Whether there are tables already; an InputError where they are no ledger's."""
        version, tables = tables_in(self._db)
        if version == SCHEMA_VERSION and tables == {name: _create(name, text) for name, text in TABLES.items()}:
            return True
        if not version and not tables:
            return False
        raise InputError(
            f"{self.path} is no ledger of this version ({SCHEMA_VERSION}); dicot {__version__} cannot read it. Export "
            "it to CSV with the dicot that wrote it, and take that over with `dicot bench merge`."
        )


def _create(name: str, columns: str) -> str:
    return f"CREATE TABLE {name} ({columns}) WITHOUT ROWID"


def row_of(result: Result) -> dict[str, Any]:
    """The facts of a result by column; NaN becomes NULL, which is what SQLite would make of it anyway."""
    row = {column: getattr(result, FIELDS.get(column, column)) for column in COLUMNS}
    return {name: or_null(value) for name, value in row.items()} | {"trial": int(result.trial)}


def or_null(value: Any) -> Any:
    """None in place of NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def result_of(row: Row, suite: str, contender: str, draw: int, values: Mapping[str, Any]) -> Result:
    """The result that a row stands for in one place of a suite; an InputError where the row cannot be true."""
    for name, kind in COLUMNS.items():
        optional = kind in ("REAL", "TEXT") and row[name] is None
        if not optional and (not isinstance(row[name], TYPES[kind.split()[0]]) or isinstance(row[name], bool)):
            raise InputError(f"{name} must be {kind.split()[0]}; got {quoted(row[name])}.")
    _check_config(row)
    for metric, value in values.items():
        if not isinstance(value, int | float | None) or isinstance(value, bool):
            raise InputError(f"{metric} must be a number; got {quoted(value)}.")
    facts = {FIELDS.get(name, name): value for name, value in row.items()}
    facts |= {field: math.nan if facts[field] is None else facts[field] for field in FIELDS.values()}
    numbers = {metric: math.nan if value is None else value for metric, value in values.items()}
    return Result(suite=suite, contender=contender, draw=draw, values=numbers, **{**facts, "trial": bool(row["trial"])})


def check_draws(draws: Iterable[int]) -> None:
    """Refuse draws of which one is missing, and a job without any: their mean would be another."""
    numbers = sorted(set(draws))
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        raise InputError(f"draws must be numbered from 1; got {numbers}: a row is lost.")


def _check_config(row: Row) -> None:
    """Refuse a configuration that is not the one of the key, or that the cells that repeat parts of it contradict."""
    if hashlib.sha256(row["config"].encode("utf-8", "surrogatepass")).hexdigest() != row["key"]:
        raise InputError(f"config does not hash to key: one of them was changed. config is {quoted(row['config'])}.")
    try:
        config, recipe = json.loads(row["config"]), json.loads(row["recipe"])
        dated = datetime.fromisoformat(row["recorded"]).tzinfo is not None
    except (ValueError, RecursionError) as error:
        raise InputError(f"config, recipe or recorded cannot be read: {error}.") from error
    if not isinstance(recipe, dict) or not dated:
        raise InputError("recipe must be a JSON object, and recorded a time with its zone.")
    expected = {name: config.get(name) for name in ("source", "target", "protocol", "seed")}
    for name, value in expected.items():
        if row[name] != value:
            raise InputError(f"{name} is {quoted(row[name])} where config says {quoted(value)}.")


def preferred(new: Row, old: Row, *, just_made: bool = False) -> bool:
    """Whether a row replaces another: the newer one does, but a failure replaces a result only where data changed.

    What was `just_made` is the newer one, even where a clock has been put back since the other was recorded.
    """
    newer = just_made or bool(new["recorded"] >= old["recorded"])
    if (new["error"] is None) == (old["error"] is None):
        return newer
    changed = any(new[name] and new[name] != old[name] for name in ("source_data", "target_data"))
    return new["error"] is None or (newer and changed)
