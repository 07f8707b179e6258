"""The report of a suite as files: Markdown, CSV, LaTeX, one page, and its figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dicot.errors import InputError, did_you_mean
from dicot.progress import Bar
from dicot.report.bench_tables import failure_table
from dicot.report.filenames import distinct
from dicot.report.grid import column_name, column_of, natural
from dicot.report.html import render
from dicot.report.latex import PACKAGES, escape_latex, to_latex
from dicot.report.layouts import layout
from dicot.report.lines import latest, trial_note
from dicot.report.maps import maps
from dicot.report.paper_checks import paper_checks, paper_table
from dicot.report.parts import Draft, Part, Request
from dicot.report.tables import markdown_text, to_markdown
from dicot.storage import write_atomic

if TYPE_CHECKING:
    from dicot.bench.record import Record

Facts = Mapping[str, object]

HOW_TO_GET = "`dicot data show NAME` says how to get a data set; after that, run the same `dicot bench` again."


def write_report(
    folder: Path,
    suite: str,
    records: "Sequence[Record]",
    *,
    against_paper: bool = False,
    baseline: str | None = None,
    features: Path | None = None,
    lacking: Sequence[tuple[str, str]] = (),
    command: str = "",
) -> list[Path]:
    """report.md, .csv, .tex, .html and the figures as .svg into the folder; the paths that were written.

    `records` may hold other suites too. `features` is a file of embeddings to draw maps of, see `maps`. `lacking` says
    on which data sets (source, target) the suite should have been run and has no record.
    """
    from dicot.bench.recordfile import records_csv

    own = [record for record in records if record.suite == suite]
    absent = ", ".join(sorted({column_name(*pair) for pair in lacking}, key=natural))
    if not own:
        found = sorted({record.suite for record in records})
        hint = f"It was to run on {absent}. {HOW_TO_GET}" if absent else did_you_mean(suite, found)
        raise InputError(f"There are no records of the suite {suite!r}. {hint}")
    names = {record.contender for record in own}
    if baseline is not None and baseline.partition(", ")[0] not in names:
        raise InputError(f"There is no contender {baseline!r} to compare with. {did_you_mean(baseline, names)}")
    kept, older = latest(own, "batch_size" if suite == "batch_scaling" else None)
    request = Request(suite, tuple(kept), against_paper, baseline, features)
    title, banner = f"Benchmark: {suite}", trial_note(kept)
    facts = report_facts(kept, older, absent, command)
    parts = make_parts(request)
    texts = {
        "report.csv": records_csv(kept),
        "report.html": render(title, parts, facts, banner),
        "report.md": to_document(title, facts, banner, parts),
        "report.tex": to_tex(title, facts, banner, parts),
    }
    texts |= {f"{name}.svg": svg for part in parts for name, svg in part.figures.items()}
    for name, text in texts.items():
        write_atomic(folder / name, text.encode())
    return [folder / name for name in texts]


def make_parts(request: Request) -> list[Part]:
    """Everything the report shows, in order."""
    drafts = [*layout(request.suite)(request), *_last(request)]
    parts: list[Part] = []
    with Bar("report", len(drafts)) as bar:
        for done, draft in enumerate(drafts):
            bar.update(done, parts[-1].title if parts else "")
            parts += draft()
    return _told_apart(parts)


def _told_apart(parts: Sequence[Part]) -> list[Part]:
    """The parts with a file name of its own for every figure, whatever the data sets are called."""
    names = iter(distinct(name for part in parts for name in part.figures))
    return [replace(part, figures={next(names): svg for svg in part.figures.values()}) for part in parts]


def _last(request: Request) -> Iterator[Draft]:
    """What ends every report: maps, failures, the paper's arithmetic."""
    if request.features is not None:
        yield partial(maps, request.features)
    failed = failure_table(request.records)
    if failed is not None:
        yield lambda: [Part("Failed jobs", failed)]
    if request.against_paper:
        yield lambda: [Part("Where the paper's own arithmetic does not hold", paper_table(paper_checks()))]


def report_facts(records: "Sequence[Record]", older: int, absent: str, command: str) -> dict[str, object]:
    """Where the numbers come from."""
    jobs = {(r.contender, r.source, r.target, r.protocol, r.schedule, r.batch_size, r.seed): r.failed for r in records}
    dates = sorted(r.recorded for r in records if r.recorded)
    facts: dict[str, object] = {
        "jobs": f"{len(jobs)}, of which {sum(jobs.values())} failed",
        "data sets": len({column_of(r) for r in records}),
        "contenders": len({r.contender for r in records}),
        "seeds": ", ".join(map(str, sorted({r.seed for r in records}))),
        "devices": _listed(r.device for r in records),
        "versions": _listed(f"dicot {r.version}" if r.version else "" for r in records),
        "recorded": f"{dates[0]} to {dates[-1]}" if dates else "not said",
        "report made": date.today().isoformat(),
    }
    if absent:
        facts["no record of"] = f"{absent}. {HOW_TO_GET}"
    if older:
        facts["left out"] = f"{older} older records of cells that were recorded again"
    return facts | ({"command": command} if command else {})


def _listed(values: Iterator[str]) -> str:
    return ", ".join(sorted({value for value in values if value})) or "not said"


def to_document(title: str, facts: Facts, banner: str, parts: Sequence[Part]) -> str:
    """Markdown; figures are files beside it."""
    lines = [f"# {markdown_text(title)}", ""]
    lines += [f"> **{markdown_text(banner)}**", ""] if banner else []
    lines += [f"- {name}: {markdown_text(str(value))}" for name, value in facts.items()]
    for part in parts:
        lines += ["", f"## {markdown_text(part.title)}", ""]
        lines += [to_markdown(part.table)] if part.table is not None else []
        lines += [line for name in part.figures for line in (f"![{markdown_text(part.title)}]({name}.svg)", "")]
        lines += [markdown_text(part.text)] if part.text else []
    return "\n".join(lines).rstrip() + "\n"


def to_tex(title: str, facts: Facts, banner: str, parts: Sequence[Part]) -> str:
    """All tables, to be included in a document."""
    lines = [f"% {line}" for line in (title, banner, *(f"{name}: {value}" for name, value in facts.items())) if line]
    head = "\n".join(" ".join(line.split()) for line in lines)
    tables = [to_latex(part.table, part.title) for part in parts if part.table is not None]
    warning = rf"\begin{{center}}\fbox{{\textbf{{{escape_latex(banner)}}}}}\end{{center}}" + "\n" if banner else ""
    return f"{head}\n{PACKAGES}\n{warning}" + "\n".join(tables)
