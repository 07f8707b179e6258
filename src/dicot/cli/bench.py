"""dicot bench SUITE: run suites into a ledger, and hand ledgers on."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from dicot.cli import options as opt
from dicot.cli.tables import show
from dicot.core.errors import InputError, lookup

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from dicot.judge.bench.plan import Plan
    from dicot.judge.evaluation.jobs import Job, Unit

LEDGER = Path("out/bench.sqlite")

LedgerFile = Annotated[Path, typer.Option(help="The file that results are kept in.")]

RAY = "ray"
EXECUTORS = ("local", RAY)  # where units run
RUN = "run"  # the command that a suite's name stands for


class Suites(TyperGroup):
    """`dicot bench SUITE` means `dicot bench run SUITE`, so that a new suite is a command at once."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = args[0].startswith("-") or self.get_command(ctx, args[0]) is not None
        return super().resolve_command(ctx, args if known else [RUN, *args])


bench = typer.Typer(cls=Suites, help="Benchmarks: `dicot bench SUITE`.", no_args_is_help=True)


@bench.callback()
def root() -> None:
    """Benchmarks: `dicot bench SUITE`, see `dicot list suites`."""


@bench.command(RUN)
def run(
    suites: Annotated[list[str], typer.Argument(help="Suites; what several of them need is trained once.")],
    only: Annotated[str | None, typer.Option(help="Contenders, separated by commas; controls come along.")] = None,
    sets: Annotated[str | None, typer.Option(help="Data sets instead of the suite's, separated by commas.")] = None,
    family: Annotated[
        str, typer.Option(help="For files among --sets: recipe and settings of ucr, uea or large sets; default: uea's.")
    ] = "",
    seeds: Annotated[str | None, typer.Option(help="Seeds instead of the suite's, separated by commas.")] = None,
    protocols: Annotated[str | None, typer.Option(help="Protocols instead of the suite's.")] = None,
    schedule: Annotated[str, typer.Option(help="per_step, per_epoch (the authors' code) or both.")] = "per_step",
    precision: opt.Precision = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps: a trial, and marked as one.")] = None,
    scale: opt.Scale = None,
    subsets: Annotated[
        str,
        typer.Option(
            help="Labelled cases where few are drawn: per-seed, or authors for theirs; default: as the paper's table."
        ),
    ] = "",
    ledger: LedgerFile = LEDGER,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes, on a GPU those that score; default: one per core.")
    ] = None,
    device: opt.Device = "auto",
    executor: Annotated[str, typer.Option(help="local, or ray for the processes of a Ray cluster.")] = "local",
    ray: opt.Ray = None,
    gpus_per_actor: opt.GpusPerActor = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run failed jobs again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be run.")] = False,
    export: Annotated[Path | None, typer.Option(help="Write the ledger to this .csv or .parquet at the end.")] = None,
) -> None:
    """Run what is missing of SUITES (`dicot list suites`). The same command continues a run that was interrupted.

    Exit code 1 where a job failed or a data set could not be used; the others are run all the same.
    """
    from dicot.judge.bench.crossing import SuiteOptions
    from dicot.judge.bench.exchange import check_export
    from dicot.judge.bench.ledger import Ledger
    from dicot.judge.bench.plan import make_plan
    from dicot.judge.bench.suites import suite_jobs
    from dicot.paper import suites as _  # noqa: F401  (adds the paper's suites)

    options = SuiteOptions(
        contenders=names_in(only),
        sets=names_in(sets),
        seeds=tuple(opt.whole_numbers(seeds, "--seeds")) if seeds else (),
        protocols=names_in(protocols),
        schedules=("per_step", "per_epoch") if schedule == "both" else (schedule,),
        precision=precision or "float32",
        steps=steps,
        scale=scale,
        family=family,
        subsets=subsets,
    )
    lookup(dict.fromkeys(EXECUTORS), executor, "executor")
    if executor != RAY and not (ray is None and gpus_per_actor is None):
        raise InputError("--ray and --gpus-per-actor go with --executor ray.")
    jobs = suite_jobs(suites, options)
    if export is not None:
        check_export(export)
    with Ledger(":memory:") if dry_run and not ledger.exists() else Ledger(ledger, read_only=dry_run) as book:
        plan = make_plan(jobs, book, retry_failed=retry_failed)
        announce(plan)
        if dry_run:
            show_plan(plan)
            return
        book.enrol([job for job in jobs if job.key in plan.states])
    address = None if executor != RAY else ray or "local"
    failed = run_units(plan.units, ledger, device, workers, plan.finished, address, gpus_per_actor)
    if export is not None:
        export_ledger(export, ledger)
    if failed or plan.unusable:
        raise typer.Exit(1)


