"""The command line: each command is a few lines that call a function of the library."""

import os
import select
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dicot.cli.classify import classify
from dicot.cli.commands import command
from dicot.cli.corpus import corpus
from dicot.cli.embed import embed
from dicot.cli.evaluate import evaluate
from dicot.cli.events import events
from dicot.cli.exitcodes import ERROR, INTERRUPTED, UNREAD, WRONG_CALL
from dicot.cli.explore import explore
from dicot.cli.export import export
from dicot.cli.inspect import inspect
from dicot.cli.label import label
from dicot.cli.listing import list_names
from dicot.cli.monitor import monitor
from dicot.cli.options import warn
from dicot.cli.outliers import outliers
from dicot.cli.predict import predict
from dicot.cli.pretrain import pretrain
from dicot.cli.search import search
from dicot.cli.segment import segment
from dicot.cli.stream import stream
from dicot.cli.vectors import vectors
from dicot.cli.why import why
from dicot.core import __version__
from dicot.core.errors import DicotError, DicotWarning, WrongCallError
from dicot.core.native import MISSING, is_built
from dicot.core.place import find_place
from dicot.core.storage import cannot_use, check_platform

# Commands of earlier releases that are run from a clone of the repository now.
MOVED = {
    "bench": "python -m bench run",
    "report": "python -m bench report",
    "paper": "python -m bench paper",
    "data": "python -m bench",
}


class Commands(TyperGroup):
    """All commands; Ctrl-C ends each with a sentence, where typer itself says nothing.

    Where the program behind `|` reads no more, they end without one, as other programs do.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        moved = MOVED.get(args[0])
        if moved is not None and self.get_command(ctx, args[0]) is None:
            raise WrongCallError(f"`dicot {args[0]}` is `{moved}` now, in a clone of the repository.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            typer.echo("Interrupted. The same command continues from the last checkpoint, if there is one.", err=True)
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            # The broken pipe may also be that of a worker process, which is an error to be told.
            if not _is_unread():
                raise
            from dicot.model.edge import give_up_output

            give_up_output()
            raise typer.Exit(UNREAD) from error


def _is_unread() -> bool:
    """Tell whether the program that read the standard output or the errors has ended."""
    if not hasattr(select, "poll"):  # on Windows
        return False
    outputs = select.poll()
    outputs.register(sys.stdout, 0)
    outputs.register(sys.stderr, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in outputs.poll(0))


app = typer.Typer(
    cls=Commands, help="Embeddings from unlabelled time series.", no_args_is_help=True, pretty_exceptions_enable=False
)
function: Callable[..., None]
for function in (pretrain, embed, evaluate, inspect, search, outliers, events, segment, why):
    command(app)(function)
app.add_typer(label, name="label")
for function in (classify, predict, stream, monitor, export, explore):
    command(app)(function)
app.command("list")(list_names)
app.add_typer(corpus, name="corpus")
app.add_typer(vectors, name="vectors")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dicot {__version__}")
        if not is_built():
            typer.echo(MISSING)
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Embeddings from unlabelled time series."""
    context.with_resource(plain_warnings())


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show each warning once, as a line, and not the place in our files where it was noticed."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DicotWarning)
        usual, told = warnings.showwarning, set[str]()

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, UserWarning):
                usual(message, category, *where, **more)
            elif str(message) not in told:
                told.add(str(message))
                warn(str(message))

        warnings.showwarning = show
        yield


def main(commands: typer.Typer = app) -> None:
    """Run a command; what its exit code means stands in exitcodes.py."""
    try:
        check_platform()
        commands()
    except WrongCallError as error:
        _fail(str(error), WRONG_CALL)
    except DicotError as error:
        _fail(str(error))
    except OSError as error:  # of a file that the library itself does not write, such as the screen's
        _fail(cannot_use(error))


def _fail(sentence: str, code: int = ERROR) -> None:
    rank = find_place().rank
    who = f"[rank {rank}] " if rank else ""
    typer.secho(f"{who}Error: {sentence}", fg="red", err=True)
    try:
        sys.stdout.flush()
    except OSError:  # Python tries again at the end, and would say so
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
