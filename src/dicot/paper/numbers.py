"""The numbers that the Di-COT paper prints, by our names of suites, contenders and protocols."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from dicot.data.datasets import DATASETS
from dicot.judge.report.frame import SAME_LABELS

LARGE = ("ECG", "HARTH", "PAMAP2", "SKODA", "SLEEP", "WISDM2")
FOREST = "Random Forest"  # on the means of the channels (D-36)
RAW = "Raw Data"  # the same means, scored by the probe (D-35)
ROCKET = "MiniRocket"  # refitted per batch and scored by a forest (D-37)
END_TO_END = "Supervised"
METHODS = ("dicot", "catt", "cost", "infots", "simmtm", "soft", "tfc", "tnc", "ts2vec", "tstcc")  # in the paper's order
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
KEYS = {name: key for key, name in NAMES.items()} | {FOREST: "raw-mean"}
OTHER_PROBES = ("ridge", "forest")  # the paper scores embeddings by logistic regression only
FEW_FOREST = "forest_1pct"


class Published(NamedTuple):
    """A number as printed; `name` is the paper's."""

    suite: str
    name: str
    source: str
    target: str
    protocol: str
    metric: str
    mean: float


@cache
def paper_tables() -> dict[str, Any]:
    """Read all tables as the paper prints them, by table."""
    return _read("tables.json")


def paper_audit() -> dict[str, Any]:
    """Read which numbers of the paper do not follow from its own entries, as paper/audit.py found them."""
    return _read("audit.json")


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((files("dicot.paper") / name).read_text(encoding="utf-8"))
    return content


def paper_name(contender: str, protocol: str) -> str | None:
    """Give the paper's name of what we call `contender` scored by `protocol`; None where it has no such row."""
    if contender == "raw-mean" and protocol in ("forest", FEW_FOREST):
        return FOREST
    if protocol in (*OTHER_PROBES, FEW_FOREST) and contender != "minirocket":
        return None
    return NAMES.get(contender)


def data_set_key(name: str) -> str:
    """Give one spelling of a data set: in lower case, and `skoda-paper`, `pamap2-paper`, `ecg-full` are the paper's."""
    return name.lower().removesuffix("-paper").removesuffix("-full")


def is_the_papers(name: str) -> bool:
    """Tell whether a data set of this name is not another version of one that is here as the paper used it."""
    return DATASETS.registered(f"{name}-paper") is None


def published(suite: str, contender: str, source: str, target: str, protocol: str, metric: str) -> float | None:
    """Find the paper's number for this cell of our table; None where it prints none."""
    if not (is_the_papers(source) and is_the_papers(target)):
        return None
    name = paper_name(contender, protocol)
    labels = SAME_LABELS.get(protocol, protocol)
    return _index().get((suite, name, data_set_key(source), data_set_key(target), labels, metric))


def paper_cells() -> list[Published]:
    """List every number of the paper that belongs to a contender and a data set."""
    return [*_archives(), *_large(), *_neighbours(), *_clustering(), *_transfer()]


@cache
def variant_names() -> list[str]:
    """List the rows of the paper's ablations, in its order; the benchmark calls its contenders by the same names."""
    tables = paper_tables()
    return [row for name in ("ablation", "ablation_extended", "positive_selection") for row in tables[name]]


@cache
def _index() -> dict[tuple[str, str | None, str, str, str, str], float]:
    return {
        (
            c.suite,
            c.name,
            data_set_key(c.source),
            data_set_key(c.target),
            SAME_LABELS.get(c.protocol, c.protocol),
            c.metric,
        ): c.mean
        for c in paper_cells()
    }


def _probe(name: str) -> str:
    return {FOREST: "forest", ROCKET: "forest", END_TO_END: "finetune-100"}.get(name, "linear")


def _few(name: str) -> str:
    return {FOREST: FEW_FOREST, ROCKET: FEW_FOREST, END_TO_END: "finetune-1"}.get(name, "few_1pct")


def _archives() -> list[Published]:
    return [
        Published(suite, name, data, data, _probe(name), "accuracy", value)
        for suite in ("ucr", "uea")
        for data, row in paper_tables()[suite].items()
        for name, value in row.items()
    ]


def _large() -> list[Published]:
    tables = (("large", "linear_probe", _probe), ("low_label", "low_label_1pct", _few))
    return [
        Published(suite, name, data, data, protocol(name), "accuracy", row[data]["mean"])
        for suite, table, protocol in tables
        for name, row in paper_tables()[table].items()
        for data in LARGE
    ]


def _neighbours() -> list[Published]:
    return [
        Published("knn", name, data, data, f"knn_{count}", "accuracy", row[data]["mean"])
        for count, rows in paper_tables()["knn"].items()
        for name, row in rows.items()
        for data in LARGE
    ]


def _clustering() -> list[Published]:
    return [
        Published("clustering", name, data, data, "clustering", metric, row[f"{data.lower()}_{metric}"])
        for name, row in paper_tables()["clustering_per_dataset"].items()
        for data in LARGE
        for metric in ("nmi", "ari")
    ]


def _transfer() -> list[Published]:
    out = []
    for name, row in paper_tables()["transfer"].items():
        for pair, cell in row.items():
            if pair != "average":
                source, target = pair.upper().split(">")
                out.append(Published("transfer", name, source, target, "linear", "accuracy", cell["mean"]))
    return out
