"""The report of the suite `best`: every number of its tables against a slow computation from the rows."""

import math
from itertools import product
from statistics import fmean

import pytest
from tests.report.samples import failed, record

from bench.report.benchmark import Request
from bench.report.best import SHORT_ROWS, gains, short_table
from bench.report.frame import frame, latest

CONTENDERS = (
    "instant",
    "best",
    "dicot",
    "minirocket",
    "calibrated",
    "random",
    "tnc",
    "instant untrained",
    "instant calibrated",
)
CORE = ("instant", "best", "dicot", "minirocket", "calibrated", "random")
REPORTED, CHOSEN = ("Wine", "Fish", "Car"), ("Beef", "CBF")
GROUPS = {
    "Sensor recordings": ("wisdm2019", "mitbih-arrhythmia"),
    "UCR archive": REPORTED,
    "UEA archive": ("NATOPS",),
    "Sensor recordings, development": ("hapt", "sleepedf-night", "sisfall"),
    "UCR archive, development": CHOSEN,
    "UEA archive, development": ("Epilepsy",),
}
SETS = tuple(name for sets in GROUPS.values() for name in sets)
PROTOCOLS = dict.fromkeys(("ridge", "linear", "few_5", "semi_5", "knn_all"), "accuracy") | {"clustering": "nmi"}
SEEDS = (1, 2, 3)
GAINS = (("instant", "minirocket"), ("best", "minirocket"), ("instant", "instant untrained"), ("best", "instant"))
GAINS += (("instant", "instant calibrated"),)


def made_up(**more) -> list[dict]:
    rows = []
    for i, who in enumerate(CONTENDERS):
        for j, name in enumerate(SETS):
            for k, (protocol, metric) in enumerate(PROTOCOLS.items()):
                for seed in SEEDS:
                    value = 50 + (7919 * (i + 1) * (j + 2) * (k + 3) * seed % 4001) / 100
                    seconds = {"fit_seconds": 3.0 * (i + 1) + j + seed, "embed_seconds": 1.0 + i + 0.0713 * j}
                    value /= 100 if metric == "nmi" else 1
                    rows.append(record("best", who, name, value, protocol, metric, seed, **seconds, **more))
    return rows


def tables(rows) -> dict[str, dict[str, dict[str, str]]]:
    """Text by title, row and column."""
    found = {}
    for title, table in gains(latest(frame(rows))):
        found[title] = {name: dict(zip(table.columns, (t for t, _ in row), strict=True)) for name, row in table.rows()}
    return found


def slow(rows, sets, who, column="value", protocol="ridge") -> float:
    """The mean over sets of the mean over seeds, of the pairs that all of CORE have; NaN where there is none."""
    known = {}
    for row in rows:
        if row["protocol"] == protocol and not math.isnan(row[column]):
            known[row["contender"], row["target"], row["seed"]] = row[column]
    means = []
    for name in sets:
        seeds = [seed for seed in SEEDS if all((one, name, seed) in known for one in CORE)]
        values = [known[who, name, seed] for seed in seeds if (who, name, seed) in known]
        if values:
            means.append(fmean(values))
    return fmean(means) if means else math.nan


def check(rows) -> None:
    shown = tables(rows)
    lines = {**shown["Reported sets"], **shown["Development sets"]}
    for (group, sets), protocol in product(GROUPS.items(), PROTOCOLS):
        line = lines.pop(f"{group}: {protocol}")
        factor = 100 if protocol == "clustering" else 1
        means = {who: factor * slow(rows, sets, who, protocol=protocol) for who in CONTENDERS}
        for who in CONTENDERS:
            if not line[who].endswith("sets"):
                shown_mean = float(line[who].split(" ")[0])
                assert shown_mean == pytest.approx(means[who], abs=0.0051), (group, protocol, who)
        for who, rival in GAINS:
            gain = float(line[f"{who} over {rival}"])
            assert gain == pytest.approx(means[who] - means[rival], abs=0.0051), (group, protocol, who)
        assert "best-2026.11" not in line and line["seeds"] == "1, 2, 3"
    assert not lines, "no other line"
    for (group, sets), column in product(GROUPS.items(), ("fit_seconds", "embed_seconds")):
        line = shown["Seconds to fit and to embed a data set"][f"{group}: {column.split('_')[0]}"]
        means = {who: slow(rows, sets, who, column) for who in CONTENDERS}
        for who in CONTENDERS:
            number = f"{means[who]:.2g}" if means[who] < 10 else f"{means[who]:.0f}"
            assert line[who].endswith("sets") or line[who].split(" s")[0] == number, (group, column, who)


def test_every_number_of_complete_records():
    check(made_up())
    shown = tables(made_up())["Reported sets"]
    assert {name.split(":")[0]: line["sets"] for name, line in shown.items()} == {
        group: ", ".join(sorted(sets)) for group, sets in GROUPS.items() if "development" not in group
    }


def test_every_table_says_whether_the_encoder_has_seen_its_sets():
    request = Request.of("best", frame(made_up()))
    for part in request.parts():
        if part.table is None:
            continue
        assert "encoder in the box" in part.table.note, part.title
        names = " ".join([*map(str, part.table.cells.index), *map(str, part.table.cells.columns)])
        if "none of these" in part.table.note:
            assert "development" not in names + part.title and not {"Beef", "hapt", "Epilepsy"} & set(names.split())
        elif "These are development sets" in part.table.note:
            assert not {"Wine", "wisdm2019", "NATOPS"} & set(names.split()) and "evelopment sets" in part.title


