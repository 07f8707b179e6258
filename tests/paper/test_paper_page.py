"""The paper on one page: every exhibit, ours beside the paper's, what each rests on; the published page is current."""

import re
from pathlib import Path

import pytest
from tests.commands import dicot
from tests.paper.records import METHODS, UCR, UEA, everything
from tests.report.samples import CONTROLS, several, write_csv
from tests.report.test_benchmark_report import Page

from dicot.core.errors import InputError
from dicot.judge.bench.crossing import SuiteOptions
from dicot.judge.bench.exchange import read_records
from dicot.judge.bench.suites import suite_jobs
from dicot.judge.report.benchmark import report_facts, report_parts, requested, to_document
from dicot.judge.report.frame import frame, trial_note
from dicot.judge.report.parts import drawn
from dicot.paper import reports
from dicot.paper.exhibits import EXHIBITS
from dicot.paper.exhibits.page import chosen, paper_markdown, write_paper
from dicot.paper.numbers import paper_tables
from dicot.paper.places import Column, column_of
from dicot.paper.runs import outdated

ROOT = Path(__file__).resolve().parents[2]
ORDER = (
    "figure1 figure2 table1 table2 figure3 table3 figure4 table4 figure5 table5 table6 table7 figure6 table8 table9 "
    "table10 figure7 table11 table12 table13 table14 table15 table16 table17"
)


@pytest.fixture(scope="module")
def page():
    return paper_markdown(frame(everything()))


def section(text, key):
    """What stands on the page about one exhibit."""
    return text.split(f"\n## {EXHIBITS[key].name(key)}. ")[1].split("\n## ")[0]


def table(text):
    """The first table of a text: rows by name, cells by heading."""
    lines = text[text.index("\n| ") :].strip().split("\n\n")[0].splitlines()
    (_, *head), _, *rows = ([cell.strip() for cell in line[1:-1].split(" | ")] for line in lines)
    return {name: dict(zip(head, cells, strict=True)) for name, *cells in rows}


@pytest.mark.slow
def test_every_figure_and_table_of_the_paper_is_there_in_its_order(page):
    assert " ".join(EXHIBITS) == ORDER
    found = re.findall(r"^## ((?:Figure|Table) \d+)\. ", page, flags=re.M)
    assert found == [one.name(key) for key, one in EXHIBITS.items()]


def test_without_a_record_each_exhibit_says_what_is_missing_and_shows_the_papers_numbers():
    text = paper_markdown(frame([]))
    for key, one in EXHIBITS.items():
        own = section(text, key)
        assert one.caption in own
        if one.suites:
            assert f"nothing yet: there is no record of the suite {' or '.join(one.suites)}." in own
            assert f"`dicot paper --run --only {key}`" in own
        if key.startswith("table"):
            assert "\n| " in own
    assert "| Di-COT | 85.28 | 93.23 | 71.38 | 99.41 | 85.21 | 63.92 | 83.07 |" in section(text, "table1")
    assert "nothing yet: there is no file maps.npz" in section(text, "figure5")


def test_an_exhibit_says_what_stands_in_for_a_set_and_what_is_missing(page):
    own = section(page, "table1")
    assert "0 of the paper's 6 large sets; stand-ins: mitbih-arrhythmia for ECG, hapt for HARTH" in own
    assert "missing: PAMAP2, SKODA." in own
    row = table(own)["Di-COT"]
    assert re.fullmatch(r"\**\d\d\.\d\d ± \d\.\d\d \(93\.23\)\**", row["hapt, for HARTH"])  # no difference
    assert row["PAMAP2, missing"] == "(71.38)"


def test_ours_stand_beside_the_papers_with_the_difference_on_the_same_set(page):
    row = table(section(page, "table17"))["Beef"]
    printed = paper_tables()["ucr"]["Beef"]["CaTT"]
    ours, paper, gap = re.fullmatch(r"\**([\d.]+) \(([\d.]+), ([+-][\d.]+)\)\**", row["CaTT"]).groups()
    assert "per_epoch" not in " ".join(row)
    assert float(paper) == printed and abs(float(ours) - printed - float(gap)) < 0.006


