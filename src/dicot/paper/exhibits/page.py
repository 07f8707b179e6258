"""The paper as one page: every figure and table in its order, ours beside the paper's, and what each rests on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from dicot.core.errors import InputError, lookup
from dicot.judge.report.benchmark import report_facts
from dicot.judge.report.frame import trial_note
from dicot.judge.report.page import Part, drawn, to_document, write_pages
from dicot.judge.report.scores import failure_table
from dicot.judge.report.tables import text_table
from dicot.paper.exhibits import EXHIBITS, MAPS, Exhibit
from dicot.paper.exhibits.records import Records, newest
from dicot.paper.lines import rests_on
from dicot.paper.reports import CAVEATS, audit_table
from dicot.use.projection import read_maps

TITLE = "Di-COT, the paper and this library"
READING = (
    "Every figure and table of the paper, in its order. Ours stand in front, the paper's number in brackets behind "
    "them, then the difference. Controls (random: an encoder as initialised, calibrated: the same after its BatchNorm "
    "statistics have seen the data) stand below the paper's lines and are never counted in its ranks: what a method "
    "adds is the distance from calibrated (D-02). Where a large data set is not at hand another of the same kind "
    "stands in for it, under its own name; such numbers are no reproduction of the paper's."
)


def chosen(only: Sequence[str]) -> dict[str, Exhibit]:
    """Find exhibits by their keys, in the paper's order; all of them where none is named."""
    wanted = [name.strip().lower().replace(" ", "") for name in only]
    for name in wanted:
        lookup(EXHIBITS, name, "figure or table of the paper")
    return {key: one for key, one in EXHIBITS.items() if not wanted or key in wanted}


def write_paper(
    folder: Path,
    data: pd.DataFrame,
    maps: Path | None = None,
    only: Sequence[str] = (),
    outdated: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write report.html, report.md and the figures as .svg into the folder; return the paths.

    `outdated` says by key which rows were made with other settings than today's, in words.
    """
    data = _of_suites(data, only)
    return write_pages(folder, TITLE, paper_parts(newest(data, maps, outdated), only), _facts(data), trial_note(data))


def paper_markdown(
    data: pd.DataFrame,
    maps: Path | None = None,
    only: Sequence[str] = (),
    outdated: Mapping[str, str] | None = None,
) -> str:
    """Give the text of report.md without drawing a figure; it depends on the records alone, so it can be compared."""
    data = _of_suites(data, only)
    parts = drawn(paper_parts(newest(data, maps, outdated), only), named_only=True)
    return to_document(TITLE, _facts(data), trial_note(data), parts)


def _of_suites(data: pd.DataFrame, only: Sequence[str]) -> pd.DataFrame:
    """Keep the suites behind the exhibits: a trial of another one does not make their numbers one."""
    return data[data.suite.isin({suite for one in chosen(only).values() for suite in one.suites})]


def paper_parts(records: Records, only: Sequence[str] = ()) -> Iterator[Part]:
    """Make everything the page shows, in order."""
    exhibits = chosen(only)
    rows = ((one.name(key), [one.title, state(records, key, one)]) for key, one in exhibits.items())
    overview = text_table("exhibit", rows, ["what it shows", "rests on"], CAVEATS)
    yield Part("What is here", overview, lead=(READING,))
    for key, one in exhibits.items():
        yield from exhibit_parts(records, key, one)
    shown = records.of(*{suite for one in exhibits.values() for suite in one.suites})
    if (failed := failure_table(shown)) is not None:
        yield Part("Failed jobs", failed)
    yield Part("Where the paper's own arithmetic does not hold", audit_table())


def exhibit_parts(records: Records, key: str, one: Exhibit) -> Iterator[Part]:
    """Make the heading of an exhibit with its caption, what it rests on and the command that fills it; then its parts.

    Records that cannot make a table, because a control is missing for instance, are no reason to leave it out: it says
    what is wrong.
    """
    lead = [one.caption, f"Rests on: {state(records, key, one)}"]
    lead += [f"To fill it: {how}" for how in commands(records, key, one)]
    if old := sorted({records.outdated[key] for key in records.of(*one.suites).key if key in records.outdated}):
        lead.append(f"Records that differ from what the suite makes today: {', '.join(old)}.")
    parts: list[Part] = []
    try:
        parts += one.parts(records)
    except InputError as error:
        parts.append(Part("", text=f"It cannot be shown: {error}"))
    first = Part("", lead=tuple(lead))
    if parts and not parts[0].title:
        first, parts = replace(parts[0], lead=tuple(lead)), parts[1:]
    yield replace(first, title=f"{one.name(key)}. {one.title}", anchor=key)
    for part in parts:
        yield replace(part, level=3)


def state(records: Records, key: str, one: Exhibit) -> str:
    """Say in a sentence which data there are records of."""
    if key == MAPS:
        found = None if records.maps is None else read_maps(records.maps).data_set
        return f"the test part of {found}." if found else "nothing yet: there is no file maps.npz beside the records."
    if not one.suites:
        return f"{one.source}."
    data = records.of(*one.suites)
    if data.empty:
        return f"nothing yet: there is no record of the suite {' or '.join(one.suites)}."
    lacking = [name for name in one.suites if name not in set(data.suite)]
    more = f" No record of the suite {' and '.join(lacking)}." if lacking else ""
    return rests_on(data, one.families) + more


def commands(records: Records, key: str, one: Exhibit) -> list[str]:
    """Say how to run what is missing of an exhibit, in the precision of its records, so that these are continued."""
    if not one.suites:
        return [f"`dicot paper --run --only {key}`."] if key == MAPS else []
    suites: dict[str, list[str]] = {}
    for suite in one.suites:
        suites.setdefault(_precision(records.of(suite)), []).append(suite)
    out = []
    for precision, own in suites.items():
        # Suites of two precisions need two commands: each names what is made of its own suites alone.
        keys = [key] if len(suites) == 1 else [k for k, other in EXHIBITS.items() if other.suites == tuple(own)][:1]
        keys = keys or [next(k for k, other in EXHIBITS.items() if other.suites == (suite,)) for suite in own]
        flag = f" --set precision={precision}" if precision else ""
        out.append(f"`dicot paper --run --only {','.join(keys)}{flag}`, which runs {' and '.join(own)}.")
    return out


def _precision(data: pd.DataFrame) -> str:
    """Tell the precision that most rows were trained in; empty where that is the usual one, or nothing is recorded."""
    trained = data.precision[data.precision != ""]
    most = "" if trained.empty else str(trained.value_counts().index[0])
    return "" if most == "float32" else most


def _facts(data: pd.DataFrame) -> dict[str, object]:
    facts = report_facts(data)
    del facts["report made"]  # a page is the same whenever it is made
    suites = sorted(set(data.suite))
    return {"suites": ", ".join(suites) or "none", **facts}
