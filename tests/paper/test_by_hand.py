"""A second person's check: three tables of the published page from results/, by pandas alone."""

import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats
from tests.paper.test_paper_page import section, table

ROOT = Path(__file__).resolve().parents[2]
PAPER = json.loads((ROOT / "bench" / "paper" / "tables.json").read_text(encoding="utf-8"))
METHODS = {"Di-COT": "dicot", "CaTT": "catt", "CoST": "cost", "InfoTS": "infots", "SimMTM": "simmtm", "Soft": "soft"}
METHODS |= {"TF-C": "tfc", "TNC": "tnc", "TS2Vec": "ts2vec", "TS-TCC": "tstcc"}


@pytest.fixture(scope="module")
def rows():
    """Every result of a full training by the paper's schedule, or without one; the newest of each cell."""
    files = [path for path in sorted((ROOT / "results").iterdir()) if path.suffix in (".csv", ".parquet")]
    files = [path for path in files if not path.name.startswith(("times", "exponents"))]
    every = pd.concat([pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path) for path in files])
    every = every[every.key.notna() & (every.trial == 0)].fillna({"schedule": "", "precision": ""})
    every = every[every.schedule.isin(["", "per_step"])].sort_values("recorded", kind="stable")
    return every.drop_duplicates(
        ["suite", "contender", "protocol", "precision", "source", "target", "seed"], keep="last"
    )


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs" / "results" / "paper" / "report.md").read_text(encoding="utf-8")


def shown(cell):
    """The numbers of a cell of the page, in their order."""
    return [float(number) for number in re.findall(r"[-+]?\d+\.\d+", cell)]


@pytest.mark.parametrize("suite", ["ucr", "uea"])
def test_table_2(rows, page, suite):
    lines = {name: (kind, "linear") for name, kind in METHODS.items()}
    lines |= {"MiniRocket": ("minirocket", "ridge"), "Random Forest": ("raw-mean", "forest")}
    own = rows[(rows.suite == suite) & rows.target.isin(list(PAPER[suite]))]
    means = own.groupby(["target", "contender", "protocol"]).accuracy.mean().unstack(["contender", "protocol"])
    scores = means[list(lines.values())].dropna().round(9)
    ranks = scores.rank(axis=1, ascending=False).mean()
    theirs = pd.DataFrame(PAPER[suite]).T.loc[scores.index].mean()
    found = table(section(page, "table2"))
    for name, line in lines.items():
        ours, paper, *_ = shown(re.sub("± [0-9.]+", "", found[name][f"{suite.upper()} accuracy, {len(scores)} sets"]))
        assert abs(ours - scores[line].mean()) < 0.006 and abs(paper - theirs[name]) < 0.006, name
        assert abs(shown(found[name][f"{suite.upper()} rank"])[0] - ranks[line]) < 0.006, name


def test_table_1(rows, page):
    own, found = rows[(rows.suite == "large") & (rows.protocol == "linear")], table(section(page, "table1"))
    columns = {head: head.partition(",")[0] for head in found["Di-COT"] if ", for " in head}
    for name, kind in METHODS.items():
        by_seed = own[own.contender == kind].pivot_table("accuracy", "seed", "target")
        for head, data_set in columns.items():
            seeds = by_seed[data_set].dropna()
            half = stats.t.ppf(0.975, len(seeds) - 1) * seeds.std() / math.sqrt(len(seeds)) if len(seeds) > 1 else None
            mean, *more = shown(found[name][head])
            assert abs(mean - seeds.mean()) < 0.006 and (half is None or abs(more[0] - half) < 0.006), (name, head)
        average = shown(found[name][f"average of {len(columns)}"])[0]
        assert abs(average - by_seed[list(columns.values())].mean().mean()) < 0.006, name


@pytest.mark.parametrize("suite", ["ucr", "uea"])
def test_table_6(rows, page, suite):
    own = rows[(rows.suite == "ablation") & rows.target.isin(list(PAPER[suite])) & (rows.protocol == "linear")]
    means = own.groupby(["target", "contender"]).accuracy.mean().unstack()
    variants = {name: "dicot" if name == "Di-COT" else name for name in PAPER["ablation"]}
    scores = means[list(variants.values())].dropna()
    found = table(section(page, "table6"))
    (head,) = (one for one in found["Di-COT"] if one.startswith(f"{suite} ({len(scores)} of "))
    for name, kind in variants.items():
        assert abs(shown(found[name][head])[0] - scores[kind].mean()) < 0.006, name