def test_controls_stand_in_every_table_of_scores_and_never_in_the_papers_ranks(page):
    for key in ("table1", "table3", "table5", "table6", "table7", "table10", "table11", "figure3", "figure4"):
        rows = table(section(page, key))
        assert {"calibrated"} < set(rows) and {"random", "Random Init."} & set(rows), key
    first = table(section(page, "table2"))
    assert list(first)[:12] == list(paper_tables()["ucr_uea_summary"])
    ranks = [float(first[name]["UCR rank"].strip("*").split(" ")[0]) for name in list(first)[:12]]
    assert abs(sum(ranks) - 12 * 13 / 2) < 0.1  # the mean of ranks 1 to 12, twelve times
    assert all(first[name]["UCR rank"] == "" for name in list(first)[12:])
    assert "of 6 that every contender ranked has" in section(page, "table2")


def test_the_papers_ranks_are_recomputed_over_the_sets_that_ours_are_over(page):
    rows = table(section(page, "table2"))
    theirs = [float(re.search(r"\(([\d.]+)\)", rows[name]["UEA rank"])[1]) for name in list(rows)[:12]]
    assert abs(sum(theirs) - 78) < 0.1 and rows["Di-COT"]["printed: UEA rank"] == "4.64"


def test_both_schedules_are_compared_method_by_method_on_the_sets_that_have_both(page):
    data = frame(everything())
    own = data[(data.metric == "accuracy") & (data.protocol == "linear") & (data.source == data.target)]
    own = own[own.suite.isin(["ucr", "uea"]) & (own.contender == "catt")]
    means = own.groupby("schedule").value.mean()
    row = table(section(page, "table2").partition("### Both schedules")[2])["CaTT"]
    assert row["data sets"] == str(own.target.nunique())
    assert [row["per_step"], row["per_epoch"]] == [f"{means[name]:.2f}" for name in ("per_step", "per_epoch")]
    few = frame([r for r in everything() if r["schedule"] != "per_epoch"])
    assert "### Both" not in section(paper_markdown(few, only=["table2"]), "table2")


def test_figure_three_ranks_the_papers_methods_over_all_families(page):
    rows = table(section(page, "figure3"))
    assert len(rows) == len(METHODS) + len(CONTROLS)
    assert "rank over 15 sets" in rows["Di-COT"]
    assert "By suite: 4 large, 6 ucr, 5 uea." in section(page, "figure3")


def test_the_line_of_a_job_that_runs_out_of_memory_ends_at_a_cross(page):
    own = section(page, "figure6")
    assert "A cross: the batch size at which a line ends" in own and "figure6-step-ms-hapt.svg" in own
    assert "CUDA out of memory" in page.split("\n## Failed jobs")[1]


def test_figure_seven_sums_the_times_of_all_families(page):
    own = section(page, "figure7")
    assert "summed over 15 data set(s) that all 8 variants have" in own and "on cpu A, where each run was alone." in own
    assert table(own)["k fixed"] == dict.fromkeys(("2", "5", "10", "15"), "38 s") | {"20": ""}


def test_seconds_of_a_shared_gpu_are_no_times():
    """Figures 1 and 7, Tables 1 and 2: not measured, unless every run was alone on one device with a name."""
    shared = [{**row, "device": "NVIDIA H200 (shared)"} for row in everything()]
    text = paper_markdown(frame(shared), only=["figure1", "table1", "table2", "figure7"])
    for key in ("figure1", "table1", "table2"):
        assert table(section(text, key))["Di-COT"]["time to fit"].startswith("not measured")
    assert "figure1.svg" not in text and "figure7.svg" not in text and "Not measured: there is no data set" in text


def test_times_of_two_archives_on_two_devices_are_not_summed():
    rows = [{**row, "device": "NVIDIA H200, alone"} if row["suite"] == "ucr" else row for row in everything()]
    own = table(section(paper_markdown(frame(rows), only=["table2"]), "table2"))
    assert own["Di-COT"]["time to fit"] == "UCR: 15 s (NVIDIA H200); UEA: 12 s (cpu A)"


@pytest.mark.parametrize(
    ("key", "heading", "row", "cell"),
    [
        ("table6", "ucr (0 of the paper's 124 sets)", "w/o Overlap", "not run (81.12)"),
        ("table7", "transfer (0 of the paper's 4 sets)", "Next Sub-block", "not run (72.49)"),
        ("table10", "uea (0 of the paper's 28 sets)", "Global Fixed Splits (k) -> 2", "not run (69.88)"),
        ("table10", "large (4 of 4 sets)", "Overlap -> 25%", "not run (82.15)"),
    ],
)
def test_columns_and_rows_of_the_paper_without_a_record_show_its_numbers(key, heading, row, cell):
    rows = [row for row in everything() if row["target"] not in (*UCR, *UEA)]
    own = section(paper_markdown(frame(rows), only=[key]), key)
    assert table(own.split("### Ours beside the paper")[1])[row][heading] == cell


