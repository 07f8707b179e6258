"""Windows of a file of vectors drawn on a page, for the commands that find some."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dicot import __version__
from dicot.cli.tables import cell
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.store.vectors import Vectors


def check_plot(plot: Path | None, data: str | None) -> None:
    """Refuse what could not be drawn, before any work is done for it."""
    if plot is None:
        if data is not None:
            raise InputError("--data is for --plot, which draws recordings. Give both, or leave it out.")
        return
    from dicot.core.storage import check_writable
    from dicot.judge.report.page import need_packages

    need_packages()
    if plot.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--plot {plot} has the suffix {plot.suffix!r}; a page is an .html.")
    check_writable(plot)


def draw(
    plot: Path,
    title: str,
    lead: Sequence[str],
    vectors: Path,
    known: "Vectors",
    rows: Mapping[int, Mapping[str, str]],
    data: str | None,
    marked: int | None = None,
) -> None:
    """Write the page: the windows of these rows with what is said of each, in this order."""
    from dicot.core.storage import write_atomic
    from dicot.judge.report.page import DrawnWindow, windows_page
    from dicot.store.series import series_of

    series = series_of(known, data, {}, path=vectors)
    about = {name: values for name, values in known.columns().items() if name in ("group", "label")}
    shown = []
    for row, facts in rows.items():
        said = {name: cell(values[row]) for name, values in about.items() if cell(values[row])}
        title_of, span = f"row {row}", ("", "")
        if known.recording is not None and known.start is not None and known.end is not None:
            unit = " s" if known.source is not None and known.source.rate else ""
            span = f"{known.start[row]:.10g}{unit}", f"{known.end[row]:.10g}{unit}"
            title_of = f"{known.recording[row]} @ {known.start[row]:.10g}"
        values = series.window(row)
        if values is None:
            raise InputError(f"Row {row} of {vectors}, {title_of}: {series.lost[str(known.places()[0][row])]}")
        shown.append(DrawnWindow(title_of, values, {**facts, **said}, span, marked=row == marked))
    facts_of_page = {
        "vectors": vectors,
        "version": f"dicot {__version__}",
        "command": shlex.join(["dicot", *sys.argv[1:]]),
    }
    write_atomic(plot, windows_page(title, lead, shown, series.channels, facts_of_page).encode())
    typer.echo(f"Wrote {plot}")
