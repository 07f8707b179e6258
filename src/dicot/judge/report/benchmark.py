"""The report of a suite as files: one page, Markdown, and its figures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

import pandas as pd

from dicot.core.errors import InputError, did_you_mean
from dicot.core.storage import write_atomic
from dicot.judge.report.decision import decision_parts
from dicot.judge.report.frame import CONTROLS, data_sets, latest, natural, seeds_of, trial_note
from dicot.judge.report.layouts import JOIN, Beside, Request, layout_of
from dicot.judge.report.page import Opening, render
from dicot.judge.report.parts import Part, drawn
from dicot.judge.report.scores import failure_table
from dicot.judge.report.tables import markdown_text, to_markdown

HOW_TO_GET = "`dicot list datasets NAME` says how to get a data set; after that, run the same `dicot bench` again."
JOB = ["contender", "source", "target", "protocol", "schedule", "batch_size", "seed"]


def write_report(
    folder: Path,
    suite: str,
    data: pd.DataFrame,
    *,
    beside: Beside | None = None,
    baseline: str | None = None,
    outside: Sequence[str] = (),
    lacking: Sequence[tuple[str, str]] = (),
    command: str = "",
) -> list[Path]:
    """Write report.html, report.md and the figures as .svg into the folder; return the paths.

    `data` is a tidy frame (see `frame`) and may hold other suites too. `suite` may be several that are joined,
    `ucr+uea`: one report over the rows of both. `beside` has published numbers to show beside ours. Contenders
    `outside` are shown without a rank. `lacking` says on which data sets (source, target) the suite should have been
    run and has no record.
    """
    request, older = requested(suite, data, beside, baseline, outside, lacking)
    title, banner = f"Benchmark: {suite.replace(JOIN, ' and ')}", trial_note(request.data)
    facts = report_facts(request.data, older, _named(lacking), command)
    parts = drawn(report_parts(request))
    opening = [Opening(part.lead[0], part.lead[1:]) for part in parts[:1] if not part.title]
    texts = {
        "report.html": render(title, parts[len(opening) :], facts, banner, *opening),
        "report.md": to_document(title, facts, banner, parts),
    }
    texts |= {f"{name}.svg": svg for part in parts for name, svg in part.drawings.items()}
    for name, text in texts.items():
        write_atomic(folder / name, text.encode())
    return [folder / name for name in texts]


def requested(
    suite: str,
    data: pd.DataFrame,
    beside: Beside | None = None,
    baseline: str | None = None,
    outside: Sequence[str] = (),
    lacking: Sequence[tuple[str, str]] = (),
) -> tuple[Request, int]:
    """Find the newest rows of a suite, or of several that are joined, and say how many older ones are left out."""
    names = suite.split(JOIN)
    own = data[data.suite.isin(names)]
    for name in names:
        if not (own.suite == name).any():
            absent = _named(lacking)
            hint = f"It was to run on {absent}. {HOW_TO_GET}" if absent else did_you_mean(name, sorted(set(data.suite)))
            raise InputError(f"There are no records of the suite {name!r}. {hint}")
    known = set(own.contender)
    if baseline is not None and baseline.partition(", ")[0] not in known:
        raise InputError(f"There is no contender {baseline!r} to compare with. {did_you_mean(baseline, known)}")
    newest = latest(own, ["batch_size"] if "batch_scaling" in names else [])
    return Request(suite, newest, beside, baseline, tuple(outside)), len(own) - len(newest)


def narrowed(data: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Keep the rows of these contenders and of the controls; controls that were not asked for have no rank."""
    known = set(data.contender)
    for name in names:
        if name not in known:
            raise InputError(f"There is no contender {name!r} in these records. {did_you_mean(name, known)}")
    outside = tuple(name for name in CONTROLS if name not in names)
    return data[data.contender.isin([*names, *CONTROLS])], outside


def _named(lacking: Sequence[tuple[str, str]]) -> str:
    """Name data sets and transfers."""
    return ", ".join(sorted({target if s == target else f"{s} > {target}" for s, target in lacking}, key=natural))


def report_parts(request: Request) -> Iterator[Part]:
    """Make everything the report shows, in order: what it comes to first; failures and the paper's sums last."""
    yield from decision_parts(request)
    yield from layout_of(request.suite)(request)
    if (failed := failure_table(request.data)) is not None:
        yield Part("Failed jobs", failed)
    if request.beside is not None:
        yield from request.beside.closing()


def report_facts(data: pd.DataFrame, older: int, absent: str, command: str) -> dict[str, object]:
    """Say where the numbers come from."""
    jobs = data.error.notna().groupby([data[name] for name in JOB]).any()
    dates = sorted(set(data.recorded) - {""})
    facts: dict[str, object] = {
        "jobs": f"{len(jobs)}, of which {jobs.sum()} failed",
        "data sets": data_sets(data).nunique(),
        "contenders": data.contender.nunique(),
        "seeds": ", ".join(map(str, seeds_of(data))),
        "devices": _listed(data.device),
        "versions": _listed(f"dicot {version}" if version else "" for version in data.version),
        "recorded": f"{dates[0]} to {dates[-1]}" if dates else "not said",
        "report made": date.today().isoformat(),
    }
    if absent:
        facts["no record of"] = f"{absent}. {HOW_TO_GET}"
    if older:
        facts["left out"] = f"{older} older records of cells that were recorded again"
    return facts | ({"command": command} if command else {})


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted({value for value in values if value})) or "not said"


def to_document(title: str, facts: Mapping[str, object], banner: str, parts: Sequence[Part]) -> str:
    """Write Markdown; figures are files beside it."""
    lines = [f"# {markdown_text(title)}", ""]
    lines += [f"> **{markdown_text(banner)}**", ""] if banner else []
    opening = [part for part in parts[:1] if not part.title]  # what it all comes to stands before where it comes from
    lines += [line for part in opening for text in part.lead for line in (markdown_text(text), "")]
    lines += [f"- {name}: {markdown_text(str(value))}" for name, value in facts.items()]
    for part in parts[len(opening) :]:
        lines += ["", f"{'#' * part.level} {markdown_text(part.title)}"] if part.title else []
        lines += ["", *(line for text in part.lead for line in (markdown_text(text), ""))] if part.lead else [""]
        lines += [to_markdown(part.table)] if part.table is not None else []
        lines += [line for name in part.drawings for line in (f"![{markdown_text(part.title)}]({name}.svg)", "")]
        lines += [markdown_text(part.text)] if part.text else []
    return "\n".join(lines).rstrip() + "\n"
