"""The tidy frame: rows, their order in a table, means, notes."""

import numpy as np
from tests.report.samples import failed, record, several

from bench.report.frame import by_data_set, frame, latest, means, note, placed, seed_averages
from dicot.judge.report.frame import natural


def test_lines_have_their_usual_order_and_columns_a_natural_one():
    rows = several("s", ["calibrated", "toy", "random", "raw-mean", "supervised", "catt", "dicot"], ("a10", "a9"))
    rows += several("s", ["dicot"], ("a10",), schedule="per_epoch")
    runs = by_data_set(frame(rows), ["accuracy"])
    shown = ["dicot, per_step", "dicot, per_epoch", "catt", "toy", "supervised", "raw-mean", "random", "calibrated"]
    assert list(runs.line.cat.categories) == shown
    assert list(runs.column.cat.categories) == ["a9", "a10"]
    assert sorted(["knn_500", "knn_all", "knn_5", "Beef"], key=natural) == ["Beef", "knn_5", "knn_500", "knn_all"]


def test_labels_name_only_what_differs():
    rows = several("s", ["minirocket"], ["a"], ("linear", "ridge")) + several("s", ["dicot"], ["a"])
    rows += several("s", ["dicot"], ["a"], schedule="per_epoch") + several("s", ["tnc"], ["a"], trial=True)
    rows += several("s", ["cost"], ["a"]) + several("s", ["cost"], ["a"], precision="tf32")
    assert set(by_data_set(frame(rows), ["accuracy"]).line) == {
        *("minirocket, linear", "minirocket, ridge", "dicot, per_step", "dicot, per_epoch"),
        *("tnc (trial)", "cost, float32", "cost, tf32"),
    }


def test_lines_that_would_share_a_name_stay_apart():
    rows = [record("s", "a", "x", 1.0, schedule=""), record("s", "a", "x", 2.0), record("s", "a, per_step", "x", 3.0)]
    data = frame(rows)
    assert sorted(means(placed(data, data.target))["x"]) == [1.0, 2.0, 3.0]


def test_scores_on_different_labelled_cases_stay_apart_and_the_note_tells_which():
    rows = several("knn", ["dicot"], ["a"], ("linear", "knn_5"))
    rows = [{**row, "subsets": "per-seed" if row["protocol"] == "knn_5" else ""} for row in rows]
    one = latest(frame(rows))
    assert set(one.protocol) == {"linear", "knn_5"} and note(one) == "Labelled cases: drawn anew by each seed."
    both = latest(frame([*rows, *({**row, "subsets": "authors"} for row in rows if row["subsets"])]))
    assert set(both.protocol) == {"linear", "knn_5 (authors)", "knn_5 (per-seed)"}
    assert "the same for all seeds (D-40) (knn_5 (authors))." in note(both)


def test_a_table_says_which_data_changed_between_its_runs():
    rows = [record("s", name, "mine", 1.0, target_data=data) for name, data in (("dicot", "a1"), ("catt", "b2"))]
    rows += [record("s", name, "hers", 1.0, target_data="c3") for name in ("dicot", "catt")]
    told = "Not to be compared: mine changed between these runs. Run the older ones again."
    assert note(latest(frame(rows))) == told
    assert note(latest(frame([*rows[1:], record("s", "dicot", "mine", 1.0)]))) == "", "of one run it is not known"


def test_a_cell_with_a_failed_run_has_no_mean():
    rows = [record("s", "dicot", "a", 80.0), failed(record("s", "dicot", "a", 0.0, seed=2), "boom")]
    runs = by_data_set(frame([*rows, record("s", "dicot", "b", 70.0)]), ["accuracy"])
    assert np.isnan(means(runs).to_numpy()).tolist() == [[True, False]]
    assert seed_averages(runs, ["a", "b"]).loc["dicot"].dropna().to_dict() == {1: 75.0}


def test_the_last_record_of_a_cell_counts_and_draws_are_cells():
    old, new = record("s", "dicot", "a", 1.0), record("s", "dicot", "a", 2.0, recorded="2026-02-01")
    assert latest(frame([new, old])).value.tolist() == [2.0]
    sizes = frame([{**old, "batch_size": 8}, {**old, "batch_size": 16}])
    assert len(latest(sizes, ["batch_size"])) == 2 and len(latest(sizes)) == 1
    assert len(latest(frame([old, {**old, "draw": 2}]))) == 2
