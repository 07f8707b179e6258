"""Results as a table: one row per result, metrics as columns, in CSV or Parquet; ledgers written as such and read."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dicot.core.errors import DicotError, InputError
from dicot.core.storage import arrow, write_atomic
from dicot.data.tables import read_table
from dicot.judge.bench.ledger import COLUMNS, Contents, Ledger, Wanted, check_draws, result_of, row_of
from dicot.judge.evaluation.model_protocols import every_protocol
from dicot.judge.evaluation.result import Result

PLACE = ("suite", "contender")
DRAW = "draw"  # a column that is there where labelled cases were drawn more than once
WANTED = ("suite", "source", "target")
SUFFIXES = (".csv", ".parquet")
EMPTY = ("", None)  # a cell of a CSV or of a Parquet file


def write_table(path: str | Path, results: Iterable[Result], wanted: Iterable[Wanted] = ()) -> int:
    """Write results as .csv or .parquet, whole or not at all; how many rows.

    A value is empty where the protocol has no such metric, and NaN where the job failed. A data set that a suite
    wants and that has no result is a row with nothing but that.
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
        raise InputError(f"{path}: a ledger is exported as {' or '.join(SUFFIXES)}.")
    if path.suffix == ".parquet":
        arrow()


def _csv(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    pa, pq = arrow()
    kinds = {"TEXT": pa.string(), "INTEGER": pa.int64(), "REAL": pa.float64()}
    known = {name: kinds[kind.split()[0]] for name, kind in COLUMNS.items()}
    known |= {**dict.fromkeys(PLACE, pa.string()), DRAW: pa.int64()}
    schema = pa.schema([(name, known.get(name, pa.float64())) for name in columns])
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def read_records(ledger: Path | None, records: Path | None) -> Contents:
    """What a ledger holds, or the exported tables of a file or a folder, joined as `dicot bench merge` would."""
    if (ledger is None) == (records is None):
        raise InputError("Give either --ledger FILE or --records FILE.")
    if ledger is not None:
        return read_contents(ledger)
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
    if path.suffix.lower() not in SUFFIXES:
        with Ledger(path, read_only=True) as ledger:
            return ledger.contents()
    try:
        columns, rows = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    except DicotError:
        raise
    except Exception as error:  # csv and pyarrow have many for what a damaged file may hold
        raise InputError(f"{path} cannot be read as a table ({error}). Write or fetch the file again.") from error
    if lost := [name for name in (*PLACE, *COLUMNS) if name not in columns]:
        raise InputError(f"{path} is no exported ledger: it lacks {', '.join(lost)}.")
    return _contents(path, columns, rows)


def _read_csv(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Read cells as text; pandas would fill up a row that was cut off."""
    text = path.read_bytes().decode("utf-8-sig")
    if not text.endswith("\n"):
        raise InputError(f"{path} was cut off: its last line has no end. Write or fetch the file again.")
    columns, *rows = filter(None, csv.reader(io.StringIO(text, newline=""), strict=True))
    return columns, [dict(zip(columns, row, strict=True)) for row in rows]


def _read_parquet(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    table = read_table(path)
    return list(table.schema.names), table.to_pylist()


def _contents(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> Contents:
    if len(set(columns)) < len(columns):
        raise InputError(f"{path} has two columns of the same name. Remove one of them.")
    metrics = [name for name in columns if name not in (*PLACE, DRAW, *COLUMNS)]
    known = {name: make().metric_names for name, make in every_protocol().items()}
    contents = Contents([], [])
    told: dict[tuple[object, ...], object] = {}  # the facts about a job, and the values of each draw
    draws: dict[tuple[str, ...], list[int]] = {}
    for number, cells in enumerate(rows, start=1):
        try:
            if cells["key"] in EMPTY:
                contents.wanted.append(_wanted(cells))
                continue
            result = _result(cells, metrics)
            if foreign := sorted(result.values.keys() - set(known.get(result.protocol, result.values))):
                raise InputError(f"{result.protocol} has no metric {', '.join(foreign)}.")
            job = (result.key, result.recorded)
            for about, facts in ((job, row_of(result)), ((*job, result.draw), repr(sorted(result.values.items())))):
                if told.setdefault(about, facts) != facts:
                    raise InputError("another row says something else about the same job.")
        except (InputError, ValueError) as error:
            raise InputError(f"{path}, row {number}: {error}") from error
        draws.setdefault((*job, result.suite, result.contender), []).append(result.draw)
        contents.results.append(result)
    for (key, *_), numbers in draws.items():
        try:
            check_draws(numbers)
        except InputError as error:
            raise InputError(f"{path}: key {key[:16]}: {error}") from error
    return contents


def _result(cells: dict[str, Any], metrics: Sequence[str]) -> Result:
    row = {name: _cell(cells[name], kind) for name, kind in COLUMNS.items()}
    values = {name: float(cells[name]) for name in metrics if cells[name] not in EMPTY}
    if not values:
        raise InputError("there are no scores: the row is not whole.")
    draw = _cell(cells.get(DRAW, 1), "INTEGER")
    return result_of(row, cells["suite"], cells["contender"], draw, values)


def _cell(value: Any, kind: str) -> Any:
    """A cell of either kind of table as the ledger holds it."""
    if value in EMPTY:  # an empty text of a CSV file may be a text; what a Parquet file lacks is not there
        return value if "TEXT NOT NULL" in kind else None
    if kind.startswith("INTEGER"):
        return int(value)
    return float(value) if kind == "REAL" else value


def _wanted(cells: dict[str, Any]) -> Wanted:
    """A row without a key says what a suite was to cover, and nothing else."""
    if any(cell not in EMPTY for name, cell in cells.items() if name not in WANTED):
        raise InputError("there is no key, but other cells are filled: the row is not whole.")
    return cells["suite"], cells["source"], cells["target"]
