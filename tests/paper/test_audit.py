"""Where the paper's own arithmetic holds and where it does not: every finding is pinned."""

import json
import sys
from pathlib import Path

import pytest

from dicot.paper.against import audit_table

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "paper"))
from audit import TARGET, Verdict, audit, check_average, check_ranks, divergence, paper_checks

CHECKS = paper_checks()


def findings(verdict):
    """(table, what) -> printed, recomputed and the row of docs/divergences.md."""
    own = [c for c in CHECKS if c.verdict is verdict]
    return {(c.table, c.what): (c.printed, round(c.computed, 3), divergence(c)) for c in own}


def test_what_does_not_hold():
    assert findings(Verdict.wrong) == {
        ("linear probe", "average, MiniRocket"): (46.01, 45.807, "D-98"),
        ("linear probe", "average, SimMTM"): (77.92, 77.587, "D-98"),
        ("1 % of the labels", "average, MiniRocket"): (31.47, 31.7, "D-98"),
        ("k-NN, 5 per class", "average, Di-COT"): (50.1, 51.473, "D-98"),
        ("k-NN, 10 per class", "average, Di-COT"): (52.22, 54.938, "D-98"),
        ("k-NN, 50 per class", "average, Di-COT"): (63.07, 64.582, "D-98"),
        ("clustering", "average nmi, InfoTS"): (0.496, 0.463, "D-60"),
        ("clustering", "average ari, InfoTS"): (0.375, 0.361, "D-60"),
        ("text", "average rank of Di-COT in clustering"): (3.08, 2.92, "D-59"),
        ("text", "place of CaTT by training time, large sets"): (3, 4, "D-100"),
        ("text", "place of TS2Vec by training time, large sets"): (2, 3, "D-100"),
        ("text", "times that Di-COT trains faster than TF-C, large sets"): (2.5, 2.26, "D-100"),
        ("text", "transfer pairs of four on which Di-COT is best"): (4, 3, "D-101"),
        ("k-NN", "cells of Di-COT printed in bold, and those that are highest"): (30, 19, "D-99"),
        ("text", "large sets of six on which Random Init. beats forest and MiniRocket"): (6, 4, "D-102"),
    }


def test_what_rounding_explains():
    assert findings(Verdict.rounding) == {
        ("linear probe", "average, Supervised"): (85.25, 85.243, "D-103"),
        ("k-NN, 500 per class", "average, InfoTS"): (69.06, 69.053, "D-103"),
        ("clustering", "average nmi, CoST"): (0.486, 0.485, "D-103"),
    }


def test_ranks_that_ties_explain():
    by_name = {what.rpartition(", ")[2]: values for (table, what), values in findings(Verdict.ties).items()}
    assert len(findings(Verdict.ties)) == 13
    assert by_name["Di-COT"] == (4.64, 4.625, "D-103")
    assert by_name["InfoTS"] == (7.09, 7.143, "D-103")


def test_all_else_holds_and_much_was_computed():
    assert len(CHECKS) == 235
    assert len(findings(Verdict.exact)) == len(CHECKS) - 15 - 3 - 13


@pytest.mark.parametrize("suite", ["UCR", "UEA"])
def test_the_archives_averages_hold_exactly_and_their_ranks_within_six_hundredths(suite):
    own = [c for c in CHECKS if c.table == f"{suite} and summary"]
    averages = [c for c in own if c.what.startswith("average,") or "summary" in c.what]
    assert len(averages) == 24 and all(c.verdict is Verdict.exact for c in averages)
    ranks = [c for c in own if c.what.startswith("average rank")]
    assert len(ranks) == 12 and all(abs(c.printed - c.computed) <= 0.06 for c in ranks)


def test_verdicts_by_hand():
    assert check_average("t", "w", [1.01, 1.02], 1.01, 2).verdict is Verdict.exact  # 1.015: a half, either way
    assert check_average("t", "w", [1.01, 1.02], 1.02, 2).verdict is Verdict.exact
    assert check_average("t", "w", [1.0, 1.02], 1.02, 2).verdict is Verdict.rounding
    assert check_average("t", "w", [1.0, 1.02], 1.03, 2).verdict is Verdict.wrong
    rows = {"a": [2.0, 2.0], "b": [2.0, 1.0]}
    assert [c.verdict for c in check_ranks("t", "w", rows, {"a": 1.25, "b": 1.75})] == [Verdict.exact] * 2
    assert [c.verdict for c in check_ranks("t", "w", rows, {"a": 1.5, "b": 1.5})] == [Verdict.ties] * 2
    assert [c.verdict for c in check_ranks("t", "w", rows, {"a": 2.0, "b": 1.0})] == [Verdict.wrong] * 2


def test_the_report_shows_what_the_audit_finds_the_worst_first():
    assert json.loads(TARGET.read_text(encoding="utf-8")) == audit(CHECKS), "run `python paper/audit.py`"
    table = audit_table()
    verdicts = list(table.cells.verdict)
    assert len(verdicts) == 31 and verdicts[14] == "does not hold" != verdicts[15]
    assert set(table.cells.see) == {"D-59", "D-60", *(f"D-{n}" for n in range(98, 104))}
    assert "235" in table.note and "204 hold" in table.note
