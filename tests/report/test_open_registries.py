"""A method, a data set and a protocol that neither the paper nor this library has go through every table and figure."""

import re

import pytest
from tests.report.samples import CONTROLS, several

from bench.paper import reports
from bench.report.benchmark import write_report
from bench.report.frame import by_data_set, frame
from bench.report.scores import block_of, data_set_table, standing_table, standings
from dicot.judge.protocols import PROTOCOLS, Metric, Protocol
from dicot.judge.report.tables import BEST

SETS = ("my data", "<b>yours</b>", "third")
ERRORS = {"toy": 1.0, "dicot": 2.0, "random": 9.0, "calibrated": 4.0}


class Distance(Protocol):
    """A protocol whose one number should be small."""

    metrics = (Metric("toy_error", higher_is_better=False, decimals=1),)
    name = "toy-distance"
    description = "how far off"

    def score(self, train, test, *, seed):
        return {"toy_error": 0.0}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(PROTOCOLS, "toy-distance", Distance)


def rows(suite="ucr", sets=SETS):
    return [
        {**row, "value": ERRORS[row["contender"]] + i / 4}
        for i, name in enumerate(sets)
        for row in several(suite, list(ERRORS), [name], ["toy-distance"], ["toy_error"])
    ]


def bold(table, column):
    i = table.columns.index(column)
    return [name for name, row in table.rows() if row[i][1] == BEST]


def test_the_lowest_error_is_best_first_and_rank_one():
    runs = by_data_set(frame(rows()), ["toy_error"])
    block = block_of(runs)
    assert list(standings(block).index) == ["toy", "dicot", "calibrated", "random"]
    assert standings(block)["rank"].tolist() == [1.0, 2.0, 3.0, 4.0]
    table = standing_table(block)
    assert bold(table, "average toy_error") == bold(table, "average rank") == ["toy"]
    assert table.cells["average toy_error"]["toy"].text == "1.2"  # the metric's decimals
    per_set = data_set_table(runs)
    assert all(bold(per_set, name) == ["toy"] for name in SETS)
    assert "lowest" in per_set.note and "highest" not in per_set.note


@pytest.mark.parametrize("suite", ["ucr", "low_label", "smoke", "transfer", "of your own"])
def test_a_report_shows_them_beside_what_it_knows(tmp_path, quick, suite):
    known = several(suite, ("toy", "dicot", *CONTROLS), SETS)
    paths = write_report(tmp_path, suite, frame([*rows(suite), *known]), beside=reports, baseline="toy")
    files = {path.name: path.read_text(encoding="utf-8") for path in paths}
    for name in SETS:
        escaped = name.replace("<", "&lt;")
        assert escaped in files["report.md"] and escaped.replace(">", "&gt;") in files["report.html"]
    assert "<b>" not in files["report.html"]
    numbers = re.findall(r"^\| toy \|.*\*\*1\.\d\*\*.*$", files["report.md"], re.M)
    assert numbers, "no table marks the lowest error of the toy method"
    if suite == "ucr":
        titles = re.findall(r"^## (.*)$", files["report.md"], re.M)
        assert {"Standings: all labels", "Standings: toy-distance", "toy against each of the others: toy-distance"} <= {
            *titles
        }
