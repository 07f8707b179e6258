"""Grids, complete blocks, averages and ranks; the paper's own numbers come out of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.report.samples import SUITES, failed, record, several

from dicot.errors import InputError
from dicot.report.bench_tables import standing_table
from dicot.report.grid import grid, joined, natural
from dicot.report.lines import Line, latest, line_labels, trial_note
from dicot.report.paper import NAMES, paper_records, paper_tables
from dicot.report.standing import blocks, fit_devices, fit_seconds, standings


@pytest.mark.parametrize(("suite", "n_sets", "average", "rank"), [("ucr", 124, 81.33, 3.73), ("uea", 28, 71.24, 4.64)])
def test_the_papers_table_gives_the_papers_averages_and_ranks(suite, n_sets, average, rank):
    table = grid(paper_records(suite), "accuracy")
    (block,) = blocks(table)
    places = standings(table, block)
    assert len(block.columns) == n_sets and len(places) == 12
    best = next(iter(places))
    assert best.contender == "dicot"
    assert round(places[best].average, 2) == average and abs(places[best].rank - rank) <= 0.06
    summary = paper_tables()["ucr_uea_summary"]
    for line, place in places.items():
        printed = summary["Random Forest" if line.contender == "raw-mean" else NAMES[line.contender]]
        assert round(place.average, 2) == printed[f"{suite}_accuracy"]
        assert abs(place.rank - printed[f"{suite}_rank"]) <= 0.06


def test_the_papers_clustering_ranks():
    table = joined([grid(paper_records("clustering"), metric) for metric in ("nmi", "ari")])
    (block,) = blocks(table)
    ranks = {line.contender: place.rank for line, place in standings(table, block).items()}
    assert len(block.columns) == 12 and table.decimals == 3
    assert ranks["dicot"] == pytest.approx(2.92, abs=0.005)
    printed = paper_tables()["clustering_average"]["AvgRank"]
    assert all(abs(ranks[key] - printed[NAMES[key]]) <= 0.1 for key in ranks if NAMES[key] in printed)


def test_averages_are_per_seed_first_and_both_intervals_follow():
    values = {1: (80.0, 60.0), 2: (84.0, 64.0), 3: (82.0, 68.0)}
    records = [
        record("s", "dicot", d, v, seed=s) for s, both in values.items() for d, v in zip("ab", both, strict=True)
    ]
    table = grid(records, "accuracy")
    place = next(iter(standings(table, blocks(table)[0]).values()))
    assert (place.average, place.n_seeds) == (pytest.approx(73.0), 3)
    assert place.deviation == pytest.approx(np.std([70, 74, 75], ddof=1))
    assert place.normal == pytest.approx(1.96 * place.deviation / math.sqrt(3))
    assert place.student / place.normal == pytest.approx(4.302653 / 1.96, abs=1e-6)


def test_a_cell_with_a_failed_run_has_no_mean():
    records = [record("s", "dicot", "a", 80.0), failed(record("s", "dicot", "a", 0.0, seed=2), "boom")]
    table = grid([*records, record("s", "dicot", "b", 70.0)], "accuracy")
    assert np.isnan(table.means).tolist() == [[True, False]]
    assert table.over(table.lines[0], ["a", "b"]) == {1: 75.0}


def sets(contender, count):
    return [record("s", contender, f"set {i}", 70.0 + i) for i in range(count)]


def test_ranks_need_complete_blocks_and_say_who_is_left_out():
    records = sets("dicot", 12) + sets("random", 12) + sets("calibrated", 12) + sets("catt", 6) + sets("tnc", 2)
    table = grid(records, "accuracy")
    wide, full = blocks(table)
    assert [line.contender for line in wide.lines] == ["dicot", "catt", "random", "calibrated"]
    assert wide.columns == tuple(f"set {i}" for i in range(6))
    assert {line.contender: lacking for line, lacking in wide.left_out.items()} == {"tnc": 10}
    assert [line.contender for line in full.lines] == ["dicot", "random", "calibrated"] and len(full.columns) == 12
    assert {line.contender: lacking for line, lacking in full.left_out.items()} == {"catt": 6, "tnc": 10}


def test_one_missing_set_of_many_makes_no_second_block():
    table = grid(sets("dicot", 20) + sets("random", 20) + sets("calibrated", 19), "accuracy")
    (block,) = blocks(table)
    assert len(block.columns) == 19 and len(block.lines) == 3 and not block.left_out


def test_without_a_set_of_both_controls_there_is_no_block():
    other = [failed(one, "boom") for one in sets("random", 8)]
    assert blocks(grid(sets("dicot", 8) + other + sets("calibrated", 8), "accuracy")) == []


def test_labels_name_only_what_differs():
    lines = [Line("minirocket", "linear"), Line("minirocket", "ridge"), Line("dicot", "linear", "per_step")]
    lines += [Line("dicot", "linear", "per_epoch"), Line("tnc", "linear", "per_step", trial=True)]
    lines += [Line("cost", "linear", "per_step", "float32"), Line("cost", "linear", "per_step", "tf32")]
    assert list(line_labels(lines).values()) == [
        "minirocket, linear",
        "minirocket, ridge",
        "dicot, per_step",
        "dicot, per_epoch",
        "tnc (trial)",
        "cost, float32",
        "cost, tf32",
    ]


def test_lines_have_their_usual_order_and_columns_a_natural_one():
    records = several("s", ["calibrated", "toy", "random", "raw-mean", "catt", "dicot"], ("a10", "a9"))
    records += several("s", ["dicot"], ("a10",), schedule="per_epoch")
    table = grid(records, "accuracy")
    shown = ["dicot, per_step", "dicot, per_epoch", "catt", "toy", "raw-mean", "random", "calibrated"]
    assert [table.labels[line] for line in table.lines] == shown
    assert table.columns == ("a9", "a10")
    assert sorted(["knn_500", "knn_all", "knn_5", "Beef"], key=natural) == ["Beef", "knn_5", "knn_500", "knn_all"]


def test_the_last_record_of_a_cell_counts():
    old, new = record("s", "dicot", "a", 1.0), replace(record("s", "dicot", "a", 2.0), recorded="2026-02-01")
    kept, older = latest([new, old])
    assert (kept, older) == ([new], 1)
    sizes = [replace(old, batch_size=8), replace(old, batch_size=16)]
    assert latest(sizes, "batch_size") == (sizes, 0) and latest(sizes)[1] == 1


def test_a_source_is_fitted_once_however_many_targets_it_has():
    records = [record("s", "dicot", ("a", t), 70.0, seed=s, fit_seconds=10.0 * s) for t in "bc" for s in (1, 2)]
    table = grid(records, "accuracy")
    assert table.columns == ("a > b", "a > c")
    assert fit_seconds(table, table.lines[0], table.columns) == 15.0
    unknown = grid([replace(records[0], fit_seconds=math.nan)], "accuracy")
    assert math.isnan(fit_seconds(unknown, unknown.lines[0], unknown.columns))


def test_devices_are_named_where_times_do_not_compare():
    same = several("s", ("dicot", "random", "calibrated"), ("a", "b"))
    table = grid(same, "accuracy")
    assert set(fit_devices(table, blocks(table)[0]).values()) == {""}
    table = grid([replace(r, device="GPU") if r.contender == "dicot" else r for r in same], "accuracy")
    (block,) = blocks(table)
    named = {line.contender: device for line, device in fit_devices(table, block).items()}
    assert named == {"dicot": "GPU", "random": "cpu", "calibrated": "cpu"}
    times = [row[-1].text for row in standing_table(table, block).rows]
    assert sorted(times) == ["0.02 s (cpu)", "0.02 s (cpu)", "5 s (GPU)"]


def test_trials_are_named_by_their_steps():
    assert trial_note(SUITES["smoke"]) == "Not a result: 10 steps, to show that the code runs."
    assert trial_note(SUITES["ucr"]) == ""


def test_a_metric_without_records_is_refused():
    with pytest.raises(InputError, match="no record of nmi by clustering"):
        grid(SUITES["ucr"], "nmi", ["clustering"])