@bench.command("export")
def export_ledger(
    out: Annotated[Path, typer.Argument(help="A .csv or .parquet file.")], ledger: LedgerFile = LEDGER
) -> None:
    """Write the ledger as a table."""
    from dicot.judge.bench import exchange
    from dicot.judge.bench.ledger import Ledger

    with Ledger(ledger, read_only=True) as book:
        typer.echo(f"Wrote {exchange.write_table(out, *book.contents())} rows to {out}")


@bench.command("merge")
def merge_ledgers(
    others: Annotated[list[Path], typer.Argument(help="Ledgers, or tables that were exported from some.")],
    ledger: LedgerFile = LEDGER,
) -> None:
    """Take the rows of other ledgers over into this one, all or none; of two for one job the newer stays."""
    from dicot.judge.bench import exchange
    from dicot.judge.bench.ledger import Ledger

    sources = [exchange.read_contents(other) for other in others]
    with Ledger(ledger) as book:
        for other, (rows, taken) in zip(others, book.take(sources), strict=True):
            typer.echo(f"{other}: {rows} rows, {taken} of them taken over into {ledger}")


def names_in(text: str | None) -> tuple[str, ...]:
    """Read names that are separated by commas."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def announce(plan: "Plan") -> None:
    """Say what a user should know before hours are spent."""
    units = plan.units
    states = list(plan.states.values())
    shown = ("recorded", "failed", "no data", *(["unusable"] if "unusable" in states else []), "to run")
    counts = ", ".join(f"{states.count(state)} {state}" for state in shown)
    typer.echo(f"{len(states)} jobs: {counts}, in {len(units)} fits.")
    if plan.missing:
        typer.echo(
            f"Left out, because the data are not here ({len(plan.missing)}): {', '.join(plan.missing)}. "
            "`dicot data show NAME` says how to get them."
        )
    for name, reason in plan.unusable.items():
        typer.echo(f"Left out, because it cannot be used: {name}. {reason}")
    for note in plan.notes:
        typer.echo(f"{note}.")
    if plan.changed:
        typer.echo(f"Other data than when they were recorded, so their jobs run again: {', '.join(plan.changed)}.")
    if states.count("failed"):
        typer.echo("Failed jobs are run again with --retry-failed.")


def show_plan(plan: "Plan") -> None:
    """Show how many jobs are in which state."""
    from rich.table import Table

    from dicot.judge.bench.plan import STATES

    table = Table("contender", *STATES)
    for name, counts in plan.counts().items():
        table.add_row(name, *(str(counts[state]) for state in STATES))
    show(table)


def run_units(
    units: "Sequence[Unit]",
    ledger: Path,
    device: str,
    workers: int | None,
    finished_fits: "Set[str]",
    ray: str | None = None,
    gpus: float | None = None,
) -> int:
    """Run these units here, or on the Ray cluster at an address, and say how many of their jobs failed.

    What an earlier run here kept of finished fits is removed.
    """
    from dicot.core.gpu.device import resolve_device
    from dicot.core.progress import Bar
    from dicot.judge.bench.executor import clear_finished, default_workers, execute, site_for

    total, told = sum(len(unit.jobs) for unit in units), list[str]()
    errors: list[str] = []
    with Bar("bench", total) as bar:

        def tell(job: "Job", error: str | None) -> None:
            what = f"{job}, {job.protocol}"
            told.append(what)
            errors.extend([f"{what}: {error}"] if error else [])
            bar.update(len(told), what)
            if not sys.stderr.isatty():
                failed = f" failed: {error.splitlines()[0]}" if error else ""
                typer.echo(f"[{len(told)}/{total}] {what}{failed}")

        if ray is None:
            site = site_for(ledger, str(resolve_device(device)))
            clear_finished(site, finished_fits)
            execute(units, ledger, site, workers or default_workers(), tell)
        elif units:
            from dicot.core.processes.cluster import joined
            from dicot.judge.bench.on_ray import execute_on

            with joined(ray, workers) as cluster:
                share = cluster.share(device, gpus=gpus)
                execute_on(cluster, units, ledger, site_for(ledger, share.device), share, workers, tell)
    failed = f"; {len(errors)} of them failed: {errors[0]}" if errors else ""
    typer.echo(f"{len(told)} jobs recorded in {ledger}{failed}")
    return len(errors)
