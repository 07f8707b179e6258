"""python -m bench paper: every figure and table of the paper on one page, and the runs that are missing for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.commands.run import LEDGER, DryRun, RetryFailed, announce, run_units, show_plan, suite_options
from bench.ledger import MEASURED, Ledger, exports_in, read_contents, read_records
from bench.paper.mapfile import read_maps
from bench.paper.maps import run_maps
from bench.paper.page import MAPS_KEY, Exhibit, chosen, write_paper
from bench.paper.suites import cheapest_first, maps_set, with_stand_ins
from bench.paper.tables import MAPS
from bench.plan import make_plan
from bench.report.frame import frame
from bench.suites import SuiteOptions
from dicot.cli import options as opt
from dicot.cli.paths import check_output_folder
from dicot.cli.settings import texts_of, value_of, whole_number
from dicot.core.errors import WrongCallError
from dicot.core.storage import write_atomic
from dicot.judge.report.page import need_packages

RECORDS = Path("results")  # what is published with the library
OUT = Path("out/paper")


def paper(
    out: Annotated[Path, typer.Option(help="Folder for report.html, report.md and figures.")] = OUT,
    records: Annotated[Path | None, typer.Option(help="An export of a ledger, or a folder of exports.")] = None,
    ledger: Annotated[Path | None, typer.Option(help=f"A ledger; default: {LEDGER}, or else {RECORDS}/.")] = None,
    only: Annotated[str | None, typer.Option(help="Figures and tables, such as table3,figure6; default: all.")] = None,
    run: Annotated[bool, typer.Option("--run", help="First run what is missing into the ledger.")] = False,
    device: opt.Device = "auto",
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    overwrite: opt.Overwrite = False,
    set_: opt.Set = None,
) -> None:
    """Show every figure and table of the paper on one page: ours beside the paper's, or what is missing and why.

    With --run, --set takes workers, sets, seeds, steps, precision and schedule (per_step, per_epoch or both).
    """
    if not dry_run:
        check_output_folder(out, overwrite=overwrite)
    need_packages()
    if ledger is not None and records is not None and not run:
        raise WrongCallError("Give either --ledger FILE or --records PATH; together they need --run.")
    if (dry_run or retry_failed or set_) and not run:
        raise WrongCallError("--dry-run, --retry-failed and --set are for --run. Give it too, or leave them out.")

    exhibits = chosen(opt.names_in(only))
    failed = False
    if run:
        missing = MissingRuns(ledger or LEDGER, published_in(records), device, dry_run, retry_failed, set_ or [])
        failed = missing.run(exhibits.values(), with_maps=MAPS_KEY in exhibits)
        if dry_run:
            return
        ledger, records = missing.ledger, None
    elif ledger is None and records is None:
        ledger, records = (LEDGER, None) if LEDGER.exists() or not RECORDS.is_dir() else (None, RECORDS)

    data = frame(row for result in read_records(ledger, records).results for row in result.tidy())
    source = records or ledger or LEDGER
    paths = write_paper(out, data, source if source.is_dir() else source.parent, list(exhibits))
    typer.echo(f"Wrote {len(paths)} files, among them {out / 'report.html'}")
    if failed:
        raise typer.Exit(1)


def published_in(records: Path | None) -> list[Path]:
    """List the tables that runs go on from: those that were named, or those of the repository."""
    if records is None and not RECORDS.is_dir():
        return []
    return exports_in(records or RECORDS)


@dataclass(frozen=True)
class MissingRuns:
    """What --run does before the page is made."""

    ledger: Path
    published: Sequence[Path]  # tables whose rows are taken over
    device: str
    dry_run: bool
    retry_failed: bool
    settings: Sequence[str]  # as --set has them

    def run(self, exhibits: Iterable[Exhibit], *, with_maps: bool) -> bool:
        """Run what is missing of these exhibits, and tell whether a job failed."""
        texts = texts_of(self.settings)
        workers = whole_number("workers", {"workers": value_of("workers", texts.pop("workers", "null"))})
        options = suite_options(texts)
        suites = list(dict.fromkeys(suite for exhibit in exhibits for suite in exhibit.suites))
        failed = self.run_suites(suites, options, workers)
        if with_maps:
            self.run_maps(options)
        if not self.dry_run:
            self.copy_measured()
        return failed

    def run_suites(self, suites: Sequence[str], options: SuiteOptions, workers: int | None) -> bool:
        jobs = with_stand_ins(suites, options) if suites else []  # an exhibit may need a file alone
        sources = list(self.published)
        if self.dry_run and self.ledger.exists():
            sources.append(self.ledger)

        with Ledger(":memory:" if self.dry_run else self.ledger) as book:
            book.take([read_contents(path) for path in sources])
            plan = make_plan(jobs, book, retry_failed=self.retry_failed)
            announce(plan)
            if self.dry_run:
                show_plan(plan)
                return False
            book.enrol([job for job in jobs if job.key in plan.states])
        n_failed = run_units(cheapest_first(plan.units), self.ledger, self.device, workers, plan.finished)
        return n_failed > 0 or bool(plan.unusable)

    def run_maps(self, options: SuiteOptions) -> None:
        """Make the maps of the paper's data set, or of one that is at hand, and go on with those that are published."""
        path = self.ledger.parent / MAPS
        name = options.sets[0] if options.sets else maps_set()
        before = [file for file in {table.with_name(MAPS) for table in self.published} if file.is_file()]
        is_trial = options.steps is not None
        if before and not (path.exists() or self.dry_run or is_trial) and read_maps(before[0]).data_set == name:
            write_atomic(path, before[0].read_bytes())

        if name is None:
            typer.echo(f"No data set for {path} is at hand.")
        elif self.dry_run:
            typer.echo(f"Maps of {name} would be written to {path}, as far as they are not in it.")
        else:
            run_maps(name, path, seed=(options.seeds or (1,))[0], device=self.device, steps=options.steps)
            typer.echo(f"Wrote the maps of {name} to {path}")

    def copy_measured(self) -> None:
        """Put the published measurements beside the ledger, where the page looks for them; none is replaced."""
        for folder in {path.parent for path in self.published}:
            for name in MEASURED:
                for table in folder.glob(f"{name}*.csv"):
                    copy = self.ledger.with_name(table.name)
                    if not copy.exists():
                        write_atomic(copy, table.read_bytes())
