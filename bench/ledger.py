"""The ledger: a SQLite file that many processes may write to, one row per job, failures included.

It travels as a table too, CSV or Parquet, with one row per result and metrics as columns.
"""

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.recorded import todays_config
from dicot.core.database import open_tables, transaction
from dicot.core.errors import DicotError, InputError, quoted
from dicot.core.storage import arrow, write_atomic
from dicot.data.tables import read_table
from dicot.judge.protocols import every_protocol
from dicot.judge.report.scorefile import COLUMNS, CONTENDER, DRAW, FIELDS, PLACE, SUITE, as_csv, row_of, table_of
from dicot.judge.result import Result, canonical, key_of

if TYPE_CHECKING:
    from dicot.judge.evaluation.jobs import Job

SCHEMA_VERSION = 2
WHAT = "ledger"  # in messages about the file
# A job may belong to several suites, and in one of them to several lines of a table. What a suite was asked to cover
# is kept too, so that a data set that was not at hand can be named.
TABLES = {
    "jobs": ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()),
    "scores": "key TEXT, draw INTEGER, metric TEXT, value REAL, PRIMARY KEY (key, draw, metric)",
    "members": "suite TEXT, contender TEXT, key TEXT, PRIMARY KEY (suite, contender, key)",
    "wanted": "suite TEXT, source TEXT, target TEXT, PRIMARY KEY (suite, source, target)",
}
SCHEMA = {name: f"CREATE TABLE {name} ({columns}) WITHOUT ROWID" for name, columns in TABLES.items()}
EVERY_RESULT = """
    SELECT members.suite, members.contender, scores.draw, scores.metric, scores.value, jobs.*
    FROM jobs JOIN members USING (key) LEFT JOIN scores USING (key)
    ORDER BY source, target, protocol, seed, jobs.key, members.suite, members.contender, draw, metric
"""
WITHOUT_RESULT = """
    SELECT suite, source, target FROM wanted
    EXCEPT SELECT members.suite, jobs.source, jobs.target FROM members JOIN jobs USING (key)
    ORDER BY 1, 2, 3
"""

WANTED = ("suite", "source", "target")
SUFFIXES = (".csv", ".parquet")
EMPTY = ("", None)  # a cell of a CSV or of a Parquet file
MEASURED = ("exponents", "times")  # how tables begin that lie beside exports: benchmarks wrote them, not a ledger

Row = Mapping[str, Any]  # by column
Wanted = tuple[str, str, str]  # suite, source, target


class Contents(NamedTuple):
    """All that a ledger holds, or what is to be taken over into one."""

    results: list[Result]
    wanted: list[Wanted]  # what suites were to cover and has no result


