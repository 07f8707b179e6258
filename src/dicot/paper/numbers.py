"""The numbers that the Di-COT paper prints, by our names of suites and protocols and its names of lines and sets."""

import json
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from dicot.judge.report.frame import FIRST, SAME_LABELS

LARGE = ("ECG", "HARTH", "PAMAP2", "SKODA", "SLEEP", "WISDM2")
FOREST = "Random Forest"  # on the means of the channels (D-36)
RAW = "Raw Data"  # the same means, scored by the probe (D-35)
ROCKET = "MiniRocket"  # refitted per batch and scored by a forest (D-37)
END_TO_END = "Supervised"
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
    "end-to-end": END_TO_END,
    "random": "Random Init.",
    "minirocket": ROCKET,
    "raw-mean": RAW,
}
METHODS = tuple(NAMES)[:10]  # in the paper's order
FORESTS = ("forest", "forest_1pct")
Printed = dict[tuple[str, str], float]  # what the paper prints, by line and column


class Published(NamedTuple):
    """A number as printed; `name` and `place` are the paper's, a transfer's place is SOURCE > TARGET."""

    suite: str
    name: str
    place: str
    labels: str
    metric: str
    mean: float


@cache
def paper_tables() -> dict[str, Any]:
    """Read all tables as the paper prints them, by table."""
    return _read("tables.json")


def paper_audit() -> dict[str, Any]:
    """Read which numbers of the paper do not follow from its own entries, as tests/paper/test_audit.py finds them."""
    return _read("audit.json")


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((files("dicot.paper") / name).read_text(encoding="utf-8"))
    return content


def paper_name(contender: str, protocol: str) -> str | None:
    """Give the paper's name of what we call `contender` scored by `protocol`; None where it has no such row."""
    if contender == "raw-mean" and protocol in FORESTS:
        return FOREST
    if protocol in ("ridge", *FORESTS) and contender != "minirocket":  # the paper scores by logistic regression only
        return None
    return NAMES.get(contender)


@cache
def paper_cells() -> list[Published]:
    """List every number of the paper that belongs to a contender and a data set."""
    t, out = paper_tables(), []
    for suite in ("ucr", "uea"):
        for data, row in t[suite].items():
            out += [Published(suite, name, data, "linear", "accuracy", value) for name, value in row.items()]
    tables = [("large", "linear", t["linear_probe"]), ("low_label", "few_1pct", t["low_label_1pct"])]
    tables += [("knn", f"knn_{count}", rows) for count, rows in t["knn"].items()]
    for suite, labels, rows in tables:
        for name, row in rows.items():
            out += [Published(suite, name, data, labels, "accuracy", row[data]["mean"]) for data in LARGE]
    for name, row in t["clustering_per_dataset"].items():
        for data in LARGE:
            for metric in ("nmi", "ari"):
                out.append(Published("clustering", name, data, "clustering", metric, row[f"{data.lower()}_{metric}"]))
    for name, row in t["transfer"].items():
        for pair, cell in row.items():
            if pair != "average":
                place = pair.upper().replace(">", " > ")
                out.append(Published("transfer", name, place, "linear", "accuracy", cell["mean"]))
    return out


def printed_names(suites: Collection[str]) -> list[str]:
    """List the lines that the paper's tables of these suites have, in its order."""
    return list(dict.fromkeys(cell.name for cell in paper_cells() if cell.suite in suites))


@cache
def printed(suite: str, protocol: str = "") -> Printed:
    """Give the paper's numbers of a suite by line and column, perhaps only those that see the labels of a protocol."""
    labels = SAME_LABELS.get(protocol, protocol)
    cells = [cell for cell in paper_cells() if cell.suite == suite and labels in ("", cell.labels)]
    return {(c.name, c.place if c.metric == "accuracy" else f"{c.place} {c.metric.upper()}"): c.mean for c in cells}


@cache
def variant_names() -> list[str]:
    """List the rows of the paper's ablations, in its order; the benchmark calls its contenders by the same names."""
    tables = paper_tables()
    return [row for name in ("ablation", "ablation_extended", "positive_selection") for row in tables[name]]


FIRST += [*METHODS, *variant_names()]  # the paper's contenders come first in every table
