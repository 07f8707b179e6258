"""A part of the benchmark's result: a table of numbers, in the terminal, as Markdown and as CSV, and its figures."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dicot.report.tables import Table, text_table

Value = float | str


@dataclass(frozen=True)
class Section:
    """Rows of (label, values); `figures` holds svg text by file stem."""

    name: str
    title: str
    columns: tuple[str, ...]  # the first one stands above the labels
    rows: tuple[tuple[str, tuple[Value, ...]], ...]
    note: str
    figures: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> Table:
        rows = ((label, [shown(value) for value in values]) for label, values in self.rows)
        return text_table(self.columns[0], rows, self.columns[1:], self.note)


def shown(value: Value) -> str:
    """Three digits that count, or the text."""
    if isinstance(value, str):
        return value
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-3 or size >= 1e6:
        return f"{value:.1e}"
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 4}f}"


def to_csv(sections: Sequence[Section]) -> str:
    """One number per row, not rounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["section", "row", "column", "value"])
    for section in sections:
        for label, values in section.rows:
            writer.writerows(
                [section.name, label, column, value] for column, value in zip(section.columns[1:], values, strict=True)
            )
    return out.getvalue()
