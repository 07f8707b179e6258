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
from datetime import datetime
from itertools import product
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
SCHEMA = {name: f"CREATE TABLE {name} ({columns}) WITHOUT ROWID" for name, columns in TABLES.items()}

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
    is never changed, and may be written to by others meanwhile. Otherwise a file that is not there is made; an empty
    one counts as not there, because that is what another process begins with.
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
        with self._transaction():
            self._belong({(job.suite, job.contender.name, job.key) for job in jobs})
            self._want({(job.suite, job.source.name, job.target.name) for job in jobs})

    def _belong(self, places: Iterable[tuple[str, str, str]]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO members VALUES (?, ?, ?)", sorted(places))

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
        self._belong({(one.suite, one.contender, key) for one in results})
        old = self._db.execute("SELECT * FROM jobs WHERE key = ?", (key,)).fetchone()
        if old is not None and not preferred(row, dict(old), just_made=just_made):
            return False
        marks = ", ".join("?" * len(COLUMNS))
        self._db.execute(f"INSERT OR REPLACE INTO jobs VALUES ({marks})", list(row.values()))
        self._db.execute("DELETE FROM scores WHERE key = ?", (key,))
        values = [(key, one.draw, metric, value) for one in results for metric, value in one.values.items()]
        self._db.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?)", values)
        return True

    def contents(self) -> Contents:
        """Everything as it is at one moment, in an order that does not depend on when it was written."""
        scores: dict[str, dict[int, dict[str, Any]]] = {}
        members: dict[str, list[tuple[str, str]]] = {}
        with transaction(self._db, self.path, WHAT, "DEFERRED"):
            missing = self._db.execute(
                "SELECT suite, source, target FROM wanted EXCEPT "
                "SELECT members.suite, jobs.source, jobs.target FROM members JOIN jobs USING (key) ORDER BY 1, 2, 3"
            ).fetchall()
            for key, draw, metric, value in self._db.execute("SELECT * FROM scores ORDER BY key, draw, metric"):
                scores.setdefault(key, {}).setdefault(draw, {})[metric] = math.nan if value is None else value
            for suite, contender, key in self._db.execute("SELECT * FROM members ORDER BY suite, contender"):
                members.setdefault(key, []).append((suite, contender))
            jobs = self._db.execute("SELECT * FROM jobs ORDER BY source, target, protocol, seed, key").fetchall()
        rows = []
        for job in map(dict, jobs):
            draws, where = scores.pop(job["key"], {1: {}}), f"{self.path} is damaged: job {str(job['key'])[:16]}"
            for place, draw in product(members.get(job["key"], ()), sorted(draws)):
                rows.append((where, {**job, **dict(zip(PLACE, (*place, draw), strict=True)), **draws[draw]}))
        if scores:
            raise InputError(f"{self.path} is damaged: it has scores of jobs that are not in it ({len(scores)}).")
        return Contents(_results(self.path, rows), [tuple(place) for place in missing])

    def results(self, suite: str | None = None) -> list[Result]:
        """One result for each draw and each place that a job fills, of one suite or of all."""
        return [one for one in self.contents().results if suite in (None, one.suite)]

    def _transaction(self) -> AbstractContextManager[None]:
        return transaction(self._db, self.path, WHAT)


def _results(path: Path, rows: Iterable[tuple[str, Row]]) -> list[Result]:
    """Rows of a ledger or of a table as results; each comes with words that say where it stands, for an InputError."""
    results, draws = list[Result](), dict[tuple[str, ...], set[int]]()
    for where, cells in rows:
        try:
            one = _result(cells)
        except ValueError as error:
            raise InputError(f"{where}: {error}") from error
        results.append(one)
        draws.setdefault((one.key, one.recorded, one.suite, one.contender), set()).add(one.draw)
    for (key, *_), found in draws.items():
        if found != set(range(1, len(found) + 1)):  # their mean would be another
            raise InputError(f"{path}, key {key[:16]}: draws are numbered from 1; got {sorted(found)}: a row is lost.")
    return results


