"""The command line: each command is a few lines that call a function of the library."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TextIO

import typer
import typer.core

from dicot import __version__
from dicot.cli.bench import bench
from dicot.cli.data import data
from dicot.cli.embed import embed
from dicot.cli.evaluate import evaluate
from dicot.cli.listing import list_names
from dicot.cli.options import INTERRUPTED
from dicot.cli.pretrain import pretrain
from dicot.cli.report import report
from dicot.errors import DicotError, DicotWarning
from dicot.storage import cannot_use


class Commands(typer.core.TyperGroup):
    """All commands; Ctrl-C ends each with a sentence, where typer itself says nothing."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            typer.echo("Interrupted. The same command continues where a checkpoint was kept.", err=True)
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    cls=Commands,
    help="Embeddings from unlabelled time series.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(pretrain)
app.command()(embed)
app.command()(evaluate)
app.command()(report)
app.command("list")(list_names)
app.add_typer(bench, name="bench")
app.add_typer(data, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dicot {__version__}")
        raise typer.Exit


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """What the library warns of as a line, not as Python shows it."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DicotWarning)
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, DicotWarning):
                typer.secho(f"Warning: {message}", fg="yellow", err=True)
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Embeddings from unlabelled time series."""
    context.with_resource(_plain_warnings())


def main() -> None:
    """Exit code 0: done; 1: an error with a sentence that says what to do; 2: a wrong call; 130: interrupted."""
    try:
        app()
    except DicotError as error:
        _fail(str(error))
    except OSError as error:  # of a file that the library itself does not write, such as the screen's
        _fail(cannot_use(error))


def _fail(sentence: str) -> None:
    typer.secho(f"Error: {sentence}", fg="red", err=True)
    try:
        sys.stdout.flush()
    except OSError:  # Python tries again at the end, and would say so
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
