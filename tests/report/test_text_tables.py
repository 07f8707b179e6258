"""Tables of scores, ours beside the paper's, variants; and the looks of a table."""

import math
from statistics import stdev

from tests.report.samples import ARCHIVE, CONTROLS, record, several

from bench.paper.reports import average_table
from bench.report.frame import by_data_set, frame
from bench.report.pages import to_markdown
from dicot.judge.report.scores import comparison, evaluation_table
from dicot.judge.report.tables import BEST, signed, text_table


def score(contender, value, protocol="linear", metric="accuracy", seed=1, error=None, draw=1):
    row = {"contender": contender, "protocol": protocol, "metric": metric, "seed": seed}
    return row | {"value": value, "error": error, "draw": draw}


def seeds(contender, values, *more):
    return [score(contender, value, *more, seed=seed) for seed, value in enumerate(values, start=1)]


def failure(contender, reason, seed=1, protocol="linear"):
    return score(contender, math.nan, protocol, seed=seed, error=reason)


def texts(table):
    return {name: [text for text, _ in row] for name, row in table.rows()}


def best(table, column=0):
    return [name for name, row in table.rows() if row[column][1] == BEST]


def compared(rows, **options):
    return comparison(frame(rows), **options)


def runs(rows, metric="accuracy", protocols=None):
    return by_data_set(frame(rows), [metric], protocols)


# An evaluation


def test_mean_and_sample_deviation_over_seeds():
    table = compared(seeds("a", [80.0, 82.0, 84.0]) + seeds("b", [70.0, 70.0, 70.0]))
    assert texts(table) == {"a": ["82.00 ± 2.00"], "b": ["70.00 ± 0.00"]}
    assert table.columns == ["linear accuracy"] and best(table) == ["a"] and "seeds 1, 2, 3" in table.note


def test_the_spread_is_over_draws_and_seeds_and_the_note_says_so():
    drawn = [score("a", v + s, "few_5", seed=s, draw=d) for s in (1, 2) for d, v in ((1, 70.0), (2, 74.0))]
    table = compared([*drawn, *seeds("a", [80.0, 80.0])])
    values = [71.0, 75.0, 72.0, 76.0]
    assert texts(table) == {"a": [f"73.50 ± {stdev(values):.2f}", "80.00 ± 0.00"]}
    assert "seeds 1, 2, and over 2 draws of the labelled cases with each seed for few_5." in table.note
    alone = compared(drawn[:2])
    assert texts(alone) == {"a": [f"73.00 ± {stdev(values[:2]):.2f}"]}
    assert "One run (seed 1); mean ± sample standard deviation over 2 draws" in alone.note


def test_what_is_equal_everywhere_is_shown_once_and_the_note_says_so():
    rows = [*seeds("a", [80.0, 82.0]), *seeds("b", [80.0, 82.0]), *seeds("c", [80.0, 81.0])]
    rows += [{**row, "protocol": "knn_all"} for row in rows] + seeds("a", [1.0, 2.0], "few_5")
    rows += seeds("b", [1.0, 2.0], "few_5") + seeds("c", [1.0, 2.0], "few_5")
    told = {"linear": "a probe", "knn_all": "a neighbour", "few_5": "five labels"}
    table = evaluation_table(frame(rows), fixed=["c"], descriptions=told)
    assert table.columns == ["a, b", "c"]
    assert list(texts(table)) == ["linear, knn_all accuracy", "few_5 accuracy"]
    assert table.note.endswith("Equal in every number, so shown once: linear and knn_all; a and b.")
    assert table.about["linear, knn_all accuracy"] == "linear: a probe; knn_all: a neighbour"
    assert table.about["few_5 accuracy"] == "five labels"


