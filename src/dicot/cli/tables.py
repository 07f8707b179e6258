"""What a command shows: tables and sentences as wide as the screen, and windows drawn on a page."""

import os
import shlex
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dicot.cli.options import warn
from dicot.cli.paths import check_page
from dicot.core import __version__
from dicot.core.errors import InputError, WrongCallError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dicot.data.allowance import Allowance
    from dicot.data.cases import Array
    from dicot.judge.report.page import DrawnWindow, Summary
    from dicot.judge.report.tables import Table as TextTable
    from dicot.store.series import Series
    from dicot.store.vectors import Vectors


_LONG_TABLE = 500  # rows from which on a table is written without rich, which takes a millisecond for each


def show_columns(columns: Mapping[str, Iterable[Any]]) -> None:
    """Print columns of values below their titles; numbers stand to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [title for title in columns if title != "end_time"]  # files have it; a screen has less room
    texts = {title: [cell(value) for value in columns[title]] for title in shown}
    is_right = {title: all(map(_is_number, cells)) for title, cells in texts.items()}
    if len(texts[shown[0]]) > _LONG_TABLE and not Console().is_terminal:
        typer.echo("\n".join(_drawn_lines(texts, is_right)))
        return
    table = Table()
    for title in texts:
        table.add_column(title, justify="right" if is_right[title] else "left")
    for row in zip(*texts.values(), strict=True):
        table.add_row(*map(Text, row))  # as text, because rich takes [x] in a plain one for its markup
    show(table)


def _drawn_lines(texts: Mapping[str, Sequence[str]], is_right: Mapping[str, bool]) -> Iterator[str]:
    """Draw the lines of a table as rich does."""
    from rich.cells import cell_len

    columns = []
    for title, cells in texts.items():
        width = max(map(cell_len, (title, *cells)))
        blanks = [" " * (width - cell_len(text)) for text in (title, *cells)]
        pairs = zip(blanks, (title, *cells), strict=True)
        columns.append([blank + text if is_right[title] else text + blank for blank, text in pairs])
    lines = ["━" * (len(column[0]) + 2) for column in columns]
    titles, *rows = zip(*columns, strict=True)
    yield "┏" + "┳".join(lines) + "┓"
    yield "┃ " + " ┃ ".join(titles) + " ┃"
    yield "┡" + "╇".join(lines) + "┩"
    for row in rows:
        yield "│ " + " │ ".join(row) + " │"
    yield "└" + "┴".join(line.replace("━", "─") for line in lines) + "┘"


def _is_number(text: str) -> bool:
    return not text or text.replace(",", "").rstrip("%").replace(".", "").replace(":", "").lstrip("-").isdigit()


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

    width, start = screen_width(), 0
    if width is None:
        show(to_rich(table))
        return
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


def cell(value: Any) -> str:
    """Write a number or a text; a number that is not known is empty, as such a text is."""
    if not isinstance(value, float):  # numpy's float64 is one too
        return str(value)[:23].replace("NaT", "") if type(value).__name__ == "datetime64" else str(value)
    return "" if value != value else f"{value:.15g}"


def check_plot(plot: Path | None, data: str | None, option: str = "--plot") -> None:
    """Refuse what could not be drawn, before any work is done for it; `option` is the one that names the page."""
    if plot is None:
        if data is not None:
            raise WrongCallError("--data is for --plot, which draws recordings. Give both, or leave it out.")
        return
    from dicot.core.storage import check_writable
    from dicot.judge.report.page import need_packages

    need_packages()
    check_page(plot, option)
    check_writable(plot)


def draw(
    plot: Path,
    title: str,
    lead: Sequence[str],
    vectors: Path,
    known: "Vectors",
    rows: Mapping[int, Mapping[str, str]],
    data: str | None,
    marked: Container[int] = (),
    shades: "Mapping[int, Array] | None" = None,
    figure: str = "",
    first: "Sequence[DrawnWindow]" = (),
    *,
    allowance: "Allowance",
    summary: "Summary | None" = None,
) -> None:
    """Write the page: a summary, a figure, `first`, and the windows of these rows with what is said of each and shades.

    Windows of a recording that cannot be read are not drawn where the allowance says so.
    """
    from dicot.core.storage import write_atomic
    from dicot.judge.report.page import windows_page
    from dicot.store.series import series_of

    series = series_of(known, data, {}, path=vectors) if rows else None
    shown = [
        *first,
        *([] if series is None else drawn_windows(vectors, known, series, rows, allowance, marked, shades)),
    ]
    channels = () if series is None else series.channels
    command = shlex.join(["dicot", *sys.argv[1:]])
    facts = {"vectors": vectors, "version": f"dicot {__version__}", "command": command}
    write_atomic(plot, windows_page(title, lead, shown, channels, facts, figure, summary).encode())
    typer.echo(f"Wrote {plot}")


def drawn_windows(
    vectors: Path,
    known: "Vectors",
    series: "Series",
    rows: Mapping[int, Mapping[str, str]],
    allowance: "Allowance",
    marked: Container[int] = (),
    shades: "Mapping[int, Array] | None" = None,
) -> "list[DrawnWindow]":
    """Return windows as a page draws them, with what is said of each."""
    from dicot.judge.report.page import DrawnWindow

    about = {name: values for name, values in known.columns().items() if name in ("group", "label")}
    unit, shown = " s" if known.source is not None and known.source.rate else "", []
    for row, facts in rows.items():
        said = {name: cell(values[row]) for name, values in about.items() if cell(values[row])}
        title, span = f"row {row}", ("", "")
        if known.recording is not None and known.start is not None and known.end is not None:
            span = f"{known.start[row]:.10g}{unit}", f"{known.end[row]:.10g}{unit}"
            title = f"{known.recording[row]} @ {known.start[row]:.10g}"
        values = series.window(row)
        if values is None:
            recording = str(known.places()[0][row])
            reason = InputError(f"Row {row} of {vectors}, {title}: {series.lost[recording]}")
            if not allowance.bad_files:
                raise reason
            if recording not in allowance.files:
                warn(f"Not drawn: {reason}")
            allowance.refuse(recording, recording, reason)
            continue
        shown.append(DrawnWindow(title, values, {**facts, **said}, span, row in marked, (shades or {}).get(row)))
    return shown