def _result(cells: Row) -> Result:
    """The result that a row stands for in one place of a suite; a ValueError where the row cannot be true."""
    row = {name: _cell(cells[name], kind) for name, kind in COLUMNS.items()}
    for name, kind in COLUMNS.items():
        optional = kind in ("REAL", "TEXT") and row[name] is None
        if not optional and not isinstance(row[name], TYPES[kind.split()[0]]):
            raise InputError(f"{name} must be {kind.split()[0]}; got {quoted(row[name])}.")
    if hashlib.sha256(row["config"].encode("utf-8", "surrogatepass")).hexdigest() != row["key"]:
        raise InputError(f"config does not hash to key: one of them was changed. config is {quoted(row['config'])}.")
    config = json.loads(row["config"])
    for name in ("source", "target", "protocol", "seed"):
        if row[name] != config.get(name):
            raise InputError(f"{name} is {quoted(row[name])} where config says {quoted(config.get(name))}.")
    dated = datetime.fromisoformat(row["recorded"]).tzinfo is not None
    if not dated or not isinstance(json.loads(row["recipe"]), dict):
        raise InputError("recipe must be a JSON object, and recorded a time with its zone.")
    facts = {FIELDS.get(name, name): value for name, value in row.items()} | {"trial": bool(row["trial"])}
    facts |= {field: math.nan if facts[field] is None else facts[field] for field in FIELDS.values()}
    metrics = [name for name in cells if name not in (*PLACE, *COLUMNS) and cells[name] not in EMPTY]
    if not metrics:
        raise InputError("there are no scores: the row is not whole.")
    values = {name: float(cells[name]) for name in metrics}
    draw, contender = _cell(cells.get(DRAW, 1), "INTEGER"), cells[CONTENDER]
    current = todays_config(config)
    if current != config:
        before, now = config["settings"]["preset"], current["settings"]["preset"]
        if contender.startswith(before):
            contender = now + contender.removeprefix(before)
        facts |= {"config": canonical(current), "key": key_of(current)}
    return Result(suite=cells[SUITE], contender=contender, draw=draw, values=values, **facts)


def _cell(value: Any, kind: str) -> Any:
    """A cell of either kind of table as the ledger holds it."""
    if value in EMPTY:  # an empty text of a CSV file may be a text; what a Parquet file lacks is not there
        return value if "TEXT NOT NULL" in kind else None
    if kind.startswith("INTEGER"):
        return int(value)
    return float(value) if kind == "REAL" else value


def preferred(new: Row, old: Row, *, just_made: bool = False) -> bool:
    """Whether a row replaces another: the newer one does, but a failure replaces a result only where data changed.

    What was `just_made` is the newer one, even where a clock has been put back since the other was recorded.
    """
    newer = just_made or bool(new["recorded"] >= old["recorded"])
    if (new["error"] is None) == (old["error"] is None):
        return newer
    changed = any(new[name] and new[name] != old[name] for name in ("source_data", "target_data"))
    return new["error"] is None or (newer and changed)


def write_table(path: str | Path, results: Iterable[Result], wanted: Iterable[Wanted] = ()) -> int:
    """Write results as .csv or .parquet, whole or not at all; how many rows.

    A data set that a suite wants and that has no result is a row with nothing but that.
    """
    path = Path(path)
    check_export(path)
    columns, rows = table_of(results)
    rows += [dict(zip(WANTED, place, strict=True)) for place in wanted]
    write_atomic(path, _parquet(rows, columns) if path.suffix == ".parquet" else as_csv(columns, rows))
    return len(rows)


