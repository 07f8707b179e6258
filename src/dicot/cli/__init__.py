"""The command line: each command is a few lines that call a function of the library."""

import sys
from typing import Annotated

import typer

from dicot import __version__
from dicot.cli.bench import bench
from dicot.cli.data import data
from dicot.cli.embed import embed
from dicot.cli.evaluate import evaluate
from dicot.cli.listing import list_names
from dicot.cli.pretrain import pretrain
from dicot.cli.report import report
from dicot.cli.wording import flags, in_shell, plain_warnings
from dicot.errors import DicotError

app = typer.Typer(help="Embeddings from unlabelled time series.", no_args_is_help=True, pretty_exceptions_enable=False)
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


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Embeddings from unlabelled time series."""
    context.with_resource(plain_warnings(app))


def main() -> None:
    """Exit code 0: done; 1: an error with a sentence that says what to do; 2: a wrong call; 130: interrupted."""
    try:
        app()
    except DicotError as error:
        typer.secho(f"Error: {in_shell(str(error), flags(app, sys.argv[1:]))}", fg="red", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("Interrupted. The same command continues where a checkpoint was kept.", err=True)
        sys.exit(130)
