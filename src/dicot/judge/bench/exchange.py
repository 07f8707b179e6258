"""Results as a table: one row per result, metrics as columns, in CSV or Parquet; ledgers written as such and merged."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dicot.core.errors import DicotError, InputError
from dicot.core.storage import arrow, write_atomic
from dicot.data.parquetfile import read_table
from dicot.judge.bench.ledger import Contents, Ledger
from dicot.judge.bench.rows import COLUMNS, Wanted, check_draws, checked_results, checked_wanted, known_metrics, row_of
from dicot.judge.evaluation.result import Result

PLACE = ("suite", "contender")
DRAW = "draw"  # a column that is there where labelled cases were drawn more than once
WANTED = ("suite", "source", "target")
SUFFIXES = (".csv", ".parquet")
WHOLE = re.compile(r"-?[0-9]+")
Cells = Mapping[str, Any]


class TableRow(NamedTuple):
    """The cells of a row by column, and the line of the file that it begins in."""

    line: int
    cells: Cells


def export_ledger(ledger: Ledger, path: str | Path) -> int:
    """Write a ledger as a table and say how many rows that is.

    A data set that a suite wants and that has no result is a row with nothing but that.
    """
    results, wanted = ledger.contents()
    return write_table(path, results, wanted)


def write_table(path: str | Path, results: Iterable[Result], wanted: Iterable[Wanted] = ()) -> int:
    """Write results as .csv or .parquet, whole or not at all; how many rows.

    A value is empty where the protocol has no such metric, and NaN where the job failed.
    """
    path, results = Path(path), list(results)
    check_export(path)
    metrics = sorted({metric for result in results for metric in result.values})
    rows = [
        {"suite": one.suite, "contender": one.contender, DRAW: one.draw, **row_of(one), **one.values} for one in results
    ]
    rows += [dict(zip(WANTED, place, strict=True)) for place in wanted]
    facts = list(COLUMNS)
    if any(one.draw > 1 for one in results):
        facts.insert(facts.index("seed") + 1, DRAW)
    columns = [*PLACE, *facts, *metrics]
    write_atomic(path, _parquet(rows, columns) if path.suffix == ".parquet" else _csv(rows, columns))
    return len(rows)


def check_export(path: Path) -> None:
    """Refuse what cannot be written, before any work is done."""
    if path.suffix not in SUFFIXES:
        raise InputError(
            f"{path}: a ledger is exported as {' or '.join(SUFFIXES)}; got {path.suffix or 'no suffix'!r}."
        )
    if path.suffix == ".parquet":
        arrow()


def merge_ledger(ledger: Ledger, other: str | Path) -> tuple[int, int]:
    """Take over the rows of a ledger or of a table; how many there were and how many of them were taken.

    Of two rows for one job the newer one stays, but a result is not replaced by a failure. Where anything is wrong
    with the other file, nothing is taken over.
    """
    (counts,) = ledger.take([read_contents(other)])
    return counts


def read_records(ledger: Path | None, records: Path | None) -> Contents:
    """What a ledger holds, or the exported tables of a file or a folder, joined as `merge_ledger` would."""
    if (ledger is None) == (records is None):
        raise InputError("Give either --ledger FILE or --records FILE.")
    if ledger is not None:
        with Ledger(ledger, read_only=True) as book:
            return book.contents()
    assert records is not None
    with Ledger(":memory:") as book:
        book.take([read_contents(path) for path in tables_in(records)])
        return book.contents()


def tables_in(path: Path) -> list[Path]:
    """The exported tables of a folder, by name; a file is one by itself."""
    if not path.is_dir():
        return [path]
    tables = sorted(one for one in path.iterdir() if one.suffix.lower() in SUFFIXES)
    if not tables:
        raise InputError(f"The folder {path} holds no {' and no '.join(SUFFIXES)} to read results from.")
    return tables


def read_contents(path: str | Path) -> Contents:
    """All of a ledger or of an exported table; the file is only read. An InputError where a part of it is wrong."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no file {path} to merge.")
    if path.suffix.lower() not in SUFFIXES:
        with Ledger(path, read_only=True) as ledger:
            return ledger.contents()
    columns, rows = _read_parquet(path) if path.suffix.lower() == ".parquet" else read_csv(path)
    return _contents(path, columns, rows)