def check_export(path: Path) -> None:
    """Refuse what cannot be written, before any work is done."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: a ledger is exported as {' or '.join(SUFFIXES)}.")
    if path.suffix == ".parquet":
        arrow()


def _parquet(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    pa, pq = arrow()
    kinds = {"TEXT": pa.string(), "INTEGER": pa.int64(), "REAL": pa.float64()}
    known = {name: kinds[kind.split()[0]] for name, kind in COLUMNS.items()}
    known |= {SUITE: pa.string(), CONTENDER: pa.string(), DRAW: pa.int64()}
    schema = pa.schema([(name, known.get(name, pa.float64())) for name in columns])
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def read_records(ledger: Path | None, records: Path | None) -> Contents:
    """What a ledger holds, or the exported tables of a file or a folder, joined as `python -m bench merge` would."""
    if (ledger is None) == (records is None):
        raise InputError("Give either --ledger FILE or --records FILE.")
    if ledger is not None:
        return read_contents(ledger)
    assert records is not None
    with Ledger(":memory:") as book:
        book.take([read_contents(path) for path in exports_in(records)])
        return book.contents()


def exports_in(path: Path) -> list[Path]:
    """The exported tables of a folder, by name, but not those of benchmarks; a file is one by itself."""
    if not path.is_dir():
        return [path]
    tables = sorted(
        one for one in path.iterdir() if one.suffix.lower() in SUFFIXES and not one.name.startswith(MEASURED)
    )
    if not tables:
        raise InputError(f"The folder {path} holds no {' and no '.join(SUFFIXES)} to read results from.")
    return tables


def read_contents(path: str | Path) -> Contents:
    """All of a ledger or of an exported table; the file is only read. An InputError where a part of it is wrong."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        with Ledger(path, read_only=True) as ledger:
            return ledger.contents()
    try:
        if path.suffix.lower() == ".parquet":
            table = read_table(path)
            columns, rows = list(table.schema.names), table.to_pylist()
        else:
            columns, rows = _read_csv(path)
    except DicotError:
        raise
    except Exception as error:  # csv and pyarrow have many for what a damaged file may hold
        raise InputError(f"{path} cannot be read as a table ({error}). Write or fetch the file again.") from error
    if lost := [name for name in (SUITE, CONTENDER, *COLUMNS) if name not in columns]:
        raise InputError(f"{path} is no exported ledger: it lacks {', '.join(lost)}.")
    numbered = [(f"{path}, row {number}", cells) for number, cells in enumerate(rows, start=1)]
    wanted = [(where, cells) for where, cells in numbered if cells["key"] in EMPTY]  # and nothing else
    for where, cells in wanted:
        if any(cell not in EMPTY for name, cell in cells.items() if name not in WANTED):
            raise InputError(f"{where}: there is no key, but other cells are filled: the row is not whole.")
    whole = [(where, cells) for where, cells in numbered if cells["key"] not in EMPTY]
    contents = Contents(_results(path, whole), [(c["suite"], c["source"], c["target"]) for _, c in wanted])
    known = {name: make().metric_names for name, make in every_protocol().items()}
    told: dict[tuple[object, ...], object] = {}  # the facts about a job, and the values of each draw
    for (where, _), one in zip(whole, contents.results, strict=True):
        if foreign := sorted(one.values.keys() - set(known.get(one.protocol, one.values))):
            raise InputError(f"{where}: {one.protocol} has no metric {', '.join(foreign)}.")
        job = (one.key, one.recorded)
        for about, facts in ((job, row_of(one)), ((*job, one.draw), repr(sorted(one.values.items())))):
            if told.setdefault(about, facts) != facts:
                raise InputError(f"{where}: another row says something else about the same job.")
    return contents


def _read_csv(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Read cells as text; pandas would fill up a row that was cut off."""
    text = path.read_bytes().decode("utf-8-sig")
    if not text.endswith("\n"):
        raise InputError(f"{path} was cut off: its last line has no end. Write or fetch the file again.")
    columns, *rows = filter(None, csv.reader(io.StringIO(text, newline=""), strict=True))
    return columns, [dict(zip(columns, row, strict=True)) for row in rows]
