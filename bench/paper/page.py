"""The paper as one page: every figure and table in its order, ours beside the paper's, and what each rests on."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from bench.paper import figures, tables
from bench.paper.grid import rests_on
from bench.paper.mapfile import read_maps
from bench.paper.numbers import ARCHIVES
from bench.paper.reports import CAVEATS, closing
from bench.paper.summary import summary_parts
from bench.paper.tables import Records, newest
from bench.report.benchmark import report_facts
from bench.report.frame import ALONE, SAME_LABELS, SHARED, trial_note
from bench.report.pages import write_pages
from bench.report.scores import MANY_SETS, failure_table
from dicot.core.errors import InputError, lookup
from dicot.data.datasets import DATASETS
from dicot.judge.report.frame import natural, seeds_of
from dicot.judge.report.page import Part
from dicot.judge.report.tables import text_table

TITLE = "Di-COT, the paper and this library"
READING = (
    "Every figure and table of the paper, in its order. Ours stand in front, the paper's number in brackets behind "
    "them, then the difference. Controls (random: an encoder as initialised, calibrated: the same after its BatchNorm "
    "statistics have seen the data) stand below the paper's lines and are never counted in its ranks: what a method "
    "adds is the distance from calibrated (D-02). Where a large data set is not at hand another of the same kind "
    "stands in for it, under its own name; such numbers are no reproduction of the paper's."
)
MAPS_KEY = "figure5"  # made of a file of maps, not of a suite
EVERYWHERE = ("large", "ucr", "uea")
FAMILIES = {  # of the data sets that a suite is about, where it is not called after them
    **dict.fromkeys(("low_label", "knn", "clustering"), ("large",)),
    **dict.fromkeys(("ablation", "extended_ablation"), EVERYWHERE),
    "positive_selection": (*EVERYWHERE, "transfer"),
    "batch_scaling": ("scaling",),
}


@dataclass(frozen=True)
class Exhibit:
    """A figure or a table of the paper, as exhibits.toml describes it."""

    title: str
    caption: str
    parts: str  # the name of the function that makes them, of `MAKERS`
    settings: Mapping[str, Any] = field(default_factory=dict)  # of that function
    suites: tuple[str, ...] = ()
    source: str = ""  # what it is made of where that is no result


def name_of(key: str) -> str:
    """Say the number of an exhibit as a reader does: table3 is Table 3."""
    kind = key.rstrip("0123456789")
    return f"{kind.capitalize()} {key.removeprefix(kind)}"


MAKERS: dict[str, Callable[..., Iterator[Part]]] = {
    maker.__name__: maker
    for maker in (
        figures.time_part,
        figures.method_part,
        figures.ranks_part,
        figures.neighbours_part,
        figures.maps_part,
        figures.scaling_part,
        figures.splits_part,
        tables.scores_part,
        tables.archives_part,
        tables.clustering_part,
        tables.variants_part,
        tables.positives_part,
        tables.data_sets_part,
    )
}
_DESCRIBED = tomllib.loads(Path(__file__).with_name("exhibits.toml").read_text(encoding="utf-8"))
EXHIBITS = {key: Exhibit(**{**one, "suites": tuple(one.get("suites", ()))}) for key, one in _DESCRIBED.items()}


def chosen(only: Sequence[str]) -> dict[str, Exhibit]:
    """Find exhibits by their keys, in the paper's order; all of them where none is named."""
    wanted = [name.strip().lower().replace(" ", "") for name in only]
    for name in wanted:
        lookup(EXHIBITS, name, "figure or table of the paper")
    return {key: one for key, one in EXHIBITS.items() if not wanted or key in wanted}


def write_paper(folder: Path, data: pd.DataFrame, beside: Path | None = None, only: Sequence[str] = ()) -> list[Path]:
    """Write report.html, report.md and the figures as .svg into the folder; return the paths."""
    facts, banner, parts = contents(data, beside, only)
    return write_pages(folder, TITLE, parts, facts, banner)


def contents(
    data: pd.DataFrame, beside: Path | None = None, only: Sequence[str] = ()
) -> tuple[dict[str, object], str, Iterator[Part]]:
    """Give facts, a warning about trials and all parts; a trial of a suite that is not shown does not count."""
    exhibits = chosen(only)
    data = data[data.suite.isin({suite for one in exhibits.values() for suite in one.suites})]
    facts = {"suites": ", ".join(sorted(set(data.suite))) or "none", **report_facts(data)}
    del facts["report made"]  # a page is the same whenever it is made
    return facts, trial_note(data), paper_parts(newest(data, beside), exhibits)