class Ledger(AbstractContextManager["Ledger"]):
    """An open ledger; close it, or use it in a `with`. Every process opens its own.

    With `read_only` it is the ledger as it was when it was opened: a copy in memory, so that the file may be read-only,
    is never changed, and may be written to by others meanwhile. Otherwise a file that is not there is made.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._db = open_tables(self.path, WHAT, SCHEMA, SCHEMA_VERSION, read_only=read_only)

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def enrol(self, jobs: "Iterable[Job]") -> None:
        """Say which places in suites these jobs fill, whether or not they have been run."""
        jobs = list(jobs)
        with transaction(self._db, self.path, WHAT):
            self._insert("members", {(job.suite, job.contender.name, job.key) for job in jobs})
            self._insert("wanted", {(job.suite, job.source.name, job.target.name) for job in jobs})

    def record(self, results: Sequence[Result]) -> None:
        """Write down the results of a job that has just run, unless what was recorded before is to be preferred."""
        with transaction(self._db, self.path, WHAT):
            self._add(results, just_made=True)

    def take(self, sources: Sequence[Contents]) -> list[tuple[int, int]]:
        """Take over what others recorded, all of it or nothing; of each how many results, and how many were taken."""
        counts = []
        with transaction(self._db, self.path, WHAT):
            for results, wanted in sources:
                self._insert("wanted", wanted)
                results_of_job: dict[tuple[str, str], list[Result]] = {}
                for result in results:
                    results_of_job.setdefault((result.key, result.recorded), []).append(result)
                taken = [len(group) for group in results_of_job.values() if self._add(group)]
                counts.append((len(results), sum(taken)))
        return counts

    def _add(self, results: Sequence[Result], *, just_made: bool = False) -> bool:
        """Write down the results of one job; False where what is recorded already is to be preferred."""
        key, row = results[0].key, row_of(results[0])
        self._insert("members", {(result.suite, result.contender, key) for result in results})
        old = self._db.execute("SELECT * FROM jobs WHERE key = ?", (key,)).fetchone()
        if old is not None and not preferred(row, dict(old), just_made=just_made):
            return False

        self._db.execute("DELETE FROM jobs WHERE key = ?", (key,))
        self._db.execute("DELETE FROM scores WHERE key = ?", (key,))
        self._insert("jobs", [tuple(row.values())])
        scores = {(key, result.draw, metric): value for result in results for metric, value in result.values.items()}
        self._insert("scores", [(*place, value) for place, value in scores.items()])
        return True

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            marks = ", ".join("?" * len(row))
            self._db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)

    def contents(self) -> Contents:
        """Everything as it is at one moment, in an order that does not depend on when it was written."""
        with transaction(self._db, self.path, WHAT, "DEFERRED"):
            wanted = [tuple(place) for place in self._db.execute(WITHOUT_RESULT)]
            scores = self._db.execute(EVERY_RESULT).fetchall()

        rows: dict[tuple[str, ...], dict[str, Any]] = {}
        for score in map(dict, scores):
            metric, value = score.pop("metric"), score.pop("value")
            row = rows.setdefault((score["key"], *(score[name] for name in PLACE)), score)
            if metric is not None:
                row[metric] = math.nan if value is None else value
        return Contents(results_of(self.path, rows.values()), wanted)

    def results(self, suite: str | None = None) -> list[Result]:
        """One result for each draw and each place that a job fills, of one suite or of all."""
        return [result for result in self.contents().results if suite in (None, result.suite)]


def preferred(new: Row, old: Row, *, just_made: bool = False) -> bool:
    """Whether a row replaces another: the newer one does, but a failure replaces a result only where data changed.

    What was `just_made` is the newer one, even where a clock has been put back since the other was recorded.
    """
    newer = just_made or bool(new["recorded"] >= old["recorded"])
    if (new["error"] is None) == (old["error"] is None):
        return newer
    changed = any(new[name] and new[name] != old[name] for name in ("source_data", "target_data"))
    return new["error"] is None or (newer and changed)


def results_of(path: Path, rows: Iterable[Row]) -> list[Result]:
    """Make results of the rows of a ledger or of a table; an InputError names the row that cannot be true."""
    results: list[Result] = []
    draws: dict[tuple[str, ...], set[int]] = {}
    first_values: dict[tuple[str, str, int], str] = {}
    metrics = {name: set(make().metric_names) for name, make in every_protocol().items()}
    for number, row in enumerate(rows, start=1):
        try:
            result = result_of(row)
        except (ValueError, TypeError) as error:
            raise InputError(f"{path}, row {number}: {error}") from error
        results.append(result)
        # A protocol that is gone may have had any metric.
        foreign = sorted(result.values.keys() - metrics.get(result.protocol, result.values.keys()))
        if foreign:
            raise InputError(f"{path}, row {number}: {result.protocol} has no metric {', '.join(foreign)}.")
        values = repr(sorted(result.values.items()))
        if first_values.setdefault((result.key, result.recorded, result.draw), values) != values:
            raise InputError(f"{path}, row {number}: another row says something else about the same job.")
        draws.setdefault((result.key, result.recorded, result.suite, result.contender), set()).add(result.draw)

    for (key, *_), numbers in draws.items():
        if numbers != set(range(1, len(numbers) + 1)):  # their mean would be another
            raise InputError(
                f"{path}, key {key[:16]}: draws are numbered from 1; got {sorted(numbers)}: a row is lost."
            )
    return results


def result_of(row: Row) -> Result:
    """Make the result that a row stands for in one place of a suite; a ValueError where the row cannot be true."""
    facts = {name: cell(row[name], kind) for name, kind in COLUMNS.items()}
    if hashlib.sha256(facts["config"].encode("utf-8", "surrogatepass")).hexdigest() != facts["key"]:
        raise InputError(f"config does not hash to key: one was changed. config is {quoted(facts['config'])}.")
    config = json.loads(facts["config"])
    for name in ("source", "target", "protocol", "seed"):
        if facts[name] != config.get(name):
            raise InputError(f"{name} is {quoted(facts[name])} where config says {quoted(config.get(name))}.")

    current, contender = todays_config(config), row[CONTENDER]
    if current != config:
        before, now = config["settings"]["preset"], current["settings"]["preset"]
        if contender.startswith(before):
            contender = now + contender.removeprefix(before)
        facts |= {"config": canonical(current), "key": key_of(current)}

    values = {name: float(row[name]) for name in row if name not in (*PLACE, *COLUMNS) and row[name] not in EMPTY}
    if not values:
        raise InputError("there are no scores: the row is not whole.")
    for column, field in FIELDS.items():
        seconds = facts.pop(column)
        facts[field] = math.nan if seconds is None else seconds
    facts["trial"] = bool(facts["trial"])
    draw = int(row.get(DRAW) or 1)
    return Result(suite=row[SUITE], contender=contender, draw=draw, values=values, **facts)


def cell(value: Any, kind: str) -> Any:
    """A cell of either kind of table as the ledger holds it."""
    if value in EMPTY:  # an empty text of a CSV file may be a text; what a Parquet file lacks is not there
        if value is None and "NOT NULL" in kind:
            raise InputError("a cell is lost.")
        return value if "TEXT NOT NULL" in kind else None
    if kind.startswith("INTEGER"):
        return int(value)
    return float(value) if kind == "REAL" else value


def write_table(path: str | Path, results: Iterable[Result], wanted: Iterable[Wanted] = ()) -> int:
    """Write results as .csv or .parquet, whole or not at all; how many rows.

    A data set that a suite wants and that has no result is a row with nothing but that.
    """
    path = Path(path)
    check_export(path)
    columns, rows = table_of(results)
    rows += [dict(zip(WANTED, place, strict=True)) for place in wanted]
    write_atomic(path, as_parquet(columns, rows) if path.suffix == ".parquet" else as_csv(columns, rows))
    return len(rows)


def check_export(path: Path) -> None:
    """Refuse what cannot be written, before any work is done."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: a ledger is exported as {' or '.join(SUFFIXES)}.")
    if path.suffix == ".parquet":
        arrow()


