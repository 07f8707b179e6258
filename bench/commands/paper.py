"""python -m bench paper: every figure and table of the paper on one page, and the runs that are missing for it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.commands.run import LEDGER, DryRun, RetryFailed, announce, run_units, show_plan, suite_options
from dicot.cli import options as opt
from dicot.cli.paths import check_output_folder
from dicot.cli.settings import texts_of, value_of, whole_number
from dicot.core.errors import WrongCallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.suites import SuiteOptions
    from dicot.judge.evaluation.jobs import Job

RECORDS = Path("results")  # what is published with the library
MAPS = "maps.npz"  # beside the records, as in bench.paper.tables
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
    from bench.ledger import MEASURED, exports_in, read_records
    from bench.paper.page import MAPS_KEY, chosen, write_paper
    from bench.paper.suites import with_stand_ins
    from bench.report.frame import frame
    from dicot.core.storage import write_atomic
    from dicot.judge.report.page import need_packages

    if not dry_run:
        check_output_folder(out, overwrite=overwrite)
    need_packages()
    if ledger is not None and records is not None and not run:
        raise WrongCallError("Give either --ledger FILE or --records PATH; together they need --run.")
    if (dry_run or retry_failed or set_) and not run:
        raise WrongCallError("--dry-run, --retry-failed and --set are for --run. Give it too, or leave them out.")
    exhibits, failed = chosen(opt.names_in(only)), False
    if run:
        texts = texts_of(set_)
        workers = whole_number("workers", {"workers": value_of("workers", texts.pop("workers", "null"))})
        options = suite_options(texts)
        published = exports_in(records or RECORDS) if records is not None or RECORDS.is_dir() else []
        ledger, records = ledger or LEDGER, None
        suites = list(dict.fromkeys(suite for one in exhibits.values() for suite in one.suites))
        jobs = with_stand_ins(suites, options) if suites else []  # an exhibit may need a file alone
        failed = _run(jobs, ledger, published, retry_failed, dry_run, device=device, workers=workers)
        if MAPS_KEY in exhibits:
            _run_maps(ledger.parent / MAPS, published, options, device, dry_run)
        if dry_run:
            return
        for table in {one for path in published for name in MEASURED for one in path.parent.glob(f"{name}*.csv")}:
            if not (copy := ledger.with_name(table.name)).exists():
                write_atomic(copy, table.read_bytes())
    elif ledger is None and records is None:
        ledger, records = (LEDGER, None) if LEDGER.exists() or not RECORDS.is_dir() else (None, RECORDS)
    place = records or ledger or LEDGER
    data = frame(row for result in read_records(ledger, records)[0] for row in result.tidy())
    paths = write_paper(out, data, place if place.is_dir() else place.parent, list(exhibits))
    typer.echo(f"Wrote {len(paths)} files, among them {out / 'report.html'}")
    if failed:
        raise typer.Exit(1)


def _run(
    jobs: "Sequence[Job]", ledger: Path, tables: "Sequence[Path]", retry_failed: bool, dry_run: bool, **how: Any
) -> bool:
    """Run what of these jobs the ledger and published tables lack, on a device with workers; whether one failed."""
    from bench.ledger import Ledger, read_contents
    from bench.paper.suites import cheapest_first
    from bench.plan import make_plan

    with Ledger(":memory:" if dry_run else ledger) as book:
        book.take([read_contents(path) for path in (*tables, *([ledger] if dry_run and ledger.exists() else []))])
        plan = make_plan(jobs, book, retry_failed=retry_failed)
        announce(plan)
        if dry_run:
            show_plan(plan)
            return False
        book.enrol([job for job in jobs if job.key in plan.states])
    return bool(run_units(cheapest_first(plan.units), ledger, finished_fits=plan.finished, **how) or plan.unusable)


def _run_maps(path: Path, published: "Sequence[Path]", options: "SuiteOptions", device: str, dry_run: bool) -> None:
    """Make the maps of the paper's data set, or of one that is at hand; those that are published are gone on with."""
    from bench.paper.mapfile import read_maps
    from bench.paper.maps import run_maps
    from bench.paper.suites import maps_set
    from dicot.core.storage import write_atomic

    name = options.sets[0] if options.sets else maps_set()
    before = [one for one in {table.with_name(MAPS) for table in published} if one.is_file()]
    if before and not (path.exists() or dry_run or options.steps) and read_maps(before[0]).data_set == name:
        write_atomic(path, before[0].read_bytes())
    if name is None:
        typer.echo(f"No data set for {path} is at hand.")
    elif dry_run:
        typer.echo(f"Maps of {name} would be written to {path}, as far as they are not in it.")
    else:
        run_maps(name, path, seed=(options.seeds or (1,))[0], device=device, steps=options.steps)
        typer.echo(f"Wrote the maps of {name} to {path}")
