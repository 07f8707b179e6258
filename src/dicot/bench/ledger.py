"""The ledger: a SQLite file that many processes may write to, one row per job, failures included."""

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from dicot import __version__
from dicot.bench.checks import checked_line, checked_wanted
from dicot.bench.jobs import Job
from dicot.bench.lines import (
    COLUMNS,
    Contents,
    Line,
    Member,
    Result,
    Row,
    Wanted,
    line_of,
    number,
    preferred,
    record_of,
)
from dicot.bench.record import Record
from dicot.bench.sqlitefile import ERRORS, refusal, snapshot
from dicot.errors import InputError
from dicot.storage import writing

SCHEMA_VERSION = 1
PATIENCE = 60.0  # seconds that a writer waits for another
# A job may belong to several suites, and in one of them to several lines of a table. What a suite was asked to cover
# is kept beside it, so that a data set that was not at hand can be named.
TABLES = {
    "jobs": ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()),
    "scores": "key TEXT, metric TEXT, value REAL, PRIMARY KEY (key, metric)",
    "members": "suite TEXT, contender TEXT, key TEXT, PRIMARY KEY (suite, contender, key)",
    "wanted": "suite TEXT, source TEXT, target TEXT, PRIMARY KEY (suite, source, target)",
}
SCHEMA = {name: f"CREATE TABLE {name} ({columns}) WITHOUT ROWID" for name, columns in TABLES.items()}
LATER = {"wanted"}  # tables that ledgers of an earlier release lack


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
            self._db = snapshot(self.path, PATIENCE)
        else:
            with writing(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._translated():
                self._db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        try:
            with self._transaction("DEFERRED"):  # before anything is changed, a journal mode too
                new = self._is_new()
            if read_only and new:
                raise InputError(f"{self.path} is no ledger: there is nothing in it. Name another file.")
            with self._translated():
                self._begin_log()
                self._db.execute("PRAGMA synchronous = FULL")
            self._make_tables()
            if read_only:
                self._db.execute("PRAGMA query_only = ON")
        except BaseException:
            self.close()
            raise

    def _begin_log(self) -> None:
        """Write-ahead logging. Where several processes meet at a new file, SQLite refuses this one without waiting."""
        given_up = time.monotonic() + PATIENCE
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > given_up:
                    raise
                time.sleep(0.05)

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

    def record(self, job: Job, result: Result) -> None:
        """Write a job down, in place of what was recorded for it before unless that is to be preferred."""
        with self._transaction():
            self._add(line_of(job, result))

    def take(self, sources: Sequence[Contents]) -> list[tuple[int, int]]:
        """Take over what others recorded, all of it or nothing; of each how many lines, and how many were preferred."""
        with self._transaction():
            counts = []
            for lines, wanted in sources:
                self._want(wanted)
                counts.append((len(lines), sum([self._add(line) for line in lines])))
        return counts

    def _add(self, line: Line) -> bool:
        """False where what is recorded already is to be preferred."""
        key = line.row["key"]
        old = self._db.execute("SELECT * FROM jobs WHERE key = ?", (key,)).fetchone()
        self._db.executemany("INSERT OR IGNORE INTO members VALUES (?, ?, ?)", [(*m, key) for m in line.members])
        if old is not None and not preferred(line.row, dict(old)):
            return False
        marks = ", ".join("?" * len(COLUMNS))
        self._db.execute(f"INSERT OR REPLACE INTO jobs VALUES ({marks})", [line.row[name] for name in COLUMNS])
        self._db.execute("DELETE FROM scores WHERE key = ?", (key,))
        values = [(key, metric, number(value)) for metric, value in line.values.items()]
        self._db.executemany("INSERT INTO scores VALUES (?, ?, ?)", values)
        return True

    def contents(self) -> Contents:
        """Everything as it is at one moment, in an order that does not depend on when it was written."""
        with self._transaction("DEFERRED"):
            return Contents(self._lines(), self._unrecorded())

    def lines(self) -> list[Line]:
        """Everything that is recorded."""
        return self.contents().lines

    def unrecorded(self) -> list[Wanted]:
        """What was wanted and has no row, not even a failed one: mostly data sets that were not at hand."""
        return self.contents().wanted

    def rows(self) -> dict[str, Row]:
        """What is recorded, by key."""
        return {line.row["key"]: line.row for line in self.lines()}

    def records(self, suite: str | None = None) -> list[Record]:
        """One record for each metric of each place that a job fills, of one suite or of all."""
        return [
            record_of(line.row, member, metric, value)
            for line in self.lines()
            for member in line.members
            if suite in (None, member[0])
            for metric, value in line.values.items()
        ]

    def _lines(self) -> list[Line]:
        values: dict[str, dict[str, float | None]] = {}
        for key, metric, value in self._db.execute("SELECT * FROM scores ORDER BY key, metric"):
            values.setdefault(key, {})[metric] = value
        members: dict[str, list[Member]] = {}
        for suite, contender, key in self._db.execute("SELECT * FROM members ORDER BY suite, contender"):
            members.setdefault(key, []).append((suite, contender))
        rows = self._db.execute("SELECT * FROM jobs ORDER BY source, target, protocol, seed, key").fetchall()
        lines = []
        for row in map(dict, rows):
            key = row["key"]
            try:
                lines.append(checked_line(row, values.pop(key, {}), tuple(members.get(key, ()))))
            except InputError as error:
                raise InputError(f"{self.path} is damaged. Job {str(key)[:16]}: {error}") from error
        if values:
            raise InputError(f"{self.path} is damaged: it has scores of jobs that are not in it ({len(values)}).")
        return lines

    def _unrecorded(self) -> list[Wanted]:
        found = self._db.execute(
            "SELECT suite, source, target FROM wanted EXCEPT "
            "SELECT members.suite, jobs.source, jobs.target FROM members JOIN jobs USING (key) ORDER BY 1, 2, 3"
        )
        try:
            return [checked_wanted(*place) for place in found]
        except InputError as error:
            raise InputError(f"{self.path} is damaged: {error}") from error

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """All of the block or nothing; DEFERRED sees one moment and does not keep others from writing."""
        with self._translated():
            self._db.execute(f"BEGIN {kind}")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # SQLite may have given it up itself, for want of space for one
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """What SQLite says becomes an error of ours that names the file."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # a mistake of this code
        except ERRORS as error:
            raise refusal(self.path, error) from error

    def _is_new(self) -> bool:
        """False for a ledger; an InputError for anything else that is not empty."""
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        held = dict(self._db.execute("SELECT name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'").fetchall())
        if not version and not held:
            return True
        same = held.items() <= SCHEMA.items() and held.keys() >= SCHEMA.keys() - LATER
        if version == SCHEMA_VERSION and same:
            return False
        raise InputError(
            f"{self.path} is no ledger, or one of version {version}; dicot {__version__} reads version "
            f"{SCHEMA_VERSION}. Export it to CSV with the dicot that wrote it, and merge that into a new ledger: "
            "dicot bench merge."
        )

    def _make_tables(self) -> None:
        with self._transaction():  # of several processes that meet at a new file, one makes the tables
            if self._is_new():
                self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            for name, columns in TABLES.items():
                self._db.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns}) WITHOUT ROWID")
