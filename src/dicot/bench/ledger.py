"""The ledger: a SQLite file that many processes may write to, one row per job, failures included."""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from dicot import __version__
from dicot.bench.jobs import Job
from dicot.bench.lines import COLUMNS, Line, Member, Result, Row, line_of, number, preferred, record_of
from dicot.bench.record import Record
from dicot.errors import InputError

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
Wanted = tuple[str, str, str]  # suite, source, target


class Ledger:
    """An open ledger; close it, or use it in a `with`. Every process opens its own."""

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.exists():
            raise InputError(f"There is no ledger at {self.path}. Name another with --ledger, or run a suite first.")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        try:
            self._begin_log()
            self._db.execute("PRAGMA synchronous = FULL")
            self._check_version()
        except sqlite3.DatabaseError as error:
            self.close()
            raise InputError(f"{self.path} cannot be opened as a ledger ({error}). Name another file.") from error
        except InputError:
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
        with self._writing():
            self._db.executemany("INSERT OR IGNORE INTO members VALUES (?, ?, ?)", sorted(places))
        self.want({(job.suite, job.source.name, job.target.name) for job in jobs})

    def want(self, wanted: Iterable[Wanted]) -> None:
        """Say which data sets a suite is to cover."""
        with self._writing():
            self._db.executemany("INSERT OR IGNORE INTO wanted VALUES (?, ?, ?)", sorted(wanted))

    def unrecorded(self) -> list[Wanted]:
        """What was wanted and has no row, not even a failed one: mostly data sets that were not at hand."""
        found = self._db.execute(
            "SELECT suite, source, target FROM wanted EXCEPT "
            "SELECT members.suite, jobs.source, jobs.target FROM members JOIN jobs USING (key) ORDER BY 1, 2, 3"
        )
        return [(suite, source, target) for suite, source, target in found]

    def record(self, job: Job, result: Result) -> None:
        """Write a job down, in place of what was recorded for it before; see `add`."""
        self.add(line_of(job, result))

    def add(self, line: Line) -> bool:
        """All of a line or nothing; False where what is recorded already is to be preferred."""
        key = line.row["key"]
        with self._writing():
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

    def rows(self) -> dict[str, Row]:
        """What is recorded, by key."""
        return {row["key"]: dict(row) for row in self._db.execute("SELECT * FROM jobs")}

    def lines(self) -> Iterator[Line]:
        """Everything, in an order that does not depend on when it was written."""
        values: dict[str, dict[str, float | None]] = {}
        for key, metric, value in self._db.execute("SELECT * FROM scores ORDER BY key, metric"):
            values.setdefault(key, {})[metric] = value
        members: dict[str, list[Member]] = {}
        for suite, contender, key in self._db.execute("SELECT * FROM members ORDER BY suite, contender"):
            members.setdefault(key, []).append((suite, contender))
        for row in self._db.execute("SELECT * FROM jobs ORDER BY source, target, protocol, seed, key"):
            yield Line(dict(row), values.get(row["key"], {}), tuple(members.get(row["key"], ())))

    def records(self, suite: str | None = None) -> list[Record]:
        """One record for each metric of each place that a job fills, of one suite or of all."""
        return [
            record_of(line.row, member, metric, value)
            for line in self.lines()
            for member in line.members
            if suite in (None, member[0])
            for metric, value in line.values.items()
        ]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _check_version(self) -> None:
        with self._writing():  # of several processes that meet at a new file, one makes the tables
            (found,) = self._db.execute("PRAGMA user_version").fetchone()
            (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            new = not found and not tables
            if new:
                self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            if new or found == SCHEMA_VERSION:
                for name, columns in TABLES.items():
                    self._db.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns}) WITHOUT ROWID")
                return
        raise InputError(
            f"{self.path} is no ledger, or one of version {found}; dicot {__version__} reads version "
            f"{SCHEMA_VERSION}. Export it to CSV with the dicot that wrote it, and merge that into a new ledger: "
            "dicot bench merge."
        )