def test_a_share_of_the_labels_says_how_many_cases_that_is_and_where_it_is_all():
    rows = everything()
    for row in rows:
        row["subsets"] = "authors" if row["protocol"] == "few_1pct" else "per-seed" if "knn" in row["protocol"] else ""
    text = paper_markdown(frame(rows), only=["table3", "table15"])
    few = "hapt 86 of 9,031, mitbih-arrhythmia 23 of 2,297, sleepedf-night 5 of 504, wisdm2019 38 of 5,272."
    assert f"few_1pct is, by data set: {few}" in section(text, "table3")
    many = "hapt 3,708 of 9,031, mitbih-arrhythmia 1,092 of 2,297, sleepedf-night all 504, wisdm2019 all 5,272."
    assert f"knn_500 is, by data set: {many}" in section(text, "table15")


def test_two_sub_blocks_that_become_one_are_marked(page):
    for key in ("table10", "figure7"):
        assert "one sub-block by the paper's rounding on ACSF1, Beef, CBF" in section(page, key)


def test_the_command_that_fills_an_exhibit_continues_its_records():
    """The published records of the large sets are in TF32, those of the archives in float32."""
    results = published_results()
    text = paper_markdown(published(), only=["table1", "figure3", "table16"])
    assert "`dicot paper --run --only table1 --precision tf32`, which runs large." in section(text, "table1")
    assert "`dicot paper --run --only table2`, which runs ucr and uea." in section(text, "figure3")
    assert "`dicot paper --run --only table1 --precision tf32`, which runs large." in section(text, "figure3")
    assert "`dicot paper --run --only table16`, which runs uea." in section(text, "table16")
    sets = ("hapt", "wisdm2019", "sleepedf-night", "mitbih-arrhythmia")
    jobs = suite_jobs(["large"], SuiteOptions(sets=sets, seeds=(1,), precision="tf32"))
    recorded = {one.key for one in results if one.suite == "large" and one.schedule != "per_epoch"}
    assert len(recorded) == 76 and len(recorded & {job.key for job in jobs}) == 75  # less CaTT on ECG's stand-in


def test_rows_of_other_settings_than_todays_are_named():
    old = outdated(published_results())
    catt = "catt on mitbih-arrhythmia (temperature 0.1, not 0.5; that command runs it anew)"
    assert list(old.values()).count(catt) == 8
    text = paper_markdown(published(), only=["table1", "table6"], outdated=old)
    said = f"Records that differ from what the suite makes today: {catt}, end-to-end on hapt (recipe not recorded), "
    assert said in section(text, "table1")
    assert "Records that differ" not in section(text, "table6")


def test_the_papers_random_forest_and_minirocket_are_ours_by_their_own_classifier():
    rows = everything()
    for row in rows:
        if row["suite"] == "ucr" and row["contender"] in ("minirocket", "raw-mean"):
            row["value"] = {"ridge": 91.0, "forest": 31.0}.get(row["protocol"], 50.0)
    own = table(section(paper_markdown(frame(rows), only=["table2"]), "table2"))
    assert own["MiniRocket"]["UCR accuracy, 6 sets"].strip("*").startswith("91.00")
    assert own["Random Forest"]["UCR accuracy, 6 sets"].startswith("31.00")


def test_sets_that_the_paper_leaves_out_of_an_archive_cost_nothing_and_are_named():
    more = several("ucr", (*METHODS, *CONTROLS), ("DodgerLoopDay",))
    own = section(paper_markdown(frame([*everything(), *more]), only=["table17"]), "table17")
    assert "Not of the paper: DodgerLoopDay." in own and "| DodgerLoopDay |" not in own


def test_records_without_controls_are_said_to_be_that_and_the_rest_is_shown():
    rows = [r for r in everything() if r["suite"] != "knn" or r["contender"] not in CONTROLS]
    text = paper_markdown(frame(rows), only=["table1", "table11"])
    assert "It cannot be shown: A table of the paper: a table of methods needs the controls" in section(text, "table11")
    assert table(section(text, "table1"))


def test_a_trial_of_another_suite_is_no_reason_for_a_banner():
    rows = [*everything(), *several("smoke", ("dicot", *CONTROLS), ("tiny",), trial=True, steps=10)]
    assert "Not a result" not in paper_markdown(frame(rows), only=["table11"])
    tried = [{**row, "trial": row["contender"] == "dicot", "steps": 7} for row in everything() if row["suite"] == "knn"]
    assert "> **Not a result: 7 steps" in paper_markdown(frame(tried), only=["table11"])


