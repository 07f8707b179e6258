"""The report of the suite `best`: every number of its tables against a slow computation from the rows."""

import math
from itertools import product
from statistics import fmean

import pytest
from tests.report.samples import failed, record

from dicot.judge.report.best import SHORT_ROWS, gains, short_table
from dicot.judge.report.frame import frame, latest

CONTENDERS = ("best", "dicot", "minirocket", "calibrated", "random", "tnc")
CORE = ("best", "dicot", "minirocket", "calibrated", "random")
SENSORS = ("hapt", "wisdm2019", "sleepedf-night")
REPORTED, CHOSEN, UEA = ("Wine", "Fish", "Car"), ("Beef", "CBF"), ("NATOPS", "Epilepsy")
SETS = (*SENSORS, *REPORTED, *CHOSEN, *UEA, "mitbih-arrhythmia")
PROTOCOLS = {"ridge": "accuracy", "linear": "accuracy", "few_5": "accuracy", "semi_5": "accuracy", "clustering": "nmi"}
SEEDS = (1, 2, 3)
GAINS = {who: f"gain on {who}" for who in ("minirocket", "dicot", "calibrated")}


def made_up(**more) -> list[dict]:
    rows = []
    for i, who in enumerate(CONTENDERS):
        for j, name in enumerate(SETS):
            for k, (protocol, metric) in enumerate(PROTOCOLS.items()):
                for seed in SEEDS:
                    value = 50 + (7919 * (i + 1) * (j + 2) * (k + 3) * seed % 4001) / 100
                    seconds = {"fit_seconds": 3.0 * (i + 1) + j + seed, "embed_seconds": 1.0 + i + 0.1 * j}
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


GROUPS = {
    "Phone, watch and sleep recordings": SENSORS,
    "UCR archive": REPORTED,
    "UEA archive": UEA,
    "mitbih-arrhythmia": ("mitbih-arrhythmia",),
    "UCR archive, development half": CHOSEN,
}


def check(rows) -> None:
    shown = tables(rows)
    lines = {**shown["What the preset gains"], **shown["The same where it was chosen"]}
    for (group, sets), protocol in product(GROUPS.items(), PROTOCOLS):
        line = lines.pop(f"{group}: {protocol}")
        factor = 100 if protocol == "clustering" else 1
        means = {who: factor * slow(rows, sets, who, protocol=protocol) for who in CONTENDERS}
        for who in CONTENDERS:
            assert float(line[who].split(" ")[0]) == pytest.approx(means[who], abs=0.0051), (group, protocol, who)
        for who, column in GAINS.items():
            assert float(line[column]) == pytest.approx(means["best"] - means[who], abs=0.0051), (group, protocol, who)
    assert not lines, "no other line"
    for (group, sets), column in product(GROUPS.items(), ("fit_seconds", "embed_seconds")):
        line = shown["Seconds to fit and to embed a data set"][f"{group}: {column.split('_')[0]}"]
        means = {who: slow(rows, sets, who, column) for who in CONTENDERS}
        assert line["best / dicot"] == f"{means['best'] / means['dicot']:.2f}"
        for who in CONTENDERS:
            number = f"{means[who]:.2g}" if means[who] < 10 else f"{means[who]:.0f}"
            assert line[who].split(" s")[0] == number, (group, column, who)


def test_every_number_of_complete_records():
    check(made_up())
    shown = tables(made_up())["What the preset gains"]
    assert {line["seeds"] for line in shown.values()} == {"1, 2, 3"}
    assert {name.split(":")[0]: line["sets"] for name, line in shown.items()} == {
        group: str(len(sets)) for group, sets in GROUPS.items() if "development" not in group
    }


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
    assert (line["best"], line["dicot"], line["best / dicot"]) == ("3.3 s", "2 s", "1.67")
    assert "minirocket" not in line
    assert shown["UEA archive: embed"]["best / dicot"] == "2.50"


def test_every_number_where_runs_failed_or_are_missing():
    """A run of a compared contender takes the pair away from all; one of another contender only from itself."""

    def lost(row):
        return (row["contender"], row["target"], row["seed"]) == ("dicot", "hapt", 2)

    def broken(row):
        who = (row["contender"], row["target"])
        return who in (("minirocket", "Wine"), ("tnc", "Fish")) or (*who, row["seed"]) == ("tnc", "hapt", 1)

    rows = [failed(row, "ValueError: no") if broken(row) else row for row in made_up() if not lost(row)]
    rows = [{**row, "fit_seconds": math.nan, "embed_seconds": math.nan} if row["error"] else row for row in
            ({"error": None, **row} for row in rows)]  # fmt: skip
    check(rows)
    shown = tables(rows)["What the preset gains"]
    line = shown["UCR archive: ridge"]
    assert line["sets"] == "2" and line["tnc"].endswith("(3 of 6 runs)")
    assert shown["Phone, watch and sleep recordings: ridge"]["tnc"].endswith("(7 of 8 runs)")
    notes = [table.note for _, table in gains(latest(frame(rows)))]
    assert "Wine" in notes[0] and "Fish" not in notes[0] and "hapt" not in notes[0]


def test_the_best_mean_is_marked_and_fewer_runs_never_are():
    rows = [{**row, "value": 99.0} if row["contender"] == "tnc" else row for row in made_up()]
    line = "Phone, watch and sleep recordings: ridge"
    (_, table), *_ = gains(latest(frame(rows)))
    assert [table.cells[name][line].look for name in ("tnc", "best")] == ["best", ""]
    fewer = [row for row in rows if (row["contender"], row["target"]) != ("tnc", "hapt")]
    (_, table), *_ = gains(latest(frame(fewer)))
    assert table.cells.tnc[line].look == "" and table.cells.tnc["UEA archive: ridge"].look == "best"


def test_other_settings_of_a_contender_are_left_out_and_named():
    rows = made_up()
    other = [{**row, "precision": "tf32", "value": 1.0} for row in rows if row["contender"] == "dicot"]
    some = [row for row in other if row["target"] == "hapt"]
    assert tables(rows + some) == tables(rows)
    assert "dicot, tf32" in next(iter(gains(latest(frame(rows + some)))))[1].note


def test_the_short_table_has_some_of_these_means():
    short, whole = short_table(frame(made_up())).cells, next(iter(gains(latest(frame(made_up())))))[1].cells
    assert list(short.columns) == ["best", "minirocket", "dicot", "calibrated", "random", "sets"]
    assert list(short.index) == list(SHORT_ROWS) and len(short) <= 6
    for title, (group, protocol) in SHORT_ROWS.items():
        for name in short.columns[:-1]:
            assert float(short[name][title].text) == pytest.approx(
                float(whole[name][f"{group}: {protocol}"].text), abs=0.051
            )
