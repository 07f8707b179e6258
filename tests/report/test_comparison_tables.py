"""The comparison table: numbers, ties, failures, and its four looks."""

import csv
import io
import math
import re
from statistics import stdev

import pytest
from rich.console import Console

from dicot.errors import InputError
from dicot.protocols import Score
from dicot.report.comparison import SHOWN, comparison
from dicot.report.tables import to_csv, to_html, to_markdown, to_rich


def runs(contender, values, protocol="linear", metric="accuracy"):
    return [Score(contender, protocol, metric, seed, v) for seed, v in enumerate(values, start=1)]


def failure(contender, reason, seed=1, protocol="linear", metric="accuracy"):
    return Score(contender, protocol, metric, seed, math.nan, reason)


def texts(table):
    return {name: [c.text for c in row] for name, row in zip(table.names, table.rows, strict=True)}


def best(table, column=0):
    return [n for n, row in zip(table.names, table.rows, strict=True) if row[column].best]


def test_mean_and_sample_deviation_over_seeds():
    table = comparison(runs("a", [80.0, 82.0, 84.0]) + runs("b", [70.0, 70.0, 70.0]))
    assert texts(table) == {"a": ["82.00 ± 2.00"], "b": ["70.00 ± 0.00"]}
    assert table.columns == ("linear accuracy",)
    assert best(table) == ["a"]
    assert "seeds 1, 2, 3" in table.note


def test_the_spread_is_over_draws_and_seeds_and_the_note_says_so():
    drawn = [
        Score("a", "few_5", "accuracy", seed, v + seed, draw=d) for seed in (1, 2) for d, v in ((1, 70.0), (2, 74.0))
    ]
    table = comparison([*drawn, *runs("a", [80.0, 80.0])])
    values = [71.0, 75.0, 72.0, 76.0]
    assert texts(table) == {"a": [f"73.50 ± {stdev(values):.2f}", "80.00 ± 0.00"]}
    assert "seeds 1, 2, and over 2 draws of the labelled cases with each seed for few_5." in table.note
    alone = comparison(drawn[:2])
    assert texts(alone) == {"a": [f"73.00 ± {stdev(values[:2]):.2f}"]}
    assert "One run (seed 1); mean ± sample standard deviation over 2 draws" in alone.note


def test_what_is_the_same_for_every_seed_has_no_spread_unless_draws_or_the_protocol_differ():
    drawn = [Score("saved", "few_5", "accuracy", s, 70.0, draw=d) for s in (1, 2) for d in (1, 2)]
    scores = [*runs("saved", [80.0, 80.0]), *runs("saved", [0.5, 0.7], "clustering", "nmi"), *drawn]
    table = comparison(scores, fixed=["saved"])
    assert texts(table) == {"saved": ["80.00", "0.600 ± 0.141", "70.00 ± 0.00"]}
    assert "The same for all seeds: saved." in table.note


def test_one_seed_has_no_spread_and_small_scales_have_three_decimals():
    table = comparison(runs("a", [0.5], "clustering", "nmi"))
    assert texts(table) == {"a": ["0.500"]}
    assert "no spread" in table.note
    assert best(table) == []  # alone, nothing is best


def test_rows_follow_the_given_order_and_columns_their_first_appearance():
    scores = runs("a", [1.0]) + runs("b", [2.0]) + runs("a", [3.0], "knn_5") + runs("b", [1.0], "knn_5")
    table = comparison(scores, ["b", "a"])
    assert texts(table) == {"b": ["2.00", "1.00"], "a": ["1.00", "3.00"]}
    assert table.columns == ("linear accuracy", "knn_5 accuracy")
    assert (best(table, 0), best(table, 1)) == (["b"], ["a"])


def test_ties_at_printed_precision_are_all_marked():
    table = comparison(runs("a", [80.001]) + runs("b", [80.004]) + runs("c", [79.0]))
    assert best(table) == ["a", "b"]
    assert [row[0].label for row in table.rows] == ["80.00 (tie)", "80.00 (tie)", "79.00"]


