"""The pages of windows that commands draw."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dicot.cli.options import SeriesOptions
from dicot.cli.paths import check_page
from dicot.core import __version__
from dicot.core.errors import WrongCallError

if TYPE_CHECKING:
    from dicot.judge.report.windows import WindowsPage
    from dicot.store.vectors import Vectors


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


def write_page(out: Path, page: "WindowsPage", vectors: Path, known: "Vectors", series: SeriesOptions) -> None:
    """Write a page of windows, with the command that made it."""
    from dicot.judge.report.windows import write_windows_page

    command = shlex.join(["dicot", *sys.argv[1:]])
    facts = {"vectors": vectors, "version": f"dicot {__version__}", "command": command}
    write_windows_page(out, page, vectors, known, facts, data=series.data, allowance=series.allowance)
    typer.echo(f"Wrote {out}")