def paper_parts(records: Records, exhibits: Mapping[str, Exhibit]) -> Iterator[Part]:
    """Make everything the page shows, in order."""
    if list(exhibits) == list(EXHIBITS):
        on_large = {key for key, one in EXHIBITS.items() if one.suites and _families(one)[0] not in ARCHIVES}
        yield from summary_parts(records, [name_of(key) for key in EXHIBITS if key in on_large])
    rows = ((name_of(key), [one.title, state(records, key, one, brief=True)]) for key, one in exhibits.items())
    overview = text_table("exhibit", rows, ["what it shows", "rests on"], CAVEATS)
    yield Part("What is here", overview, lead=(READING,))
    for key, one in exhibits.items():
        yield from exhibit_parts(records, key, one)
    if (failed := failure_table(records.of(*set(records.data.suite)))) is not None:
        yield Part("Failed jobs", failed)
    yield from closing()


def exhibit_parts(records: Records, key: str, one: Exhibit) -> Iterator[Part]:
    """Make the heading of an exhibit with its caption, what it rests on and the command that fills it; then its parts.

    Records that cannot make a table, because a control is missing for instance, are no reason to leave it out: it says
    what is wrong.
    """
    lead = [one.caption, f"Rests on: {state(records, key, one)}", *circumstances(records, one)]
    lead += [f"To fill it: {how}" for how in commands(key, one)]
    parts: list[Part] = []
    try:
        parts += MAKERS[one.parts](records, *one.suites, **one.settings)
    except InputError as error:
        parts.append(Part("", text=f"It cannot be shown: {error}"))
    first = Part("", lead=tuple(lead))
    if parts and not parts[0].title:
        first, parts = replace(parts[0], lead=tuple(lead)), parts[1:]
    yield replace(first, title=f"{name_of(key)}. {one.title}", anchor=key)
    for part in parts:
        yield replace(part, level=3)


def state(records: Records, key: str, one: Exhibit, brief: bool = False) -> str:
    """Say in a sentence which data there are records of; `brief` names none of them."""
    if key == MAPS_KEY:
        found = None if records.maps is None else read_maps(records.maps).data_set
        return f"the test part of {found}." if found else "nothing yet: there is no file maps.npz beside the records."
    if not one.suites:
        return f"{one.source}."
    data = records.of(*one.suites)
    if data.empty:
        return f"nothing yet: there is no record of the suite {' or '.join(one.suites)}."
    lacking = [name for name in one.suites if name not in set(data.suite)]
    more = f" No record of the suite {' and '.join(lacking)}." if lacking else ""
    return rests_on(data, _families(one), brief) + more


def _families(one: Exhibit) -> list[str]:
    """The families of data sets that an exhibit is about."""
    return list(dict.fromkeys(family for suite in one.suites for family in FAMILIES.get(suite, (suite,))))


def circumstances(records: Records, one: Exhibit) -> Iterator[str]:
    """Say how many labels, which seeds, devices and precisions the numbers of an exhibit are made with."""
    data = records.of(*one.suites) if one.suites else pd.DataFrame()
    if data.empty:
        return
    seen = data.protocol.map(lambda name: SAME_LABELS.get(name, name))
    if wanted := one.settings.get("labels"):
        data, seen = data[seen == wanted], seen[seen == wanted]
    trained = data[data.precision != ""].drop_duplicates(["contender", "schedule", "source", "seed", "batch_size"])
    places = trained.device.str.replace(ALONE, "").str.replace(SHARED, "").value_counts()
    known = map(DATASETS.registered, sorted(data.target[data.metric == "accuracy"].unique()))
    constant = [f"{one.name} {one.constant_accuracy:.2f}" for one in known if one and one.constant_accuracy]
    labels = [labels_text(name, data.target[seen == name]) for name in sorted(seen.unique(), key=natural)]
    told = {
        "Labels": ", ".join(labels),
        "Seeds": ", ".join(map(str, seeds_of(data))),
        "Trained on": ", ".join(f"{name or 'a device without a name'} ({n:,} fits)" for name, n in places.items()),
        "Precision": ", ".join(sorted(trained.precision.unique())),
        "Accuracy of always answering the commonest class of the training cases": ", ".join(constant),
    }
    yield " ".join(f"{name}: {words}." for name, words in told.items() if words)


def labels_text(protocol: str, targets: pd.Series) -> str:
    """Say how many labels a protocol sees."""
    known = {name: DATASETS.registered(name) for name in sorted(targets.unique())}
    sizes = {name: one.sizes.n_train for name, one in known.items() if one and one.sizes and one.sizes.n_train}
    if protocol == "linear":
        counts = [f"{name} {count:,}" for name, count in sizes.items()]
        many = f"{min(sizes.values()):,} to {max(sizes.values()):,} cases" if sizes else ""
        shown = ", ".join(counts) if len(counts) <= MANY_SETS else many
        return "all of the training cases" + (f" ({shown})" if shown else "")
    count = protocol.removeprefix("knn_")
    known_words = {"few_1pct": "1 % of the training cases", "clustering": "none but to score", "cost": "none"}
    return known_words.get(protocol, f"{count} per class" if count != protocol else protocol)


def commands(key: str, one: Exhibit) -> list[str]:
    """Say how to run what is missing of an exhibit."""
    return [f"`python -m bench paper --run --only {key}`."] if one.suites or key == MAPS_KEY else []
