"""python -m bench report: the tables and figures of a benchmark suite from what was recorded."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.commands.run import LEDGER
from dicot.cli.options import Overwrite, names_in
from dicot.cli.paths import check_inputs, check_output_folder
from dicot.core.errors import InputError, WrongCallError, naming

if TYPE_CHECKING:
    import pandas as pd


def report(
    suite: Annotated[str, typer.Argument(help="A suite; joined as ucr+uea; several reports as ucr,uea.")],
    ledger: Annotated[Path | None, typer.Option(help=f"A ledger; default: {LEDGER}.")] = None,
    records: Annotated[Path | None, typer.Option(help="An export of a ledger, or a folder of exports.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the report; default without INTO: out/SUITE.")] = None,
    against_paper: Annotated[bool, typer.Option("--against-paper", help="Ours beside the paper's numbers.")] = False,
    only: Annotated[str | None, typer.Option(help="Rank only these contenders, or `paper` for its lines.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Whom to count wins and losses against; default: dicot.")] = None,
    into: Annotated[Path | None, typer.Option(help="Put the summary table between the marks of this file.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the table INTO is up to date.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Report a SUITE: tables, ranks, tests and figures, with the controls in every table."""
    if check and into is None:
        raise WrongCallError("--check needs --into FILE: it says whether the table in that file is up to date.")
    check_inputs("file", records, into)

    from bench.ledger import read_records, write_table
    from bench.paper import reports  # adds the layouts of the paper's suites
    from bench.paper.reports import of_the_papers_lines
    from bench.report.benchmark import JOIN, narrowed, write_report
    from bench.report.frame import frame
    from bench.report.pages import folder_name

    suites = list(dict.fromkeys(name.strip() for name in suite.split(",")))
    folders: dict[str, Path] = {}
    if out is not None and len(suites) == 1:
        folders = {suites[0]: out}
    elif out is not None or into is None:
        folders = {name: (out or LEDGER.parent) / folder_name(name) for name in suites}
    for folder in folders.values():
        check_output_folder(folder, overwrite=overwrite)
    results, wanted = read_records(LEDGER if ledger is None and records is None else ledger, records)
    data = frame(row for result in results for row in result.tidy())
    for name, folder in folders.items():
        members, rows, outside = name.split(JOIN), data, None
        if only is not None:
            rows = data[data.suite.isin(members)]
            rows, outside = of_the_papers_lines(rows) if only == "paper" else narrowed(rows, names_in(only))
        paths = write_report(
            folder,
            name,
            rows,
            beside=reports if against_paper else None,
            baseline=baseline,
            outside=outside,
            lacking=[place for whose, *place in wanted if whose in members],
            command=shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
        )
        own = [result for result in results if result.suite in members]
        write_table(folder / "report.csv", own, [place for place in wanted if place[0] in members])
        typer.echo(f"Wrote {len(paths) + 1} files, among them {folder / 'report.html'}")
    if into is not None:
        members = [one for name in suites for one in name.split(JOIN)]
        _sum_up(into, data[data.suite.isin(members)], members, check)


def _sum_up(path: Path, data: "pd.DataFrame", suites: list[str], check: bool) -> None:
    from bench.paper.reports import summary_markdown, with_summary
    from dicot.core.storage import write_atomic

    block = summary_markdown(data)
    with naming(path):
        text = path.read_text(encoding="utf-8")
        current = with_summary(text, block, suites)
    if not check:
        write_atomic(path, current.encode())
        typer.echo(f"Wrote the summary into {path}")
    elif text != current:
        raise InputError(f"The summary in {path} is out of date. Run the same command without --check.")
    else:
        typer.echo(f"The summary in {path} is up to date.")
