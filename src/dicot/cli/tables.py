"""Tables and sentences on the screen, as wide as the screen is."""

import os
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from dicot.judge.report.tables import Table as TextTable


def show(table: "Table") -> None:
    """Print a table whole: as wide as it is where nobody's screen ends, and nowhere so narrow that columns are lost."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    wide = console.options.update(width=10_000)
    needed = Measurement.get(console, wide, table)
    console.width = max(console.width, needed.minimum) if console.is_terminal else needed.maximum
    console.print(table)


def show_blocks(table: "TextTable") -> None:
    """Print a table of scores, its columns in as many blocks as the screen needs, and the note below them."""
    from dicot.judge.report.tables import to_rich

    width, start = screen_width(), 0
    if width is None:
        show(to_rich(table))
        return
    while start < len(table.columns):
        end = start + 1
        while end < len(table.columns) and _needs(table.part(slice(start, end + 1))) <= width:
            end += 1
        show(to_rich(table.part(slice(start, end))))
        start = end
    say(table.note)


def _needs(table: "TextTable") -> int:
    """How wide a table is."""
    from rich.console import Console
    from rich.measure import Measurement

    from dicot.judge.report.tables import to_rich

    console = Console()
    return Measurement.get(console, console.options.update(width=10_000), to_rich(table)).maximum


def screen_width() -> int | None:
    """Letters that fit side by side: those of the terminal or of COLUMNS; None where a file or program reads along."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal or "COLUMNS" in os.environ else None


def say(text: str, *, bold: bool = False, indent: str = "") -> None:
    """Print sentences, broken at the words that the screen ends with."""
    import typer

    width = screen_width()
    lines = (
        [indent + text]
        if width is None
        else textwrap.wrap(
            text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    )
    typer.secho("\n".join(lines), bold=bold)


def cell(value: Any) -> str:
    """Write a number or a text; a number that is not known is empty, as such a text is."""
    if not isinstance(value, float):  # numpy's float64 is one too
        return str(value)
    return "" if value != value else f"{value:.15g}"
