"""The numbers that the Di-COT paper prints: a table of its lines and data sets for every suite of ours."""

import json
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

from bench.report.frame import FIRST, FORESTS, SAME_LABELS

LARGE = ("ECG", "HARTH", "PAMAP2", "SKODA", "SLEEP", "WISDM2")
FOREST = "Random Forest"  # on the means of the channels (D-36)
NAMES = {
    "dicot": "Di-COT",
    "catt": "CaTT",
    "cost": "CoST",
    "infots": "InfoTS",
    "simmtm": "SimMTM",
    "soft": "Soft",
    "tfc": "TF-C",
    "tnc": "TNC",
    "ts2vec": "TS2Vec",
    "tstcc": "TS-TCC",
    "supervised": "Supervised_B",
    "end-to-end": "Supervised",
    "random": "Random Init.",
    "minirocket": "MiniRocket",  # refitted per batch and scored by a forest (D-37)
    "raw-mean": "Raw Data",  # the means of the channels, scored by the probe (D-35)
}
METHODS = tuple(NAMES)[:10]  # in the paper's order
ARCHIVES = ("ucr", "uea")
COUNTS = ("5", "10", "50", "100", "500")  # labelled cases per class
AVERAGE, HOURS = "average", "Time (hrs)"
# Suite -> its table in tables.json, and the labels that the scores of that table see; knn has one for every count.
TABLES = {
    "ucr": ("ucr", "linear"),
    "uea": ("uea", "linear"),
    "large": ("linear_probe", "linear"),
    "low_label": ("low_label_1pct", "few_1pct"),
    "knn": ("knn", "knn_"),
    "clustering": ("clustering_per_dataset", "clustering"),
    "transfer": ("transfer", "linear"),
}
VARIANTS = {
    "ablation": "ablation",
    "extended_ablation": "ablation_extended",
    "positive_selection": "positive_selection",
}


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((files("bench.paper") / name).read_text(encoding="utf-8"))
    return content


@cache
def paper_tables() -> dict[str, Any]:
    """Read all tables as the paper prints them, by table."""
    return _read("tables.json")


def paper_audit() -> dict[str, Any]:
    """Read which numbers of the paper do not follow from its own entries, as tests/paper/test_audit.py finds them."""
    return _read("audit.json")


def _lines(rows: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Give rows of the paper as numbers, of a mean with its spread the mean."""
    return pd.DataFrame(rows).T.map(lambda cell: cell["mean"] if isinstance(cell, dict) else cell).astype(float)


@cache
def printed(suite: str, protocol: str = "") -> pd.DataFrame:
    """Give the paper's numbers of a suite: its lines down; data sets, pairs or sets and metrics across; then averages.

    Empty where it prints none that see the labels of this protocol.
    """
    table, labels = TABLES.get(suite, ("", ""))
    if not table or not SAME_LABELS.get(protocol, protocol or labels).startswith(labels):
        return pd.DataFrame()
    rows = paper_tables()[table]
    if suite in ARCHIVES:
        return _lines(rows).T.assign(**{AVERAGE: pd.Series(paper_tables()[f"{suite}_average"])})
    if suite == "knn":
        rows = rows.get(protocol.removeprefix(labels) if protocol else COUNTS[0], {})
    elif suite == "clustering":
        order = [f"{name}_{metric}" for name in (*map(str.lower, LARGE), AVERAGE) for metric in ("nmi", "ari")]
        rows = {line: {column: row[column] for column in order} for line, row in rows.items()}
    return _lines(rows).drop(columns=HOURS, errors="ignore").rename(columns=_heading)


def _heading(name: str) -> str:
    """Name a column as ours are: ecg_nmi is ECG NMI, harth>wisdm2 is HARTH > WISDM2."""
    if name.startswith("Avg"):
        return AVERAGE
    return name.upper().replace("_", " ").replace(">", " > ").replace(AVERAGE.upper(), AVERAGE)


def printed_hours() -> dict[str, float]:
    """Give the hours that the paper says training on its six large sets takes."""
    hours: dict[str, float] = _lines(paper_tables()["linear_probe"])[HOURS].dropna().to_dict()
    return hours


def printed_names(suites: Collection[str]) -> list[str]:
    """List the lines that the paper's tables of these suites have, in its order."""
    return list(dict.fromkeys(line for suite in TABLES if suite in suites for line in printed(suite).index))


@cache
def variant_names() -> list[str]:
    """List the rows of the paper's ablations, in its order; the benchmark calls its contenders by the same names."""
    return [row for name in VARIANTS.values() for row in paper_tables()[name]]


def paper_name(contender: str, protocol: str) -> str | None:
    """Give the paper's name of what we call `contender` scored by `protocol`; None where it has no such row."""
    if contender == "raw-mean" and protocol in FORESTS:
        return FOREST
    if protocol in ("ridge", *FORESTS) and contender != "minirocket":  # the paper scores by logistic regression only
        return None
    return contender if contender in variant_names() else NAMES.get(contender)


FIRST += [*METHODS, *variant_names()]  # the paper's contenders come first in every table
