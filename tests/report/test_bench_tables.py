"""Tables of a benchmark: controls or nothing, failures and trials in plain sight, ours beside the paper's."""

import pytest
from tests.report.samples import ARCHIVE, CONTROLS, SUITES, failed, record, several

from dicot.errors import InputError
from dicot.report.against import average_table, cell_table
from dicot.report.baseline import baseline_line, baseline_table, outcomes
from dicot.report.bench_tables import data_set_table, failure_table, interval_table, seconds_text, standing_table
from dicot.report.comparison import signed
from dicot.report.grid import grid
from dicot.report.parts import Request
from dicot.report.standing import blocks
from dicot.report.variants import groups, variant_drafts

UCR = grid(SUITES["ucr"], "accuracy")
LARGE = grid(SUITES["large"], "accuracy")


def texts(table):
    return {name: [c.label for c in row] for name, row in zip(table.names, table.rows, strict=True)}


def without(table_records, name):
    return grid([r for r in table_records if r.contender != name], "accuracy")


@pytest.mark.parametrize("missing", CONTROLS)
@pytest.mark.parametrize(
    "make",
    [
        lambda table: standing_table(table, blocks(table)[0]),
        data_set_table,
        interval_table,
        lambda table: average_table(table, "ucr"),
        lambda table: cell_table(table, "ucr"),
        lambda table: baseline_table(table, blocks(table)[0], blocks(table)[0].lines[0]),
    ],
    ids=["standings", "data sets", "intervals", "paper", "paper cells", "baseline"],
)
def test_no_table_of_methods_without_both_controls(make, missing):
    with pytest.raises(InputError, match=f"there is no record of {missing}"):
        make(without(SUITES["ucr"], missing))


def test_no_table_of_variants_without_both_controls():
    records = [r for r in SUITES["ablation"] if r.contender != "calibrated"]
    with pytest.raises(InputError, match="no record of calibrated"):
        variant_drafts(Request("ablation", tuple(records)))[0]()


def test_standings_show_average_rank_and_time_and_no_interval_for_one_seed():
    table = standing_table(UCR, blocks(UCR)[0])
    assert table.columns == ("average accuracy", "average rank", "time to fit")
    assert table.names[0].startswith("dicot, per_")
    assert texts(table)["random"][2] == "0.06 s" and texts(table)["catt"][2] == "15 s"
    assert "Over the 6 data set(s) of 6" in table.note and "per_epoch that of the authors' code" in table.note


def test_standings_over_seeds_have_both_intervals():
    table = standing_table(LARGE, blocks(LARGE)[0])
    assert table.columns[2:4] == ("95 %, normal", "95 %, t")
    average, _, normal, student, _ = texts(table)["dicot"]
    assert "±" in average and float(student.split()[1]) > 2 * float(normal.split()[1])


def test_both_schedules_are_rows_of_their_own():
    names = data_set_table(UCR).names
    assert "dicot, per_step" in names and "dicot, per_epoch" in names
    assert "minirocket, linear" in names and "minirocket, ridge" in names


def test_many_data_sets_stand_below_one_another():
    many = grid(several("s", ("dicot", *CONTROLS), [f"set {i}" for i in range(9)]), "accuracy")
    assert data_set_table(many).columns == ("dicot", "random", "calibrated")
    assert len(data_set_table(many).names) == 9


def test_intervals_need_seeds():
    assert interval_table(UCR) is None
    table = interval_table(LARGE)
    assert table is not None and all(" / " in text for row in texts(table).values() for text in row)


def test_failures_are_seen_everywhere_and_have_reasons():
    records = [
        failed(r, "CaseError: too\n short") if (r.contender, r.target) == ("catt", "Car") else r for r in SUITES["ucr"]
    ]
    table = grid(records, "accuracy")
    shown = data_set_table(table)
    assert texts(shown)["catt"][shown.columns.index("Car")] == "failed"
    assert "catt failed: CaseError: too short" in shown.note
    block = blocks(table)[0]
    assert "Car" not in block.columns and "5 data set(s) of 6" in standing_table(table, block).note
    assert texts(failure_table(records)) == {"catt": ["Car", "per_step", "1", "linear", "CaseError: too short"]}
    assert failure_table(SUITES["ucr"]) is None


def test_left_out_contenders_are_named():
    records = [r for r in SUITES["ucr"] if r.contender != "ts2vec" or r.target == "Beef"]
    table = grid(records, "accuracy")
    assert "Left out for want of sets: ts2vec (lacks 5)" in standing_table(table, blocks(table)[0]).note