def test_seconds_that_were_measured_count_and_those_of_the_scored_runs_do_not():
    rows = made_up(device="a GPU (shared)")
    for who, fit, embed in (("best", 3.0, 0.5), ("dicot", 2.0, 0.2)):
        for name in SETS:
            more = 1.0 if (who, name) == ("best", "Fish") else 0.0
            for metric, value in (("fit_seconds", fit + more), ("embed_seconds", embed)):
                rows.append(record("best", who, name, value, "cost", metric, 1, device="a GPU"))
    found = dict(gains(latest(frame(rows))))["Seconds to fit and to embed a data set"]
    assert "Measured on a GPU." in found.note
    shown = tables(rows)["Seconds to fit and to embed a data set"]
    line = shown["UCR archive: fit"]
    assert (line["best"], line["dicot"]) == ("3.3 s", "2 s")
    assert "minirocket" not in line
    assert shown["UEA archive: embed"]["best"] == "0.5 s"


def test_every_number_where_runs_failed_or_are_missing():
    """A run of a compared contender takes the pair away from all; one of another contender only from itself."""

    def lost(row):
        return (row["contender"], row["target"], row["seed"]) == ("dicot", "wisdm2019", 2)

    def broken(row):
        who = (row["contender"], row["target"])
        return who in (("minirocket", "Wine"), ("tnc", "Fish")) or (*who, row["seed"]) == ("tnc", "wisdm2019", 1)

    rows = [failed(row, "ValueError: no") if broken(row) else row for row in made_up() if not lost(row)]
    rows = [{**row, "fit_seconds": math.nan, "embed_seconds": math.nan} if row["error"] else row for row in
            ({"error": None, **row} for row in rows)]  # fmt: skip
    check(rows)
    shown = tables(rows)["Reported sets"]
    line = shown["UCR archive: ridge"]
    assert line["sets"] == "Car, Fish" and line["tnc"] == "1 of 2 sets"
    assert shown["Sensor recordings: ridge"]["tnc"].endswith("(4 of 5 runs)")
    note = dict(gains(latest(frame(rows))))["Reported sets"].note
    assert "Wine" in note and "Fish" not in note and "wisdm2019" not in note


def test_the_best_mean_is_marked_and_fewer_runs_never_are():
    rows = [{**row, "value": 99.0} if row["contender"] == "tnc" else row for row in made_up()]
    line = "Sensor recordings: ridge"
    (_, table), *_ = gains(latest(frame(rows)))
    assert [table.cells[name][line].look for name in ("tnc", "best")] == ["best", ""]
    fewer = [row for row in rows if (row["contender"], row["target"], row["seed"]) != ("tnc", "wisdm2019", 1)]
    (_, table), *_ = gains(latest(frame(fewer)))
    assert table.cells.tnc[line].look == "" and table.cells.tnc["UEA archive: ridge"].look == "best"


def test_other_settings_of_a_contender_are_left_out_and_named():
    rows = made_up()
    other = [{**row, "precision": "tf32", "value": 1.0} for row in rows if row["contender"] == "dicot"]
    some = [row for row in other if row["target"] == "hapt"]
    assert tables(rows + some) == tables(rows)
    assert "dicot, tf32" in dict(gains(latest(frame(rows + some))))["Development sets"].note


def test_the_short_table_has_some_of_these_means():
    short, whole = short_table(frame(made_up())).cells, dict(gains(latest(frame(made_up()))))["Reported sets"].cells
    assert list(short.columns) == ["instant", "best", "minirocket", "instant untrained", "dicot", "sets"]
    assert list(short.index) == list(SHORT_ROWS) and len(short) <= 7
    for title, (group, protocol) in SHORT_ROWS.items():
        for name in short.columns[:-1]:
            assert float(short[name][title].text) == pytest.approx(
                float(whole[name][f"{group}: {protocol}"].text), abs=0.051
            )


def test_named_systems_are_scored_by_the_classifiers_of_their_authors():
    rows = made_up()
    for name in SETS:
        for seed in SEEDS:
            for who, protocol, value in (
                ("quant", "ridge", 60.0),
                ("quant", "trees", 80.0),
                ("quant", "trees_5", 70.0),
                ("catch22", "linear", 50.0),
                ("catch22", "forest", 75.0),
            ):
                rows.append(record("best", who, name, value, protocol, "accuracy", seed))
    asked = Request.of("best", frame(rows))
    reported = {}
    for title, table in gains(asked.data):
        if title == "Reported sets":
            for name, cells in table.rows():
                reported[name] = dict(zip(table.columns, (text for text, _ in cells), strict=True))
    assert reported["UCR archive: ridge"]["quant"] == "80.00"
    assert reported["UCR archive: ridge"]["QUANT features"] == "60.00"
    assert reported["UCR archive: few_5"]["quant"] == "70.00"
    assert reported["UCR archive: ridge"]["catch22"] == "75.00"
    assert reported["UCR archive: linear"]["catch22 features"] == "50.00"
    short = short_table(frame(rows))
    cells = {name: dict(zip(short.columns, (text for text, _ in row), strict=True)) for name, row in short.rows()}
    assert cells["UCR archive, all labels"]["quant"] == "80.0"
    assert "extremely randomised trees" in short.note