def as_parquet(columns: Sequence[str], rows: list[dict[str, Any]]) -> bytes:
    pa, pq = arrow()
    kinds = {"TEXT": pa.string(), "INTEGER": pa.int64(), "REAL": pa.float64()}
    types = {name: kinds[kind.split()[0]] for name, kind in COLUMNS.items()}
    types |= {SUITE: pa.string(), CONTENDER: pa.string(), DRAW: pa.int64()}
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in columns])
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def read_records(ledger: Path | None, records: Path | None) -> Contents:
    """What a ledger holds, or the exported tables of a file or a folder, joined as `python -m bench merge` would."""
    if (ledger is None) == (records is None):
        raise InputError("Give either --ledger FILE or --records FILE.")
    if records is None:
        assert ledger is not None
        return read_contents(ledger)
    with Ledger(":memory:") as book:
        book.take([read_contents(path) for path in exports_in(records)])
        return book.contents()


def exports_in(path: Path) -> list[Path]:
    """The exported tables of a folder, by name, but not those of benchmarks; a file is one by itself."""
    if not path.is_dir():
        return [path]
    tables = [file for file in path.iterdir() if file.suffix.lower() in SUFFIXES]
    exports = sorted(file for file in tables if not file.name.startswith(MEASURED))
    if not exports:
        raise InputError(f"The folder {path} holds no {' and no '.join(SUFFIXES)} to read results from.")
    return exports


def read_contents(path: str | Path) -> Contents:
    """All of a ledger or of an exported table; the file is only read. An InputError where a part of it is wrong."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        with Ledger(path, read_only=True) as ledger:
            return ledger.contents()

    try:
        rows = read_table(path).to_pylist() if path.suffix.lower() == ".parquet" else read_csv(path)
    except DicotError:
        raise
    except Exception as error:  # csv and pyarrow have many for what a damaged file may hold
        raise InputError(f"{path} cannot be read as a table ({error}). Write or fetch the file again.") from error
    lost = [name for name in (SUITE, CONTENDER, *COLUMNS) if rows and name not in rows[0]]
    if lost:
        raise InputError(f"{path} is no exported ledger: it lacks {', '.join(lost)}.")

    wanted = [row for row in rows if row["key"] in EMPTY]
    if any(row["config"] not in EMPTY for row in wanted):
        raise InputError(f"{path}: a row has no key, but other cells are filled: it is not whole.")
    results = results_of(path, [row for row in rows if row["key"] not in EMPTY])
    return Contents(results, [(row["suite"], row["source"], row["target"]) for row in wanted])


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Read cells as text; pandas would fill up a row that was cut off."""
    text = path.read_bytes().decode("utf-8-sig")
    if not text.endswith("\n"):
        raise InputError(f"{path} was cut off: its last line has no end. Write or fetch the file again.")
    columns, *rows = filter(None, csv.reader(io.StringIO(text, newline=""), strict=True))
    return [dict(zip(columns, row, strict=True)) for row in rows]