def test_every_table_of_trials_says_so():
    table = grid(SUITES["smoke"], "accuracy", ["linear"])
    assert "dicot (trial)" in data_set_table(table).names
    for made in (data_set_table(table), standing_table(table, blocks(table)[0]), average_table(table, "ucr")):
        assert made.note.startswith("Not a result: 10 steps")


def test_ours_beside_the_paper_over_the_sets_both_have():
    records = several("ucr", ("dicot", "minirocket", *CONTROLS), (*ARCHIVE, "DodgerLoopDay"))
    records = [r for r in records if (r.contender, r.target) not in (("dicot", "Beef"), ("dicot", "Car"))]
    records += [record("ucr", "dicot", "Beef", 64.0), record("ucr", "dicot", "Car", 89.0)]
    shown = average_table(grid([r for r in records if r.target in ("Beef", "Car", "DodgerLoopDay")], "accuracy"), "ucr")
    assert texts(shown)["dicot"] == ["Di-COT", "2", "76.50", "75.00", "+1.50"]
    assert texts(shown)["calibrated"][0] == "no such number" and texts(shown)["calibrated"][1] == "3"
    assert "D-37" in shown.note


def test_the_papers_number_stands_beside_every_cell():
    records = [record("ucr", c, "Beef", 64.0) for c in ("dicot", *CONTROLS)]
    records += [failed(record("ucr", "catt", "Beef", 0.0), "boom")]
    shown = texts(cell_table(grid(records, "accuracy"), "ucr"))
    assert shown == {
        "dicot": ["64.00 (60.00, +4.00)"],
        "catt": ["failed"],
        "random": ["64.00"],
        "calibrated": ["64.00"],
    }


def test_wins_ties_and_losses_by_hand():
    rows = {"dicot": (80, 70, 60), "catt": (79, 70, 61), "random": (10, 10, 10), "calibrated": (90, 90, 90)}
    records = [record("s", c, d, float(v)) for c, three in rows.items() for d, v in zip("abc", three, strict=True)]
    table = grid(records, "accuracy")
    (block,) = blocks(table)
    against = baseline_line(table, block, None)
    assert against.contender == "dicot"
    found = {line.contender: three for line, three in outcomes(block, against).items()}
    assert found == {"catt": (1, 1, 1), "random": (3, 0, 0), "calibrated": (0, 0, 3)}
    shown = baseline_table(table, block, against)
    assert shown.names == ("calibrated", "catt", "random")
    assert texts(shown)["random"][:4] == ["3", "0", "0", "+60.00"]
    assert baseline_line(table, block, "random").contender == "random"
    assert baseline_line(table, block, "tnc") is None


def test_variants_are_shown_as_differences_from_the_method():
    values = {"dicot": 80.0, "w/o Overlap": 78.5, "random": 70.0, "calibrated": 75.0}
    records = [record("ablation", c, d, v) for c, v in values.items() for d in ("ecg", "Beef", "NATOPS")]
    records += [record("ablation", "dicot", d, 80.0, schedule="per_epoch") for d in ("ecg", "Beef", "NATOPS")]
    request = Request("ablation", tuple(records), against_paper=True)
    assert [group.name for group in groups(request)] == ["large", "ucr", "uea"]
    ours, paper = (part.table for part in variant_drafts(request)[0]())
    assert ours.columns == ("large (1 of 1 sets)", "ucr (1 of 1 sets)", "uea (1 of 1 sets)")
    assert texts(ours)["w/o Overlap"] == ["78.50 (-1.50)"] * 3
    assert texts(ours)["dicot, per_step"] == texts(ours)["dicot, per_epoch"] == ["80.00 (tie)"] * 3
    assert texts(paper)["w/o Overlap"] == ["78.50 (81.22)", "78.50 (81.12)", "78.50 (70.13)"]
    assert texts(paper)["random"] == ["70.00"] * 3


def test_a_variant_is_compared_with_the_paper_where_the_sets_are_as_many():
    sets = ("ecg", "harth", "pamap2", "skoda-paper", "sleep", "wisdm2")
    request = Request("ablation", tuple(several("ablation", ("dicot", *CONTROLS), sets)), against_paper=True)
    _, paper = variant_drafts(request)[0]()
    assert "(83.07, " in texts(paper.table)["dicot"][0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "under 0.001 s"),
        (0.0123, "0.012 s"),
        (12.3, "12 s"),
        (90, "90 s"),
        (600, "10.0 min"),
        (7200, "2.00 h"),
        (float("nan"), "not measured"),
    ],
)
def test_times_are_readable(seconds, text):
    assert seconds_text(seconds) == text


def test_a_difference_that_rounds_to_nothing_has_no_sign():
    assert [signed(x, 2) for x in (-0.004, 0.004, -0.006, 1.0)] == ["0.00", "0.00", "-0.01", "+1.00"]
