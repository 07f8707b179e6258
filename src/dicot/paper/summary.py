"""The short table for a README: generated, put between two marks, and checked for being up to date."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dicot.core.errors import InputError
from dicot.core.storage import write_atomic
from dicot.judge.report.best import SUBJECT, short_table
from dicot.judge.report.tables import to_markdown
from dicot.paper.exhibits.archives import summary_of_archives
from dicot.paper.exhibits.records import newest


class Marks(NamedTuple):
    """The lines that a table stands between."""

    begin: str
    end: str

    @classmethod
    def of(cls, suites: Sequence[str]) -> "Marks":
        """Return the marks of the archives' table, or of the one about the preset "best"."""
        name = "dicot report best" if list(suites) == [SUBJECT] else "dicot report"
        return cls(f"<!-- {name}: begin -->", f"<!-- {name}: end -->")


def summary_markdown(data: pd.DataFrame) -> str:
    """Write Table 2 of the paper, or the gains of the preset, the same whenever it is made."""
    dates = sorted(data.recorded)
    made = f"Recorded {dates[0][:10]} to {dates[-1][:10]}." if dates and dates[0] else ""
    best = set(data.suite) == {SUBJECT}
    table = short_table(data) if best else summary_of_archives(newest(data).data)
    return f"{to_markdown(table)}{made}".rstrip() + "\n"


def with_block(text: str, block: str, where: str, marks: Marks) -> str:
    """Replace what stands between the two marks of a text."""
    begin, end = marks
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise InputError(f"{where} needs one line {begin} and after it one line {end}. Put them where the table goes.")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{block.strip()}\n{end}{rest.split(end)[1]}"


def block_is_current(path: Path, block: str, marks: Marks) -> bool:
    """Tell whether the file already holds this block."""
    text = path.read_text(encoding="utf-8")
    return with_block(text, block, str(path), marks) == text


def write_block(path: Path, block: str, marks: Marks) -> None:
    """Put the block between the file's marks."""
    write_atomic(path, with_block(path.read_text(encoding="utf-8"), block, str(path), marks).encode())