def test_failures_say_why_and_are_never_best():
    scores = [
        *runs("a", [80.0, 82.0]),
        failure("b", "out of\nmemory", 1),
        failure("b", "out of\nmemory", 2),
        Score("c", "linear", "accuracy", 1, 99.0),
        failure("c", "lost", 2),
        *runs("d", [70.0]),
        *runs("a", [60.0, 60.0], "knn_5"),
    ]
    table = comparison(scores, ["a", "b", "c", "d", "e"])
    got = texts(table)
    assert got["b"] == ["failed", "not run"]
    assert got["c"][0] == "99.00 (1 of 2 seeds), rest failed"
    assert table.note.endswith(" b failed: out of memory c failed: lost")
    assert got["d"][0] == "70.00 (1 of 2 seeds)"
    assert got["e"] == ["not run", "not run"]
    assert best(table) == ["a"]


def test_contradictions_are_refused():
    with pytest.raises(InputError, match="at least one score"):
        comparison([])
    with pytest.raises(InputError, match="Two scores for a / linear / accuracy / seed 1"):
        comparison(runs("a", [1.0]) + runs("a", [2.0]))
    with pytest.raises(InputError, match="not in the given order: b"):
        comparison(runs("a", [1.0]) + runs("b", [1.0]), ["a"])


NASTY_SCORES = [
    *runs("a", [80.0]),
    *runs("b", [80.0]),
    *runs("<i>|c", [70.0]),
    failure("d", "<script>[bold]x|y</script>"),
]
NASTY = comparison(NASTY_SCORES)


def test_markdown():
    lines = to_markdown(NASTY).splitlines()
    assert lines[:2] == ["| contender | linear accuracy |", "| --- | ---: |"]
    assert lines[2] == "| a | **80.00** (tie) |"
    assert lines[4] == "| &lt;i>\\|c | 70.00 |"
    assert lines[5] == "| d | failed |"
    assert lines[7].endswith(" d failed: &lt;script>[bold]x\\|y&lt;/script>")


def test_csv_holds_every_score():
    rows = list(csv.reader(io.StringIO(to_csv(NASTY_SCORES))))
    assert rows[0] == ["contender", "protocol", "metric", "seed", "value", "error", "draw"]
    assert rows[1] == ["a", "linear", "accuracy", "1", "80.0", "", "1"]
    assert rows[4] == ["d", "linear", "accuracy", "1", "nan", "<script>[bold]x|y</script>", "1"]


def test_turned_exchanges_rows_and_columns():
    table = comparison(runs("a", [1.0]) + runs("b", [2.0]) + runs("a", [3.0], "knn_5"))
    turned = table.turned("protocol")
    assert turned.columns == ("a", "b")
    assert turned.names == ("linear accuracy", "knn_5 accuracy")
    assert [[cell.text for cell in row] for row in turned.rows] == [["1.00", "2.00"], ["3.00", "not run"]]


def test_only_the_wanted_metrics_are_shown():
    scores = [Score("a", "linear", metric, 1, 1.0) for metric in ("accuracy", "macro_f1", "macro_recall")]
    assert comparison(scores, metrics=SHOWN).columns == ("linear accuracy", "linear macro_f1")


def test_html_escapes_every_text():
    page = to_html(NASTY)
    assert "<script>" not in page
    assert "<i>" not in page
    assert '<td class="best">80.00 (tie)</td>' in page
    assert '<td class="failed">failed</td>' in page
    assert "d failed: &lt;script&gt;[bold]x|y&lt;/script&gt;" in page


def test_a_reason_is_said_once_for_all_it_hit():
    scores = [*runs("a", [1.0]), *(failure(name, "no", protocol=p) for name in "bc" for p in ("linear", "knn_5"))]
    assert comparison(scores).note.endswith(" b, c failed: no")


def test_rich_prints_everything():
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    console.print(to_rich(NASTY, title="Results"))
    printed = console.file.getvalue()
    assert re.search(r"\x1b\[1m *80\.00 \(tie\)", printed)
    assert "[bold]x|y" in printed
