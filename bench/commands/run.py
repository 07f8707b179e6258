"""python -m bench run SUITE, and merge: run suites into a ledger, and join ledgers."""

import os
import sys
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.executor import execute, site_for
from bench.ledger import Ledger, check_export, exports_in, read_contents, write_table
from bench.plan import STATES, Plan, make_plan
from bench.suites import SuiteOptions, suite_jobs
from dicot.cli import options as opt
from dicot.cli.paths import check_outputs
from dicot.cli.settings import sort_settings, texts_of, whole_number
from dicot.cli.tables import show_columns
from dicot.core.device import resolve_device
from dicot.core.progress import Bar
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.evaluation.scoring import clear_finished

SUITE_SETTINGS = ("sets", "seeds", "steps", "schedule", "precision", "channels")  # of --set
LEDGER = Path("out/bench.sqlite")
LedgerFile = Annotated[Path, typer.Option(help="The file that results are kept in.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Run failed jobs again.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be run.")]


@dataclass(frozen=True)
class Narrowing:
    """What of the suites is run, and with which settings."""

    only: Annotated[str | None, typer.Option(help="Contenders, separated by commas; controls come along.")] = None
    sets: Annotated[str | None, typer.Option(help="Data sets instead of the suite's, separated by commas.")] = None
    seeds: Annotated[str | None, typer.Option(help="Seeds instead of the suite's, separated by commas.")] = None
    protocols: Annotated[str | None, typer.Option(help="Protocols instead of the suite's.")] = None
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps: a trial, and marked as one.")] = None
    set_: opt.Set = None

    def suite_options(self) -> SuiteOptions:
        given = {"sets": self.sets, "seeds": self.seeds, "steps": None if self.steps is None else str(self.steps)}
        texts = {name: text for name, text in given.items() if text is not None} | texts_of(self.set_)
        more = {"contenders": opt.names_in(self.only), "protocols": opt.names_in(self.protocols)}
        return suite_options(texts, "scale", "family", "subsets", **more)


def run(
    suites: Annotated[
        list[str], typer.Argument(help="Suites, see `list suites`; what several of them need is trained once.")
    ],
    narrowing: Narrowing,
    ledger: LedgerFile = LEDGER,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one per core, one on a GPU.")] = None,
    device: opt.Device = "auto",
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    export: Annotated[Path | None, typer.Option(help="Write the ledger to this .csv or .parquet at the end.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Run what is missing of SUITES. The same command continues a run that was interrupted.

    --set takes schedule (per_step, per_epoch or both), precision, scale, subsets (per-seed or authors), channels of
    transfers (authors), and family for files among --sets (ucr, uea or large). Exit code 1 where a job failed or a
    data set could not be used; the others are run all the same.
    """
    check_outputs(export, overwrite=overwrite, inputs=(ledger,))
    jobs = suite_jobs(suites, narrowing.suite_options())
    if export is not None:
        check_export(export)

    with Ledger(":memory:") if dry_run and not ledger.exists() else Ledger(ledger, read_only=dry_run) as book:
        plan = make_plan(jobs, book, retry_failed=retry_failed)
        announce(plan)
        if dry_run:
            show_plan(plan)
        else:
            book.enrol([job for job in jobs if job.key in plan.states])
    n_failed = 0 if dry_run else run_units(plan.units, ledger, device, workers, plan.finished)

    if export is not None:
        with Ledger(ledger, read_only=True) as book:
            typer.echo(f"Wrote {write_table(export, *book.contents())} rows to {export}")
    if n_failed or (plan.unusable and not dry_run):
        raise typer.Exit(1)


def merge_ledgers(
    others: Annotated[list[Path], typer.Argument(help="Ledgers, tables exported from some, or folders of tables.")],
    ledger: LedgerFile = LEDGER,
) -> None:
    """Take the rows of other ledgers over into this one, all or none; of two for one job the newer stays."""
    paths = [path for other in others for path in exports_in(other)]
    sources = [read_contents(path) for path in paths]
    with Ledger(ledger) as book:
        for path, (rows, taken) in zip(paths, book.take(sources), strict=True):
            typer.echo(f"{path}: {rows} rows, {taken} of them taken over into {ledger}")


def suite_options(texts: dict[str, str], *names: str, **more: Any) -> SuiteOptions:
    """Make the options of suites from settings as they were written; `names` are more that are taken from them."""
    values = sort_settings(texts, reading=(), own=(*SUITE_SETTINGS, *names)).own
    taken = {name: values[name] for name in ("precision", *names) if name in values}
    schedule = texts.get("schedule", "per_step")
    return SuiteOptions(
        sets=opt.names_in(texts.get("sets")),
        seeds=opt.seeds_in(texts.get("seeds")),
        steps=whole_number("steps", values),
        channels=texts.get("channels", ""),
        schedules=("per_step", "per_epoch") if schedule == "both" else (schedule,),
        **taken,
        **more,
    )


def announce(plan: Plan) -> None:
    """Say what a user should know before hours are spent."""
    states = list(plan.states.values())
    shown = ("recorded", "failed", "no data", *(["unusable"] if "unusable" in states else []), "to run")
    counts = ", ".join(f"{states.count(state)} {state}" for state in shown)
    typer.echo(f"{len(states)} jobs: {counts}, in {len(plan.units)} fits.")
    if plan.missing:
        typer.echo(
            f"Left out, because the data are not here ({len(plan.missing)}): {', '.join(plan.missing)}. "
            "`python -m bench list datasets NAME` says how to get them."
        )
    for name, reason in plan.unusable.items():
        typer.echo(f"Left out, because it cannot be used: {name}. {reason}")
    for note in plan.notes:
        typer.echo(f"{note}.")
    if plan.changed:
        typer.echo(f"Other data than when they were recorded, so their jobs run again: {', '.join(plan.changed)}.")
    if states.count("failed"):
        typer.echo("Failed jobs are run again with --retry-failed.")


def show_plan(plan: Plan) -> None:
    counts = plan.counts()
    show_columns({"contender": counts, **{state: [one[state] for one in counts.values()] for state in STATES}})


def run_units(units: Sequence[Unit], ledger: Path, device: str, workers: int | None, finished_fits: Set[str]) -> int:
    """Run these units, and say how many of their jobs failed.

    What an earlier run here kept of finished fits is removed.
    """
    site = site_for(ledger, str(resolve_device(device)))
    clear_finished(site, finished_fits)
    # A GPU is not shared unless that is asked for: its fits would wait for one another.
    usual_workers = 1 if site.device.startswith("cuda") else os.cpu_count() or 1

    total = sum(len(unit.jobs) for unit in units)
    n_recorded = 0
    failures: list[str] = []
    with Bar("bench", total) as bar:

        def tell(job: Job, error: str | None) -> None:
            nonlocal n_recorded
            n_recorded += 1
            name = f"{job}, {job.protocol}"
            line = f"[{n_recorded}/{total}] {name}"
            if error is not None:
                failures.append(f"{name}: {error}")
                line += f" failed: {error.splitlines()[0]}"
            bar.update(n_recorded, name)
            if not sys.stderr.isatty():
                typer.echo(line)

        execute(units, ledger, site, workers or usual_workers, tell)

    summary = f"{n_recorded} jobs recorded in {ledger}"
    if failures:
        summary += f"; {len(failures)} of them failed: {failures[0]}"
    typer.echo(summary)
    return len(failures)
