"""A part of the benchmark's result: a table of numbers and its figures, on the screen and as files."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from dicot.core.storage import write_atomic

Value = float | str
Row = tuple[str, tuple[Value, ...]]


@dataclass(frozen=True)
class Section:
    """Rows of (label, values); `figures` holds svg text by file stem."""

    name: str
    title: str
    columns: tuple[str, ...]  # the first one stands above the labels
    rows: tuple[Row, ...]
    note: str
    figures: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Measurements:
    """What was measured so far. `agrees`: the losses are those of eager float32, within the tolerance."""

    page: str  # the name of its files: speed-cpu, speed-cpu-arm or speed-cuda
    machine: str
    sections: list[Section] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    agrees: bool = True


def shown(value: Value) -> str:
    """Round to three significant digits; leave text alone."""
    if isinstance(value, str):
        return value
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-3 or size >= 1e6:
        return f"{value:.1e}"
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 4}f}"


def show(section: Section) -> None:
    """Print the table on the screen, wider than the screen rather than with lost columns."""
    table = Table(title=section.title, caption=section.note, caption_justify="left")
    table.add_column(section.columns[0], no_wrap=True)
    for column in section.columns[1:]:
        table.add_column(column, justify="right", overflow="fold", min_width=len(column))
    for label, values in section.rows:
        table.add_row(label, *map(shown, values))
    console = Console()
    needed = Measurement.get(console, console.options.update(width=10_000), table)
    console.width = max(console.width, needed.minimum) if console.is_terminal else needed.maximum
    console.print(table)


def to_markdown(section: Section) -> str:
    """Write a pipe table followed by the note."""
    lines = [section.columns, ("---", *["---:"] * (len(section.columns) - 1))]
    lines += [(label, *map(shown, values)) for label, values in section.rows]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", section.note, ""])


def to_csv(sections: Sequence[Section]) -> str:
    """Write one number per row, not rounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["section", "row", "column", "value"])
    for section in sections:
        for label, values in section.rows:
            writer.writerows(
                [section.name, label, column, value] for column, value in zip(section.columns[1:], values, strict=True)
            )
    return out.getvalue()


def write_files(folder: Path, measured: Measurements, command: str) -> None:
    """Write PAGE.md with the command that made it, PAGE.csv with every number, and PAGE-*.svg."""
    stem = measured.page
    files = {f"{stem}.csv": to_csv(measured.sections)}
    lines = [f"# Speed on {measured.machine}", "", f"`{command}`, {date.today().isoformat()}."]
    if measured.ratios:
        lines.append(f"Smallest ratio of a training step to the plain loop's: **{min(measured.ratios):.2f}**.")
    lines.append("")
    for section in measured.sections:
        lines += [f"## {section.title}", "", to_markdown(section)]
        for name, svg in section.figures.items():
            files[f"{stem}-{name}.svg"] = svg
            lines += [f"![{section.title}, {name}]({stem}-{name}.svg)", ""]
    files[f"{stem}.md"] = "\n".join(lines).rstrip() + "\n"
    for name, text in files.items():
        write_atomic(folder / name, text.encode())