def test_rows_and_columns_come_in_the_order_of_the_scores_and_can_be_exchanged():
    rows = [*seeds("b", [2.0]), *seeds("a", [1.0]), *seeds("b", [1.0], "knn_5"), *seeds("a", [3.0], "knn_5")]
    table = compared(rows)
    assert texts(table) == {"b": ["2.00", "1.00"], "a": ["1.00", "3.00"]}
    assert (best(table, 0), best(table, 1)) == (["b"], ["a"])
    turned = table.turned("protocol")
    assert texts(turned) == {"linear accuracy": ["2.00", "1.00"], "knn_5 accuracy": ["1.00", "3.00"]}
    assert turned.corner == "protocol" and turned.columns == ["b", "a"] and best(turned) == ["linear accuracy"]


def test_ties_at_printed_precision_are_all_marked():
    table = compared(seeds("a", [80.001]) + seeds("b", [80.004]) + seeds("c", [79.0]))
    assert best(table) == ["a", "b"]
    assert texts(table) == {"a": ["80.00 (tie)"], "b": ["80.00 (tie)"], "c": ["79.00"]}


def test_failures_say_why_once_and_are_never_best():
    rows = [
        *seeds("a", [80.0, 82.0]),
        failure("b", "out of\nmemory", 1),
        failure("b", "out of\nmemory", 2),
        score("c", 99.0),
        failure("c", "lost", 2),
        *seeds("d", [70.0]),
        *seeds("a", [60.0, 60.0], "knn_5"),
    ]
    table = compared(rows)
    assert texts(table)["b"] == ["failed", "not run"]
    assert texts(table)["c"][0] == "99.00 (1 of 2 seeds), rest failed"
    assert texts(table)["d"][0] == "70.00 (1 of 2 seeds)"
    assert table.note.endswith(" b failed: out of memory c failed: lost") and best(table) == ["a"]
    hit = [*seeds("a", [1.0]), *(failure(name, "no", protocol=p) for name in "bc" for p in ("linear", "knn_5"))]
    assert compared(hit).note.endswith(" b, c failed: no")


# A benchmark


def test_ours_beside_the_paper_over_the_sets_both_have():
    rows = several("ucr", ("dicot", "minirocket", *CONTROLS), (*ARCHIVE, "DodgerLoopDay"))
    rows = [r for r in rows if (r["contender"], r["target"]) not in (("dicot", "Beef"), ("dicot", "Car"))]
    rows += [record("ucr", "dicot", "Beef", 64.0), record("ucr", "dicot", "Car", 89.0)]
    table = average_table(runs([r for r in rows if r["target"] in ("Beef", "Car", "DodgerLoopDay")]))
    assert texts(table)["dicot"] == ["Di-COT", "2", "76.50", "75.00", "+1.50"]
    assert texts(table)["calibrated"][:2] == ["no such number", "3"] and "D-37" in table.note


def test_a_difference_that_rounds_to_zero_has_no_sign():
    assert (signed(-0.001, 2), signed(0.006, 2), signed(-1.5, 1)) == ("0.00", "+0.01", "-1.5")


# The looks of a table


NASTY = compared(
    [*seeds("a", [80.0]), *seeds("b", [80.0]), *seeds("<i>|c", [70.0]), failure("d", "<script>[bold]x|y</script>")]
)


def test_a_column_of_numbers_is_told_from_one_of_sentences():
    cells = {"ours": "81.57 ± 0.46 (81.77, -0.21)", "rests on": "0 of the paper's 4 transfers.", "p": "5"}
    assert text_table("row", [("a", list(cells.values()))], list(cells), "").text_columns() == [False, True, False]


def test_markdown():
    lines = to_markdown(NASTY).splitlines()
    assert lines[:2] == ["| contender | linear accuracy |", "| --- | ---: |"]
    assert lines[2] == "| a | **80.00** (tie) |"
    assert lines[4] == "| &lt;i>\\|c | 70.00 |"
    assert lines[5] == "| d | failed |"
    assert lines[7].endswith(" d failed: &lt;script>[bold]x\\|y&lt;/script>")
