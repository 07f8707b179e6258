"""python -m bench report: the tables and figures of a benchmark suite from what was recorded."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from bench.commands.run import LEDGER
from bench.ledger import Contents, read_records, write_table
from bench.paper import reports
from bench.report.benchmark import JOIN, write_report
from bench.report.frame import frame
from bench.report.pages import folder_name
from dicot.cli.options import Overwrite
from dicot.cli.paths import check_inputs, check_output_folder
from dicot.core.errors import InputError, WrongCallError, naming
from dicot.core.storage import write_atomic


def report(
    suite: Annotated[str, typer.Argument(help="A suite; joined as ucr+uea; several reports as ucr,uea.")],
    ledger: Annotated[Path | None, typer.Option(help=f"A ledger; default: {LEDGER}.")] = None,
    records: Annotated[Path | None, typer.Option(help="An export of a ledger, or a folder of exports.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the report; default without INTO: out/SUITE.")] = None,
    against_paper: Annotated[bool, typer.Option("--against-paper", help="Ours beside the paper's numbers.")] = False,
    baseline: Annotated[str | None, typer.Option(help="Whom to count wins and losses against; default: dicot.")] = None,
    into: Annotated[Path | None, typer.Option(help="Put the summary table between the marks of this file.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the table INTO is up to date.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Report a SUITE: tables, ranks, tests and figures, with the controls in every table."""
    if check and into is None:
        raise WrongCallError("--check needs --into FILE: it says whether the table in that file is up to date.")
    check_inputs("file", records, into)
    names = list(dict.fromkeys(name.strip() for name in suite.split(",")))
    folders = folders_of(names, out) if out is not None or into is None else {}
    for folder in folders.values():
        check_output_folder(folder, overwrite=overwrite)

    contents = read_records(LEDGER if ledger is None and records is None else ledger, records)
    data = frame(row for result in contents.results for row in result.tidy())
    for name, folder in folders.items():
        write_one(folder, name, contents, data, against_paper=against_paper, baseline=baseline)
    if into is not None:
        members = [member for name in names for member in name.split(JOIN)]
        sum_up(into, data[data.suite.isin(members)], members, check=check)


def folders_of(names: list[str], out: Path | None) -> dict[str, Path]:
    """Give each report its folder: the one that was named, or one called after the suite inside it."""
    if out is not None and len(names) == 1:
        return {names[0]: out}
    return {name: (out or LEDGER.parent) / folder_name(name) for name in names}


def write_one(
    folder: Path, name: str, contents: Contents, data: pd.DataFrame, *, against_paper: bool, baseline: str | None
) -> None:
    """Write the report of one suite, or of several that are joined, and what it is made of as report.csv."""
    members = name.split(JOIN)
    results = [result for result in contents.results if result.suite in members]
    wanted = [place for place in contents.wanted if place[0] in members]
    paths = write_report(
        folder,
        name,
        data,
        beside=reports if against_paper else None,
        baseline=baseline,
        lacking=[(source, target) for _, source, target in wanted],
        command=shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
    )
    write_table(folder / "report.csv", results, wanted)
    typer.echo(f"Wrote {len(paths) + 1} files, among them {folder / 'report.html'}")


def sum_up(path: Path, data: pd.DataFrame, suites: list[str], *, check: bool) -> None:
    """Put the summary of these suites between the marks of a file, or say whether it is there already."""
    block = reports.summary_markdown(data)
    with naming(path):
        text = path.read_text(encoding="utf-8")
        current = reports.with_summary(text, block, suites)

    if check and text != current:
        raise InputError(f"The summary in {path} is out of date. Run the same command without --check.")
    if check:
        typer.echo(f"The summary in {path} is up to date.")
    else:
        write_atomic(path, current.encode())
        typer.echo(f"Wrote the summary into {path}")
