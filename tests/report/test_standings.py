"""Complete blocks, averages and ranks, times, everybody against one; the paper's own numbers come out of them."""

import math

import numpy as np
import pytest
from tests.report.samples import record, several

from bench.paper.numbers import FOREST, NAMES, TABLES, paper_tables, printed
from bench.report.benchmark import Request
from bench.report.frame import by_data_set, frame
from bench.report.scores import baseline_line, baseline_table, block_of, fit_times, standing_table, standings


def runs(rows, *metrics):
    return by_data_set(frame(rows), metrics or ["accuracy"])


def paper_rows(suite):
    """The paper's table as if one seed of ours had given it."""
    keys = {name: key for key, name in NAMES.items()} | {FOREST: "raw-mean"}
    rows = []
    for (line, column), value in printed(suite).stack().items():
        place, _, metric = column.partition(" ")
        if place != "average":
            rows.append(record(suite, keys[line], place, value, TABLES[suite][1], metric.lower() or "accuracy"))
    return rows


@pytest.mark.parametrize(("suite", "n_sets", "average", "rank"), [("ucr", 124, 81.33, 3.73), ("uea", 28, 71.24, 4.64)])
def test_the_papers_table_gives_the_papers_averages_and_ranks(suite, n_sets, average, rank):
    block = block_of(runs(paper_rows(suite)))
    table = standings(block)
    assert len(block.columns) == n_sets and len(table) == 12
    assert table.index[0] == "dicot"
    assert round(table.average["dicot"], 2) == average and abs(table["rank"]["dicot"] - rank) <= 0.06
    summary = paper_tables()["ucr_uea_summary"]
    for line, row in table.iterrows():
        printed = summary["Random Forest" if line == "raw-mean" else NAMES[line]]
        assert round(row.average, 2) == printed[f"{suite}_accuracy"]
        assert abs(row["rank"] - printed[f"{suite}_rank"]) <= 0.06


def test_the_papers_clustering_ranks():
    block = block_of(runs(paper_rows("clustering"), "nmi", "ari"))
    ranks = standings(block)["rank"]
    assert len(block.columns) == 12
    assert ranks["dicot"] == pytest.approx(2.92, abs=0.005)
    printed = paper_tables()["clustering_average"]["AvgRank"]
    assert all(abs(ranks[key] - printed[NAMES[key]]) <= 0.1 for key in ranks.index if NAMES[key] in printed)


def test_averages_are_per_seed_first_and_both_intervals_follow():
    values = {1: (80.0, 60.0), 2: (84.0, 64.0), 3: (82.0, 68.0)}
    rows = [record("s", "dicot", d, v, seed=s) for s, both in values.items() for d, v in zip("ab", both, strict=True)]
    row = standings(block_of(runs(rows))).loc["dicot"]
    assert (row.average, row.seeds) == (pytest.approx(73.0), 3)
    assert row.deviation == pytest.approx(np.std([70, 74, 75], ddof=1))
    assert row.normal == pytest.approx(1.96 * row.deviation / math.sqrt(3))
    assert row.student / row.normal == pytest.approx(4.302653 / 1.96, abs=1e-6)


def sets(contender, count):
    return [record("s", contender, f"set {i}", 70.0 + i) for i in range(count)]


def test_ranks_need_complete_blocks_and_say_who_is_left_out():
    rows = sets("dicot", 12) + sets("random", 12) + sets("calibrated", 12) + sets("catt", 6) + sets("tnc", 2)
    block = block_of(runs(rows))
    assert block.lines == ["dicot", "catt", "random", "calibrated"] and block.left_out == {"tnc": 10}
    assert block.columns == [f"set {i}" for i in range(6)]
    assert "Left out for want of sets: tnc (lacks 10)" in standing_table(block).note


def test_a_line_with_few_sets_costs_the_others_none():
    counts = {"dicot": 12, "random": 12, "calibrated": 12, "catt": 6, "tnc": 5}
    rows = runs([row for name, count in counts.items() for row in sets(name, count)])
    block = Request("s", rows).block(rows)
    assert len(block.columns) == 6 and block.left_out == {"tnc": 1}


def test_a_source_is_fitted_once_however_many_targets_it_has():
    rows = [record("s", "dicot", ("a", t), 70.0, seed=s, fit_seconds=10.0 * s) for t in "bc" for s in (1, 2)]
    block = block_of(runs(rows))
    assert block.columns == ["a > b", "a > c"] and fit_times(block) == {"dicot": (15.0, "cpu A")}
    block = block_of(runs([{**rows[0], "fit_seconds": math.nan}]))
    assert fit_times(block) == {"dicot": None}


@pytest.mark.parametrize("device", ["GPU", "GPU (shared)", "cpu", ""])
def test_a_time_is_one_of_a_run_that_was_alone_on_a_named_device(device):
    rows = several("s", ("dicot", "random", "calibrated"), ("a", "b"))
    block = block_of(runs([{**r, "device": device} if r["target"] == "b" else r for r in rows]))
    assert set(standing_table(block).cells["time to fit"]) == {"not measured"}
    # What is measured by itself gives its time to the other rows of the same fit.
    measured = several("s", ("dicot",), ("b",), ("cost",), ("fit_seconds",), device=device)
    data = frame(
        [*({**r, "device": device} for r in rows if r["target"] == "b"), *({**m, "value": 7.0} for m in measured)]
    )
    own = data[(data.contender == "dicot") & (data.metric == "accuracy")]
    assert own.seconds.tolist() == [7.0] if device == "GPU" else own.seconds.isna().all()


def test_the_time_of_a_forest_includes_the_forest():
    probed = several("s", ("raw-mean", "random", "calibrated"), ("a",), ("linear", "forest"), score_seconds=30.0)
    data = frame(probed)
    assert set(data.seconds[data.protocol == "forest"].round(2)) == {30.01}
    assert set(data.seconds[data.protocol == "linear"].round(2)) == {0.01}


def test_wins_ties_and_losses_by_hand():
    rows = {"dicot": (80, 70, 60), "catt": (79, 70, 61), "random": (10, 10, 10), "calibrated": (90, 90, 90)}
    block = block_of(runs([record("s", c, d, three[i]) for c, three in rows.items() for i, d in enumerate("abc")]))
    assert baseline_line(block, None) == "dicot"
    table = baseline_table(block, "dicot")
    assert list(table.cells.index) == ["calibrated", "catt", "random"]
    counts = {name: [text for text, _ in row[:3]] for name, row in table.rows()}
    assert counts == {"calibrated": ["0", "0", "3"], "catt": ["1", "1", "1"], "random": ["3", "0", "0"]}
    assert table.cells["mean difference"]["random"] == "+60.00"
    assert baseline_line(block, "random") == "random" and baseline_line(block, "tnc") is None
