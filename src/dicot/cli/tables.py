"""What a command shows: tables and sentences as wide as the screen."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dicot.data.cases import Array
    from dicot.judge.report.tables import Table as TextTable


def show_columns(columns: Mapping[str, Iterable[Any]]) -> None:
    """Print columns of values below their titles; numbers stand to the right."""
    from rich.table import Table
    from rich.text import Text

    # Files have the end as a date too; a screen has less room.
    texts = {title: list(map(cell, columns[title])) for title in columns if title != "end_time"}
    table = Table()
    for title, cells in texts.items():
        table.add_column(title, justify="right" if all(map(_is_number, cells)) else "left")
    for row in zip(*texts.values(), strict=True):
        # rich would take [x] in a plain text for its markup.
        table.add_row(*map(Text, row))
    show(table)


def write_table(out: Path | None, columns: "Mapping[str, Array]") -> None:
    """Write columns to a .csv or .parquet and say so; nothing where no file is named."""
    from dicot.store.vectors import write_columns

    if out is not None:
        write_columns(out, columns)
        typer.echo(f"Wrote {out}")


def _is_number(text: str) -> bool:
    digits = text.replace(",", "").rstrip("%").replace(".", "").replace(":", "").lstrip("-")
    return not text or digits.isdigit()


def cell(value: Any) -> str:
    """Write a number or a text; a number that is not known is empty, as such a text is."""
    if type(value).__name__ == "datetime64":
        return str(value)[:23].replace("NaT", "")
    if not isinstance(value, float):  # numpy's float64 is one too
        return str(value)
    return "" if value != value else f"{value:.15g}"


def show(table: "Table") -> None:
    """Print a table whole: as wide as it is where nobody's screen ends, and nowhere so narrow that columns are lost."""
    console, needed = _measured(table)
    console.width = max(console.width, needed.minimum) if console.is_terminal else needed.maximum
    console.print(table)


def _measured(table: "Table") -> "tuple[Console, Any]":
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    return console, Measurement.get(console, console.options.update(width=10_000), table)


def show_blocks(table: "TextTable") -> None:
    """Print a table of scores, its columns in as many blocks as the screen needs, and the note below them."""
    from dicot.judge.report.tables import to_rich

    width = screen_width()
    if width is None:
        show(to_rich(table))
        return
    start = 0
    while start < len(table.columns):
        end = start + 1
        while end < len(table.columns) and _measured(to_rich(table.part(slice(start, end + 1))))[1].maximum <= width:
            end += 1
        show(to_rich(table.part(slice(start, end))))
        start = end
    say(table.note)


def screen_width() -> int | None:
    """Letters that fit side by side: those of the terminal or of COLUMNS; None where a file or program reads along."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal or "COLUMNS" in os.environ else None


def say(text: str, *, bold: bool = False, indent: int = 0) -> None:
    """Print sentences, broken at the words that the screen ends with."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    if screen_width() is None:
        typer.secho(" " * indent + text, bold=bold)
    else:
        Console().print(Padding(Text(text, style="bold" if bold else ""), (0, 0, 0, indent)))
