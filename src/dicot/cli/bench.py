"""dicot bench: suites of contenders (`suites.py`), and the speed of the library itself."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from dicot.cli import options as opt
from dicot.cli.suites import export_ledger, merge_ledgers, run
from dicot.cli.tables import show

if TYPE_CHECKING:
    from dicot.speed.benchmark import Result
    from dicot.speed.sections import Section

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


@bench.command()
def speed(
    device: opt.Device = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="Three small shapes only; two minutes on two cores.")] = False,
    precision: Annotated[
        list[str] | None, typer.Option(help="float32 or tf32; repeat for more. Default: both on a GPU.")
    ] = None,
    shape: Annotated[
        list[str] | None, typer.Option(help="batch,time steps,channels instead of the usual ones; repeat for more.")
    ] = None,
    turns: Annotated[int | None, typer.Option(min=1, help="Turns of plain and ours.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Timed steps per turn.")] = None,
    checked: Annotated[int | None, typer.Option(min=1, help="Losses compared with eager float32.")] = None,
    accuracy: Annotated[bool, typer.Option("--accuracy", help="Also probe accuracy over three seeds.")] = False,
    methods: Annotated[bool, typer.Option("--methods", help="Also every method beside its plain loop.")] = False,
    scaling: Annotated[bool, typer.Option("--scaling", help="Also cost and memory against the sizes.")] = False,
    embedding: Annotated[bool, typer.Option("--embedding", help="Also the throughput of embedding.")] = False,
    archive: Annotated[bool, typer.Option("--archive", help="Also all archive sets at once (DICOT_DATA).")] = False,
    step: Annotated[bool, typer.Option(help="The training step of Di-COT, which all else is added to.")] = True,
    out: Annotated[Path | None, typer.Option(help="Folder for speed-cpu or speed-cuda .md, .csv and .svg.")] = None,
) -> None:
    """Training steps beside a plain loop, as ratios; exit code 1 where losses leave the tolerance."""
    from dicot.speed import Options, parse_shape, run_benchmark, write_result

    options = Options(
        device,
        quick,
        tuple(precision or ()),
        tuple(parse_shape(text) for text in shape or ()),
        turns,
        steps,
        checked,
        accuracy,
        methods,
        scaling,
        embedding,
        archive,
        step,
        draw=out is not None,
    )
    command = shlex.join(["dicot", *sys.argv[1:]])

    def show(result: "Result") -> None:
        _show(result.sections[-1])
        if out is not None:  # after every part: whoever interrupts the rest keeps what there is
            write_result(out, result, command)

    result = run_benchmark(options, show)
    typer.echo(result.machine)
    if out is not None:
        typer.echo(f"Wrote speed-{result.kind}.md, .csv and figures to {out}")
    if result.ratios:
        typer.echo(f"min ratio {min(result.ratios):.2f}")
    if not result.agrees:
        typer.secho("Error: the losses are not those of eager float32; see the table above.", fg="red", err=True)
        raise typer.Exit(1)


def _show(section: "Section") -> None:
    from dicot.report.tables import to_rich

    show(to_rich(section.table(), section.title))
