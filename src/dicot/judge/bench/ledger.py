"""The ledger: a SQLite file that many processes may write to, one row per job, failures included."""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from dicot import __version__
from dicot.core.errors import InputError
from dicot.core.storage.database import PATIENCE, connect, keep_log, snapshot, tables_in, transaction, translated
from dicot.judge.bench.rows import (
    COLUMNS,
    Member,
    Wanted,
    check_draws,
    checked_results,
    checked_wanted,
    or_null,
    preferred,
    row_of,
)
from dicot.judge.evaluation.jobs import Job
from dicot.judge.evaluation.result import Result

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
# Version 1 had no draws. Its ledgers are changed to version 2 when they are opened, read-only ones in memory alone.
TABLES_OF_VERSION = {1: {**TABLES, "scores": "key TEXT, metric TEXT, value REAL, PRIMARY KEY (key, metric)"}, 2: TABLES}
LATER = {"wanted"}  # tables that the first ledgers lack


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
        if read_only:
            if not self.path.exists():
                raise InputError(
                    f"There is no ledger at {self.path}. Name another with --ledger, or run a suite first."
                )
            self._db = snapshot(self.path, WHAT, PATIENCE)
        else:
            self._db = connect(self.path, WHAT, PATIENCE)
        self._db.row_factory = sqlite3.Row
        try:
            with self._transaction("DEFERRED"):  # before anything is changed, a journal mode too
                new = not self._version()
            if read_only and new:
                raise InputError(f"{self.path} is no ledger: there is nothing in it. Name another file.")
            with translated(self.path, WHAT):
                keep_log(self._db, PATIENCE)
            self._make_tables()
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
            return Contents(self._results(), self._unrecorded())

    def results(self, suite: str | None = None) -> list[Result]:
        """One result for each draw and each place that a job fills, of one suite or of all."""
        return [one for one in self.contents().results if suite in (None, one.suite)]

    def unrecorded(self) -> list[Wanted]:
        """What was wanted and has no row, not even a failed one: mostly data sets that were not at hand."""
        return self.contents().wanted

    def _results(self) -> list[Result]:
        draws: dict[str, dict[int, dict[str, Any]]] = {}
        for key, draw, metric, value in self._db.execute("SELECT * FROM scores ORDER BY key, draw, metric"):
            draws.setdefault(key, {}).setdefault(draw, {})[metric] = value
        members: dict[str, list[Member]] = {}
        for suite, contender, key in self._db.execute("SELECT * FROM members ORDER BY suite, contender"):
            members.setdefault(key, []).append((suite, contender))
        rows = self._db.execute("SELECT * FROM jobs ORDER BY source, target, protocol, seed, key").fetchall()
        results: list[Result] = []
        for row in map(dict, rows):
            key = row["key"]
            try:
                results += checked_results(row, scores := draws.pop(key, {}), members.get(key, ()))
                check_draws(scores)
            except InputError as error:
                raise InputError(f"{self.path} is damaged. Job {str(key)[:16]}: {error}") from error
        if draws:
            raise InputError(f"{self.path} is damaged: it has scores of jobs that are not in it ({len(draws)}).")
        return results

    def _unrecorded(self) -> list[Wanted]:
        places = self._db.execute(
            "SELECT suite, source, target FROM wanted EXCEPT "
            "SELECT members.suite, jobs.source, jobs.target FROM members JOIN jobs USING (key) ORDER BY 1, 2, 3"
        )
        try:
            return [checked_wanted(*place) for place in places]
        except InputError as error:
            raise InputError(f"{self.path} is damaged: {error}") from error

    def _transaction(self, kind: str = "IMMEDIATE") -> AbstractContextManager[None]:
        return transaction(self._db, self.path, WHAT, kind)

    def _version(self) -> int:
        """The version of a ledger, 0 for an empty file; an InputError for anything else."""
        version, tables = tables_in(self._db)
        if not version and not tables:
            return 0
        usual = {name: _create(name, text) for name, text in TABLES_OF_VERSION.get(version, {}).items()}
        if usual and tables.items() <= usual.items() and tables.keys() >= usual.keys() - LATER:
            return version
        raise InputError(
            f"{self.path} is no ledger, or one of version {version}; dicot {__version__} reads versions up to "
            f"{SCHEMA_VERSION}. Export it to CSV with the dicot that wrote it, and merge that into a new ledger: "
            "dicot bench merge."
        )

    def _make_tables(self) -> None:
        with self._transaction():  # of several processes that meet at a new file, one makes the tables
            version = self._version()
            if version == 1:
                self._db.execute("ALTER TABLE scores RENAME TO scores_without_draws")
            for name, columns in TABLES.items():
                self._db.execute(_create(name, columns).replace("TABLE", "TABLE IF NOT EXISTS", 1))
            if version == 1:
                self._db.execute("INSERT INTO scores SELECT key, 1, metric, value FROM scores_without_draws")
                self._db.execute("DROP TABLE scores_without_draws")
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _create(name: str, columns: str) -> str:
    return f"CREATE TABLE {name} ({columns}) WITHOUT ROWID"
