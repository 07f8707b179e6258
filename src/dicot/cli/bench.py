"""dicot bench: suites of contenders (`suites.py`)."""

from typing import Any

import typer
from typer.core import TyperGroup

from dicot.cli.suites import export_ledger, merge_ledgers, run

SUITES = "run"  # the command that a suite's name stands for


class Suites(TyperGroup):
    """`dicot bench SUITE` means `dicot bench run SUITE`, so that a new suite is a command at once."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = args[0].startswith("-") or self.get_command(ctx, args[0]) is not None
        return super().resolve_command(ctx, args if known else [SUITES, *args])


bench = typer.Typer(cls=Suites, help="Benchmarks: `dicot bench SUITE`.", no_args_is_help=True)
bench.command(SUITES)(run)
bench.command("export")(export_ledger)
bench.command("merge")(merge_ledgers)


@bench.callback()
def root() -> None:
    """Benchmarks: `dicot bench SUITE`, see `dicot list suites`."""