def _contents(path: Path, columns: Sequence[str], rows: Iterable[TableRow]) -> Contents:
    if lost := [name for name in (*PLACE, *COLUMNS) if name not in columns]:
        raise InputError(f"{path} is no exported ledger: row 1 lacks {', '.join(lost)}.")
    metrics = [name for name in columns if name not in (*PLACE, DRAW, *COLUMNS)]
    known = known_metrics()
    contents = Contents([], [])
    first: dict[tuple[object, ...], tuple[int, object]] = {}  # the facts about a job and the values of each draw
    draws: dict[tuple[str, str, str, str], list[int]] = {}  # by job, suite and contender
    for line, cells in rows:
        try:
            if cells["key"] in ("", None):
                contents.wanted.append(_wanted(cells))
                continue
            result = _result(cells, metrics)
            if foreign := sorted(result.values.keys() - set(known.get(result.protocol, result.values))):
                usual = ", ".join(known[result.protocol])
                raise InputError(f"{result.protocol} gives {usual}; got a value for {', '.join(foreign)}.")
            job = (result.key, result.recorded)
            values = {metric: repr(value) for metric, value in result.values.items()}  # NaN is not equal to itself
            for about, facts in ((job, row_of(result)), ((*job, result.draw), values)):
                before, same = first.setdefault(about, (line, facts))
                if same != facts:
                    raise InputError(
                        f"it says something else about the job of line {before}, of the same key and time."
                    )
            draws.setdefault((*job, result.suite, result.contender), []).append(result.draw)
        except InputError as error:
            raise InputError(f"{path}, line {line}: {error}") from error
        contents.results.append(result)
    for (key, _, suite, contender), numbers in draws.items():
        try:
            check_draws(numbers)
        except InputError as error:
            raise InputError(f"{path}: {contender} in {suite}, key {key[:16]}: {error}") from error
    filled = {metric for one in contents.results for metric in one.values}.union(*known.values())
    if foreign := [name for name in metrics if name not in filled]:
        raise InputError(f"{path} has columns that no ledger has: {', '.join(map(repr, foreign))}. Remove them.")
    return contents


def _csv(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    pa, pq = arrow()
    kinds = {"TEXT": pa.string(), "INTE": pa.int64(), "REAL": pa.float64()}
    fields = [(name, kinds[COLUMNS[name][:4]] if name in COLUMNS else pa.float64()) for name in columns]
    other = {**dict.fromkeys(PLACE, pa.string()), DRAW: pa.int64()}
    fields = [(name, other.get(name, kind)) for name, kind in fields]
    table, file = pa.Table.from_pylist(rows, schema=pa.schema(fields)), io.BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def _read_parquet(path: Path) -> tuple[list[str], list[TableRow]]:
    try:
        table = read_table(path)
        names = list(table.schema.names)
        _check_columns(path, names)
        return names, [TableRow(number, cells) for number, cells in enumerate(table.to_pylist(), start=1)]
    except DicotError:
        raise
    except Exception as error:  # pyarrow has many for what a damaged file may hold
        raise InputError(f"{path} cannot be read as Parquet ({error}). Write or fetch the file again.") from error


def _result(cells: Cells, metrics: Sequence[str]) -> Result:
    row = {name: _cell(cells[name], name, kind) for name, kind in COLUMNS.items()}
    values = {name: _number(cells[name], name) for name in metrics if cells[name] not in ("", None)}
    draw = _cell(cells[DRAW], DRAW, "INTEGER NOT NULL") if DRAW in cells else 1
    (result,) = checked_results(row, {draw: values} if values else {}, [(cells["suite"], cells["contender"])])
    return result


def _wanted(cells: Cells) -> Wanted:
    """A row without a key says what a suite was to cover, and nothing else."""
    if filled := [name for name, cell in cells.items() if name not in WANTED and cell not in ("", None)]:
        raise InputError(f"there is no key, but {', '.join(filled[:3])}: the row is not whole.")
    return checked_wanted(*(cells[name] for name in WANTED))


def _cell(value: Any, name: str, kind: str) -> Any:
    """A cell of either kind of table as the ledger holds it."""
    if value is None:  # of a Parquet file, which can tell it from empty text; a CSV file cannot
        return None
    if value == "":
        return "" if "TEXT NOT NULL" in kind else None
    if kind.startswith("INTE"):
        if isinstance(value, str) and WHOLE.fullmatch(value) and len(value) < 20:
            return int(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value
    return _number(value, name) if kind.startswith("REAL") else value


def _number(value: Any, name: str) -> Any:
    """Text as a number; what is none already is left to the checks."""
    if not isinstance(value, str):
        return value
    try:
        if not value.isascii() or "_" in value:
            raise ValueError
        return float(value)
    except ValueError:
        raise InputError(f"{name} must be a number; got {value[:80]!r}.") from None


def read_csv(path: Path) -> tuple[list[str], list[TableRow]]:
    """All columns and rows of a CSV file; one that was cut off is refused."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text in UTF-8 (byte {error.start}). Write or fetch the file again.") from error
    if text and not text.endswith("\n"):
        raise InputError(f"{path} was cut off in its last line, which has no end. Write or fetch the file again.")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] = []
    rows: list[TableRow] = []
    begin = 1
    try:
        for cells in reader:
            if not columns:
                columns = cells
                _check_columns(path, columns)
            elif cells:
                if len(cells) != len(columns):
                    where = f"{path}, line {begin}, record {len(rows) + 1}"
                    raise InputError(f"{where}: {len(cells)} cells instead of {len(columns)}.")
                rows.append(TableRow(begin, dict(zip(columns, cells, strict=True))))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {begin}: {error}. Write or fetch the file again.") from error
    return columns, rows


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    """No name twice."""
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise InputError(f"{path} has columns of the same name: {', '.join(map(repr, twice))}. Remove one of each.")