def test_names_of_exhibits_are_forgiving_and_checked():
    assert list(chosen(["Table 3", "figure1"])) == ["figure1", "table3"]
    with pytest.raises(InputError, match="table3"):
        chosen(["tabel3"])


def test_the_page_is_whole_and_its_links_lead_somewhere(tmp_path, quick):
    some = ["figure2", "table3", "table7", "figure6", "figure7"]
    paths = write_paper(tmp_path, frame(everything()), only=some)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert page.open == [] and {path.name for path in paths} == {path.name for path in tmp_path.iterdir()}
    assert set(re.findall(r"\]\((.*?)\)", text)) == {p.name for p in paths if p.suffix == ".svg"}
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r'href="#(\w+)"', html)) == set(re.findall(r'<section id="(\w+)"', html)) == set(some)
    assert "<code>dicot paper --run --only table3</code>" in html
    assert text == paper_markdown(frame(everything()), only=some)


def test_records_of_a_folder_are_joined(tmp_path, quick, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    rows = everything()
    write_csv(tmp_path / "results" / "archives.csv", [r for r in rows if r["suite"] in ("ucr", "uea")])
    write_csv(tmp_path / "results" / "large.csv", [r for r in rows if r["suite"] == "knn"])
    assert "report.html" in dicot("paper", "--only", "table2,table11")
    text = Path("out/paper/report.md").read_text(encoding="utf-8")
    assert "- suites: knn, ucr, uea" in text
    assert f"{len(UCR)} of the paper's 124 UCR sets" in text and f"{len(UEA)} of the paper's 28" in text
    with pytest.raises(InputError, match=r"holds no \.csv and no \.parquet"):
        dicot("paper", "--records", tmp_path)


def published_results():
    return read_records(None, ROOT / "results")[0]


def published():
    return frame(row for result in published_results() for row in result.tidy())


@pytest.mark.slow
def test_the_published_page_is_that_of_the_published_results():
    maps = ROOT / "results" / "maps.npz"
    page = ROOT / "docs" / "results" / "paper" / "report.md"
    old = outdated(published_results())
    assert page.read_text(encoding="utf-8") == paper_markdown(published(), maps, outdated=old), (
        "Make it anew: dicot paper --records results --out docs/results/paper"
    )


@pytest.mark.parametrize("suite", ["ucr", "uea"])
def test_the_published_reports_are_those_of_the_published_results(suite):
    request, older = requested(suite, published(), beside=reports)
    parts = drawn(report_parts(request), named_only=True)
    facts = report_facts(request.data, older, "", "")
    made = to_document(f"Benchmark: {suite}", facts, trial_note(request.data), parts)
    text = (ROOT / "docs" / "results" / suite / "report.md").read_text(encoding="utf-8")
    changing = re.compile(r"^- (report made|command|no record of): .*\n", flags=re.M)
    assert changing.sub("", text) == changing.sub("", made), (
        "Make them anew: dicot report ucr,uea --records results --out docs/results --against-paper"
    )


def test_a_set_that_the_paper_used_otherwise_stands_beside_its_number_without_a_difference():
    assert column_of("pamap2-paper", "pamap2-paper") == Column("PAMAP2", "PAMAP2", True)
    assert not column_of("pamap2", "pamap2").exact and column_of("ecg-full", "ecg-full").paper == "ECG"
    assert column_of("hapt", "sleepedf-night").paper == ""  # no such transfer in the paper
    assert column_of("hapt", "hapt").by("nmi") == Column("hapt NMI, for HARTH", "HARTH NMI", metric="nmi")


def test_what_is_not_of_the_paper_is_shown_and_not_averaged():
    pair = ("hapt (scale dataset)", "wisdm2019 (scale dataset)")
    more = several("transfer", (*METHODS, *CONTROLS), [pair], seeds=(1, 2))
    own = section(paper_markdown(frame([*everything(), *more]), only=["table5"]), "table5")
    assert " > ".join(pair) in table(own)["Di-COT"] and "average of 2" in table(own)["Di-COT"]


def test_the_data_sets_stand_beside_the_papers_sizes(page):
    rows = table(section(page, "table8"))
    assert rows["harth"]["test cases"] == "2,784 (2,785)" and rows["harth"]["records"] == "none"
    assert rows["hapt"] == rows["hapt"] | {"in the paper": "HARTH", "is": "a stand-in", "records": "yes"}
    assert rows["pamap2"]["is"] == "another preparation"
