"""Tables: .csv with one case per row or as a long table, and long .parquet."""

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dicot.data import Windows
from dicot.data.files import read_windows
from tests.survival import reference
from tests.survival.kind import Kind, UnreadableError
from tests.survival.mutations import BINARY, TEXT
from tests.survival.verdicts import windows_are

COLUMNS = {"case": "trip", "time": "t", "label": "road", "group": "driver"}


def _wide(folder: Path, header: bool) -> None:
    rng = np.random.default_rng(1)
    rows = [[*(f"{v:.4f}" for v in rng.normal(size=9)), ("wet", "dry")[i % 2]] for i in range(8)]
    names = [[*(f"t{i}" for i in range(9)), "road"]] if header else []
    (folder / "a.csv").write_text("".join(",".join(row) + "\n" for row in names + rows))


def _long() -> dict[str, list[Any]]:
    rng = np.random.default_rng(2)
    rows = [(case, t) for case in (11, 7, 12, 9) for t in range(6)]
    values = {name: [round(float(v), 4) for v in rng.normal(size=len(rows))] for name in ("x", "z")}
    roads = {11: "wet", 7: "dry", 12: "wet", 9: "ice"}
    named = {"trip": [c for c, _ in rows], "t": [t for _, t in rows], "road": [roads[c] for c, _ in rows]}
    return {**named, "driver": [f"d{c % 2}" for c, _ in rows], **values}


def _long_csv(folder: Path) -> None:
    columns = _long()
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    (folder / "a.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


def _write_parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def change_column(data: bytes, dice: Random) -> bytes:
    """A sound file whose table is another: a column of another type, with gaps, twice, renamed or not there."""
    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError):
        return data
    at = dice.randrange(table.num_columns) if table.num_columns else 0
    name, cells = table.column_names[at], table.column(at).to_pylist()
    start = datetime(2024, 2, 28, tzinfo=UTC)
    new: list[Callable[[], pa.Array]] = [
        lambda: pa.array([str(v) for v in cells]),
        lambda: pa.array([str(v).encode() for v in cells]),
        lambda: pa.array([None if dice.random() < 0.2 else v for v in cells]),
        lambda: pa.array([None] * len(cells)),
        lambda: pa.array([[v] for v in cells]),
        lambda: pa.array([{"v": v} for v in cells]),
        lambda: pa.array(cells).dictionary_encode(),
        lambda: pa.array([len(str(v)) % 2 == 0 for v in cells]),
        lambda: pa.array([start + timedelta(hours=i) for i in range(len(cells))]),
        lambda: pa.array([(start + timedelta(days=i)).date() for i in range(len(cells))]),
        lambda: pa.array([2**63 + i // 6 for i in range(len(cells))], pa.uint64()),
        lambda: pa.array([float(i) for i in range(len(cells))], pa.float64()).cast(pa.decimal128(20, 3)),
        lambda: pa.array(cells[1:] + cells[:1]),
        lambda: pa.array([float("nan"), float("inf"), *([1e300] * (len(cells) - 2))]),
    ]
    what = dice.randrange(len(new) + 5)
    if what < len(new):
        table = table.set_column(at, name, new[what]())
    elif what == len(new):
        table = table.append_column(name, table.column(at))
    elif what == len(new) + 1:
        table = table.remove_column(at)
    elif what == len(new) + 2:
        table = table.slice(0, dice.choice([0, 1, 5]))
    elif what == len(new) + 3:
        table = pa.concat_tables([table, table])
    else:
        table = table.rename_columns(
            [dice.choice(["", "x", "trip", "q"]) if i == at else n for i, n in enumerate(table.column_names)]
        )
    return _write_parquet(table, compression=dice.choice(["none", "snappy", "zstd"]))


def judge_wide(label: str) -> Callable[[Path, Windows, Any], str]:
    def judge(folder: Path, windows: Windows, sound: Any) -> str:
        cases, labels = reference.wide_csv(folder / "a.csv", label)
        return windows_are(windows, cases, labels, None)

    return judge


def judge_long(folder: Path, windows: Windows, sound: Any) -> str:
    return windows_are(windows, *reference.long_cases(reference.long_csv(folder / "a.csv"), **COLUMNS))


def judge_parquet(folder: Path, windows: Windows, sound: Any) -> str:
    try:
        table = pq.read_table(folder / "a.parquet")
        names = table.column_names
        columns = {name: table.column(i).to_pylist() for i, name in enumerate(names)}
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(str(error)) from error
    if len(set(names)) < len(names):
        raise UnreadableError("a column's name comes twice")
    for i, name in enumerate(names):  # text is no channel, even where it looks like numbers
        if name not in COLUMNS.values() and any(isinstance(cell, str) for cell in table.column(i).to_pylist()):
            del columns[name]
    return windows_are(windows, *reference.long_cases(columns, **COLUMNS))


KINDS = [
    Kind(
        "csv-wide",
        lambda folder: _wide(folder, header=True),
        {"a.csv": TEXT},
        lambda folder: read_windows(folder / "a.csv", label="road"),
        judge_wide("road"),
    ),
    Kind(
        "csv-plain",
        lambda folder: _wide(folder, header=False),
        {"a.csv": TEXT},
        lambda folder: read_windows(folder / "a.csv", label="last"),
        judge_wide("last"),
    ),
    Kind(
        "csv-long",
        _long_csv,
        {"a.csv": TEXT},
        lambda folder: read_windows(folder / "a.csv", **COLUMNS),
        judge_long,
    ),
    Kind(
        "parquet",
        lambda folder: (folder / "a.parquet").write_bytes(_write_parquet(pa.table(_long()), compression="none")),
        {"a.parquet": (*BINARY, *(change_column,) * 12)},
        lambda folder: read_windows(folder / "a.parquet", **COLUMNS),
        judge_parquet,
    ),
]
