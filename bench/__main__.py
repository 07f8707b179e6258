"""`python -m bench`: our own tables, the paper's page and its data sets. Each command is a line here."""

import typer

from bench.commands.data import list_names, prepare
from bench.commands.paper import paper
from bench.commands.report import report
from bench.commands.run import merge_ledgers, run
from bench.measurements import add_measurements
from dicot.cli import Commands, main, plain_warnings
from dicot.cli.commands import command

app = typer.Typer(
    cls=Commands, help="Our own tables and the paper's.", no_args_is_help=True, pretty_exceptions_enable=False
)
command(app, "run")(run)
command(app, "merge")(merge_ledgers)
command(app, "report")(report)
command(app, "paper")(paper)
command(app, "prepare")(prepare)
command(app, "list")(list_names)
add_measurements(app)


@app.callback()
def root(context: typer.Context) -> None:
    """Our own tables and the paper's, from a clone of the repository."""
    context.with_resource(plain_warnings())


if __name__ == "__main__":
    main(app)
