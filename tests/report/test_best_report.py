"""The report of the suite `best`: every number of its tables against a slow computation from the rows."""

import math
from statistics import fmean

import pytest
from tests.commands import dicot
from tests.report.samples import failed, record, write_csv

from dicot.core.errors import InputError
from dicot.data.datasets import family_of
from dicot.data.datasets.development import DEVELOPMENT
from dicot.judge.report.best import gains, groups, short_table
from dicot.judge.report.frame import frame, latest

CONTENDERS = ("best", "dicot", "minirocket", "calibrated", "random", "tnc")
CORE = ("best", "dicot", "minirocket", "calibrated", "random")
SENSORS = ("hapt", "wisdm2019", "sleepedf-night")
REPORTED, CHOSEN, UEA = ("Wine", "Fish", "Car"), ("Beef", "CBF"), ("NATOPS", "Epilepsy")
SETS = (*SENSORS, *REPORTED, *CHOSEN, *UEA, "mitbih-arrhythmia")
PROTOCOLS = {"ridge": "accuracy", "linear": "accuracy", "few_5": "accuracy", "semi_5": "accuracy", "clustering": "nmi"}
SEEDS = (1, 2, 3)
GAINS = {"minirocket": "gain on MiniRocket", "dicot": "gain on Di-COT", "calibrated": "gain on calibrated"}


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
    "HAPT, WISDM, sleep night": (SENSORS, ("few_5", "semi_5", "ridge", "linear", "clustering")),
    "UCR, reported half": (REPORTED, ("ridge", "linear", "few_5", "semi_5")),
    "UEA": (UEA, ("ridge", "linear")),
    "mitbih-arrhythmia": (("mitbih-arrhythmia",), ("few_5", "semi_5", "ridge", "linear", "clustering")),
    "UCR, development half": (CHOSEN, ("ridge", "linear", "few_5", "semi_5")),
}
WORDS = {"few_5": "5 labels per class", "semi_5": "5 labels per class", "clustering": "clustering NMI"}
GOALS = {
    ("HAPT, WISDM, sleep night", "5 labels per class"): {"minirocket": 8, "dicot": 10, "calibrated": 8},
    ("HAPT, WISDM, sleep night", "all labels"): {"minirocket": 1, "dicot": 5, "calibrated": 4},
    ("HAPT, WISDM, sleep night", "clustering NMI"): {"dicot": 15, "calibrated": 15},
    ("UCR, reported half", "all labels"): {"minirocket": 1, "dicot": 3, "calibrated": 3},
    ("UCR, reported half", "5 labels per class"): {"minirocket": 3, "dicot": 4, "calibrated": 4},
    ("UEA", "all labels"): {"minirocket": 2, "dicot": 1, "calibrated": 1},
}


def check(rows) -> None:
    shown = tables(rows)
    lines = {**shown["What the preset gains"], **shown["The same where it was chosen"]}
    for group, (sets, protocols) in GROUPS.items():
        for protocol in protocols:
            words = WORDS.get(protocol, "all labels")
            line = lines.pop(f"{group}: {words}, {protocol}")
            factor = 100 if protocol == "clustering" else 1
            means = {who: factor * slow(rows, sets, who, protocol=protocol) for who in CONTENDERS}
            for who in CONTENDERS:
                assert line[who].split(" ")[0] == f"{means[who]:.2f}", (group, protocol, who)
            for who, column in GAINS.items():
                text = f"{means['best'] - means[who]:+.2f}"
                goal = GOALS.get((group, words), {}).get(who)
                assert line[column] == text + (f" ({goal:+d})" if goal else ""), (group, protocol, who)
    assert not lines, "no other line"
    for group, (sets, _) in GROUPS.items():
        for column, word in (("fit_seconds", "fit"), ("embed_seconds", "embed")):
            line = shown["Seconds to fit and to embed a data set"][f"{group}: {word}"]
            means = {who: slow(rows, sets, who, column) for who in CONTENDERS}
            assert line["best / dicot"] == f"{means['best'] / means['dicot']:.2f}"
            multiples = {
                name: slow(rows, [name], "best", column) / slow(rows, [name], "dicot", column) for name in sets
            }
            found = {name: multiple for name, multiple in multiples.items() if not math.isnan(multiple)}
            assert line["the largest"] == f"{max(found.values()):.2f} ({max(found, key=found.__getitem__)})"
            for who in CONTENDERS:
                number = f"{means[who]:.2g}" if means[who] < 10 else f"{means[who]:.0f}"
                assert line[who].split(" s")[0] == number, (group, word, who)


def test_every_number_of_complete_records():
    rows = made_up()
    check(rows)
    shown = tables(rows)["What the preset gains"]
    assert {line["seeds"] for line in shown.values()} == {"1, 2, 3"}
    counts = {name.split(":")[0]: line["sets"] for name, line in shown.items()}
    assert counts == {
        "HAPT, WISDM, sleep night": "3 of 3", "UCR, reported half": "3", "UEA": "2", "mitbih-arrhythmia": "1"
    }  # fmt: skip


def test_seconds_that_were_measured_count_and_those_of_the_scored_runs_do_not():
    rows = made_up(device="a GPU (shared)")
    for who, fit, embed in (("best", 3.0, 0.5), ("dicot", 2.0, 0.2)):
        for name in SETS:
            more = 1.0 if (who, name) == ("best", "Fish") else 0.0
            for metric, value in (("fit_seconds", fit + more), ("embed_seconds", embed)):
                rows.append(record("best", who, name, value, "cost", metric, 1, device="a GPU"))
    found = dict(gains(latest(frame(rows))))["Seconds to fit and to embed a data set"]
    assert "Measured on a GPU." in found.note and "proves nothing" not in found.note
    shown = tables(rows)["Seconds to fit and to embed a data set"]
    line = shown["UCR, reported half: fit"]
    assert (line["best"], line["dicot"], line["best / dicot"]) == ("3.3 s", "2 s", "1.67")
    assert line["the largest"] == "2.00 (Fish)" and "minirocket" not in line
    assert shown["UEA: embed"]["best / dicot"] == "2.50"


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
    line = shown["UCR, reported half: all labels, ridge"]
    assert line["sets"] == "2" and line["tnc"].endswith("(3 of 6 runs)")
    assert shown["HAPT, WISDM, sleep night: all labels, ridge"]["tnc"].endswith("(7 of 8 runs)")
    notes = [table.note for _, table in gains(latest(frame(rows)))]
    assert "Wine" in notes[0] and "Fish" not in notes[0] and "hapt" not in notes[0]


def test_what_was_not_run_is_said_and_counts_for_nobody():
    rows = [row for row in made_up() if row["contender"] != "dicot" and row["target"] != "wisdm2019"]
    line = tables(rows)["What the preset gains"]["HAPT, WISDM, sleep night: all labels, ridge"]
    assert line["gain on Di-COT"] == "not run" and "dicot" not in line and line["sets"] == "2 of 3"
    assert line["gain on calibrated"][0] in "+-"


def test_the_best_mean_is_marked_and_fewer_runs_never_are():
    rows = [{**row, "value": 99.0} if row["contender"] == "tnc" else row for row in made_up()]
    line = "HAPT, WISDM, sleep night: all labels, ridge"
    (_, table), *_ = gains(latest(frame(rows)))
    assert table.looks.loc[line, ["tnc", "best"]].tolist() == ["best", ""]
    fewer = [row for row in rows if (row["contender"], row["target"]) != ("tnc", "hapt")]
    (_, table), *_ = gains(latest(frame(fewer)))
    assert table.looks.tnc[line] == "" and table.looks.tnc["UEA: all labels, ridge"] == "best"


def test_other_settings_of_a_contender_are_left_out_and_named():
    rows = made_up()
    other = [{**row, "precision": "tf32", "value": 1.0} for row in rows if row["contender"] == "dicot"]
    some = [row for row in other if row["target"] == "hapt"]
    assert tables(rows + some) == tables(rows)
    assert "dicot, tf32" in next(iter(gains(latest(frame(rows + some)))))[1].note


def test_the_short_table_has_the_same_means_without_what_was_chosen_on():
    short, whole = short_table(frame(made_up())).cells, next(iter(gains(latest(frame(made_up())))))[1].cells
    assert list(short.index) == list(whole.index) and not any("development" in title for title in short.index)
    assert [*short.columns] == ["best", "minirocket", "dicot", "calibrated", "random", "sets"]
    for name in short.columns[:-1]:
        assert [float(cell.strip("*")) for cell in short[name]] == [
            pytest.approx(float(cell.strip("*")), abs=0.051) for cell in whole[name]
        ]


def test_where_a_contender_was_run_with_other_settings_only_these_count():
    rows = made_up()
    moved = [{**row, "precision": "tf32"} if row["target"] == "hapt" else row for row in rows]
    assert tables(moved) == tables(rows)


def test_both_choices_of_labelled_cases_have_lines_of_their_own():
    more = [{**row, "subsets": "authors"} for row in made_up() if row["protocol"] == "few_5"]
    shown = tables(made_up(subsets="per-seed") + more)["What the preset gains"]
    assert "UEA: all labels, ridge" in shown
    for choice in ("authors", "per-seed"):
        assert f"UCR, reported half: 5 labels per class, few_5 ({choice})" in shown


def test_groups_are_made_of_what_is_reported():
    made = {group.title: set(group.sets) for group in groups([*SETS, "synthetic", "hapt (scale dataset)"])}
    assert made == {title: set(sets) for title, (sets, _) in GROUPS.items()}
    assert not set(REPORTED) & set(DEVELOPMENT) and set(CHOSEN) < set(DEVELOPMENT)
    assert [family_of(name) for name in (*REPORTED, *CHOSEN, *UEA)] == ["ucr"] * 5 + ["uea"] * 2


def test_controls_and_the_preset_are_needed():
    for name in ("random", "best"):
        with pytest.raises(InputError, match=name):
            tables([row for row in made_up() if row["contender"] != name])


@pytest.mark.slow
def test_the_command_writes_it(tmp_path, quick):
    write_csv(tmp_path / "records.csv", made_up())
    dicot("report", "best", "--records", tmp_path / "records.csv", "--out", tmp_path / "best")
    text = (tmp_path / "best" / "report.md").read_text()
    assert text.index("What the preset gains") < text.index("Seconds to fit") < text.index("Standings: ridge")
    wanted = slow(made_up(), REPORTED, "best") - slow(made_up(), REPORTED, "minirocket")
    row = next(line for line in text.splitlines() if line.startswith("| UCR, reported half: all labels, ridge"))
    assert f"{wanted:+.2f} (+1)" in row
